#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "calico/crd.h"
#include "store/forwarding_store.h"
#include "store/kube/api.h"
#include "store/kube/object_mapping.h"
#include "store/store.h"

namespace croft::store {

struct KubeStoreOptions {
  /// Where Calico's records are. Nothing: in the group that discover_calico_group() finds. A read takes the older one
  /// without asking, until it finds nothing there.
  std::optional<wire::calico::ApiGroup> group{};
  /// Without them none of Croft's own kinds are kept: all are absent, and a high-water mark is written nowhere.
  bool croft_kinds = true;
  /// Given: Croft's own kinds are there as far as they can be read (kube::may_read_croft_kinds).
  OnOwnDenied own_denied = nullptr;
  /// kube::make_service_mappings, for a store that sees Services.
  std::vector<std::unique_ptr<kube::ObjectMapping>> (*services)() = nullptr;
  /// Called once, when Calico's records are found to have gone to its other group (docs/runbooks/kubernetes-crds.md):
  /// nothing is read or written any more. A daemon ends then, and is started anew. Absent: the error alone says so.
  void (*moved)() = nullptr;
};

/// A register in a Kubernetes API: each record an object, written by itself under its resourceVersion
/// (docs/formats/kubernetes-own.md). Without atomic commits: the engine writes in order (ipam/use/ordered_commit.cc).
/// Each record of a read is as of some moment of the call; lists are as of one moment each. Calico's group is found
/// once: where its records have gone to the other one since, every call fails (unavailable: start this program again).
/// The clock must outlive the store.
[[nodiscard]] std::unique_ptr<Store> make_kube_store(std::unique_ptr<kube::Api> api, wire::calico::Digests digests,
                                                     const Clock& clock, KubeStoreOptions options = {});

}  // namespace croft::store
