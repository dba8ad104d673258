#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "store/kube/api.h"
#include "store/kube/form.h"
#include "store/store.h"

namespace croft::store {

/// Which kinds of records a store has in an API, and how. Without a form for Croft's own kinds these are not kept: all
/// are absent, and a high-water mark is written nowhere.
struct Layout {
  std::vector<std::unique_ptr<kube::Form>> forms;
  /// Nobody has asked the API: when one of the kinds is missing there, another layout may be right.
  bool is_guess = false;
};
/// How far to go for a layout.
enum class LayoutCare : std::uint8_t {
  guess,  ///< what most likely is right, without asking
  ask,    ///< ask the API, where that is needed
};
using LayoutOf = std::function<Result<Layout>(kube::Api& api, LayoutCare care, Deadline deadline)>;

struct KubeStoreOptions {
  bool sees_services = false;  ///< the layout has kube::make_service_forms
  /// Reads too delete what is marked as deleted and waits for that: for who opens the store to write. Without it only
  /// who writes in its place does.
  bool finishes_deletions = false;
  /// Called once, when Calico's records are found to have gone to its other group (docs/runbooks/kubernetes-crds.md):
  /// nothing is read or written any more. A daemon ends then, and is started anew. Absent: the error alone says so.
  void (*moved)() = nullptr;
};

/// A register in a Kubernetes API: each record an object, written by itself under its resourceVersion
/// (docs/formats/kubernetes-own.md). Without atomic commits: the engine writes in order (ipam/use/ordered_commit.h).
/// Each record of a read is as of some moment of the call; lists are as of one moment each.
///
/// `lay_out` is asked with the first call, until it succeeds once; a guess holds once a record of Calico's was read by
/// it, and before anything is written. Then it stays: where Calico's records have gone to its other group since, every
/// call fails (unavailable: start this program again). The clock must outlive the store.
[[nodiscard]] std::unique_ptr<Store> make_kube_store(std::unique_ptr<kube::Api> api, LayoutOf lay_out,
                                                     const Clock& clock, KubeStoreOptions options = {});

}  // namespace croft::store
