#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/stores/etcd_url.h"
#include "ipam/door/croft_ipam.h"
#include "store/etcd/etcd_store.h"
#include "store/forwarding_store.h"
#include "store/kube/api.h"
#include "store/kube/form.h"
#include "store/store.h"

namespace croft::app {

/// The argument of open_store in a program that works on Kubernetes' records: kubernetes_registry. Others don't link
/// it.
using RegistryMaker = Result<std::unique_ptr<store::etcd::Registry>> (*)(const EtcdPlace&);
[[nodiscard]] Result<std::unique_ptr<store::etcd::Registry>> kubernetes_registry(const EtcdPlace& place);
/// Likewise of Services in a Kubernetes API: store::kube::make_service_forms.
using ServiceForms = std::vector<std::unique_ptr<store::kube::Form>> (*)();

struct KubePlace;
/// The parts that a program gives to its stores.
struct StoreParts {
  RegistryMaker registry = nullptr;
  /// os::look_up_host; without it API servers have numeric addresses, as the plugin is static and can look up none.
  Result<std::vector<std::string>> (*look_up)(const std::string& name, Deadline deadline) = nullptr;
  ServiceForms services = nullptr;
  /// store::KubeStoreOptions::moved: a daemon ends.
  void (*moved)() = nullptr;
};

/// Opens a store by its URL: `sqlite:/absolute/path.db`. The one place that chooses a backend. Errors: invalid_argument
/// naming the URL, not_found for an absent store with OpenMode::existing, else those of the
/// backend. `clock` must outlive the store.
[[nodiscard]] Result<std::unique_ptr<store::Store>> open_store(const std::string& url, store::OpenMode mode,
                                                               const Clock& clock, const StoreParts& parts = {});

/// The same for a command that only looks. It refuses writes, and needs nothing of Croft's. Kinds of Croft's own that a
/// Kubernetes API does not have are empty, and so are those that this account may not read there or in an etcd;
/// `own_denied` is told of these. May be called with the first read; must not be null.
[[nodiscard]] Result<std::unique_ptr<store::Store>> open_store_to_look(const std::string& url, const Clock& clock,
                                                                       const StoreParts& parts,
                                                                       store::OwnDenied own_denied);

/// The same for a Kubernetes API that something else than a URL names. `only_calicos`: none of Croft's own kinds of
/// objects are touched, whose definitions and rights a cluster of Calico's does not have (store::KubeStoreOptions).
[[nodiscard]] Result<std::unique_ptr<store::Store>> open_kube_store(const KubePlace& place, const Clock& clock,
                                                                    const StoreParts& parts, bool only_calicos = false);

/// The API of a `kube:` store, through a client of its own, whose requests a server has to answer within
/// `request_timeout`. Connects nothing. Error: as open_store. `clock` must outlive it.
[[nodiscard]] Result<std::unique_ptr<store::kube::Api>> open_kube_api(const std::string& url, const Clock& clock,
                                                                      const StoreParts& parts,
                                                                      std::chrono::nanoseconds request_timeout);

/// Looks through what a backend can check below its records: the pages of a SQLite file. Error: corrupt, and that only;
/// what stands in the way of looking is left to those who open the store.
[[nodiscard]] Result<void> check_store_pages(const std::string& url, const Clock& clock);

/// The same as open_store for an etcd cluster that something else than a URL names. Connects nothing: the first call
/// does.
[[nodiscard]] Result<std::unique_ptr<store::Store>> open_etcd_store(EtcdPlace place, const Clock& clock,
                                                                    RegistryMaker registry = nullptr);

}  // namespace croft::app
