#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "calico/crd.h"
#include "ipam/door/croft_ipam.h"
#include "store/etcd/etcd_store.h"
#include "store/forwarding_store.h"
#include "store/kube/api.h"
#include "store/kube/format/kubeconfig.h"
#include "store/kube/object_mapping.h"
#include "store/store.h"

namespace croft::app {

/// Where an etcd cluster is and how to speak to it.
struct EtcdPlace {
  std::vector<std::string> endpoints;  ///< `https://10.0.0.1:2379`; numeric
  std::string ca_file, certificate_file, key_file;
  std::string server_name;  ///< the name in the members' certificates, when it is not their address
  std::string user, password_file;
  std::string password;  ///< when there is no file of it; never from a URL
  /// The kube-apiservers' --etcd-prefix, when Services are those of Kubernetes; empty: they are Croft's own.
  std::string kubernetes_prefix;
};

/// Reads
/// `etcd:https://10.0.0.1:2379,https://10.0.0.2:2379?ca=FILE&cert=FILE&key=FILE&name=NAME&user=U&password-file=F`, and
/// `kubernetes=/registry`. For https, files that are not given come from the environment as Calico's plugin reads it:
/// ETCD_CA_CERT_FILE, ETCD_CERT_FILE, ETCD_KEY_FILE. Error: invalid_argument naming the part.
[[nodiscard]] Result<EtcdPlace> parse_etcd_url(const std::string& url);

/// Error: invalid_argument, naming the endpoint, when a password would go over a connection that anybody on the way can
/// read. The same when some endpoints are https and others are not: whoever can cut the ones is asked instead of them.
[[nodiscard]] Result<void> check_secrecy(const EtcdPlace& place);

/// Where a Kubernetes API is, and how Calico's objects are called there.
struct KubePlace {
  std::string kubeconfig;                                ///< absolute path; empty: see kube_access
  std::string context;                                   ///< of it; empty: its current one
  std::optional<wire::calico::ApiGroup> group;           ///< nothing: the API is asked
  std::optional<wire::kube::KubeOverrides> overrides{};  ///< of what the kubeconfig says
};

/// The group that a text of Calico's configuration means, in any case of letters, as Calico's plugin reads it: what is
/// not v3 is v1; nothing for an empty one.
[[nodiscard]] std::optional<wire::calico::ApiGroup> calico_group(const std::string& text);

/// Reads `kube:` or `kube:/path/kubeconfig?context=NAME&group=projectcalico.org/v3`. A group that is not given comes
/// from CALICO_API_GROUP. Error: invalid_argument naming the part.
[[nodiscard]] Result<KubePlace> parse_kube_url(const std::string& url);

/// The query that names the same group in another URL of this kind: `?group=projectcalico.org/v3`; empty where none was
/// given.
[[nodiscard]] std::string group_part(const KubePlace& place);

/// The URL with what `croft --kubeconfig` and `--context` say; either may be empty. A relative path is one from the
/// current directory. Error: invalid_argument when the URL says otherwise, or can't have it.
[[nodiscard]] Result<std::string> with_kube_flags(const std::string& url, const std::string& kubeconfig,
                                                  const std::string& context);

/// The API and the identity of the kubeconfig. Without one as kubectl chooses: the one file of KUBECONFIG, then
/// ~/.kube/config, then a pod's own access. None is read where the overrides name a server. Errors: of read_kubeconfig
/// and override_access; invalid_argument when there is none of them, or KUBECONFIG names several files.
[[nodiscard]] Result<wire::kube::KubeAccess> kube_access(const KubePlace& place);

/// The argument of open_store in a program that works on Kubernetes' records: kubernetes_registry. Others don't link
/// what it needs.
using RegistryMaker = Result<std::unique_ptr<store::etcd::Registry>> (*)(const EtcdPlace&);
[[nodiscard]] inline Result<std::unique_ptr<store::etcd::Registry>> kubernetes_registry(const EtcdPlace& place) {
  store::etcd::KubernetesOptions options;
  options.services = !place.kubernetes_prefix.empty();
  if (options.services) options.prefix = place.kubernetes_prefix;
  return store::etcd::make_kubernetes_registry(std::move(options));
}
/// Likewise of Services in a Kubernetes API: store::kube::make_service_mappings.
using ServiceMappings = std::vector<std::unique_ptr<store::kube::ObjectMapping>> (*)();

/// The parts that a program gives to its stores.
struct StoreParts {
  RegistryMaker registry = nullptr;
  /// os::look_up_host; without it API servers have numeric addresses, as the plugin is static and can look up none.
  Result<std::vector<std::string>> (*look_up)(const std::string& name, Deadline deadline) = nullptr;
  ServiceMappings services = nullptr;
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
                                                                       store::OnOwnDenied own_denied);

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
