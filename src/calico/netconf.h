#pragma once

// The network configuration of the personality `calico-ipam` (docs/notes/calico-ipam.md#plugin-configuration).
// docs/formats/calico-ipam.md has the table of members and says what differs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/reader.h"
#include "base/net/address.h"
#include "base/result.h"
#include "cni/format/config.h"
#include "cni/format/environment.h"
#include "cni/format/network.h"
#include "register/owner.h"

namespace croft::wire::cni {

inline constexpr std::size_t kEtcdEndpointsMax = 16;

struct DatastoreChoice {
  enum class Kind : std::uint8_t {
    store_url,   ///< `url` says it: `ipam.store` or the variable CROFT_STORE
    etcd,        ///< Calico's etcdv3
    kubernetes,  ///< the Kubernetes API; also when nothing was said, as in Calico
  } kind = Kind::kubernetes;
  std::string url;                     ///< only with store_url; unchecked
  std::vector<std::string> endpoints;  ///< only with etcd, at least one, each beginning with http:// or https://
  // Not with store_url; empty when not given. With kubernetes they take the place of what the kubeconfig says.
  std::string key_file, cert_file, ca_cert_file;  ///< paths; key and certificate come together or not at all
  // Only with etcd.
  std::string user, password;
  // Only with kubernetes; empty when not given.
  std::string kubeconfig;  ///< an absolute path; without it and `api_root`: what a pod is given
  std::string api_root;    ///< takes the place of the kubeconfig's servers; unchecked
  std::string token;       ///< takes the place of its token
  std::string api_group;   ///< as it is written
  friend bool operator==(const DatastoreChoice&, const DatastoreChoice&) = default;
};

/// The store's URL without files and passwords, as it is compared with an agent's: `etcd:http://10.0.0.1:2379,…`,
/// `kube:/etc/cni/net.d/calico-kubeconfig`.
[[nodiscard]] std::string url_of(const DatastoreChoice& choice);

/// The value of an environment variable; empty when it is not set.
using GetVariable = std::function<std::string(const char* name)>;

/// A member or an environment variable, under the name where it was found.
struct Setting {
  std::string name;
  std::string value{};
};
/// The members that say it, as they are written, and what only variables say.
struct DatastoreMembers {
  Setting type{"datastore_type"}, endpoints{"etcd_endpoints"}, discovery_srv{"etcd_discovery_srv"};
  Setting key_file{"etcd_key_file"}, cert_file{"etcd_cert_file"}, ca_cert_file{"etcd_ca_cert_file"};
  Setting scheme{"etcd_scheme"}, authority{"etcd_authority"}, user{}, password{};
  Setting kubeconfig{"kubernetes.kubeconfig"}, api_root{"kubernetes.k8s_api_root"}, token{}, api_group{};
  Setting k8s_key_file{"K8S_KEY_FILE"}, k8s_cert_file{"K8S_CERT_FILE"}, k8s_ca_file{}, insecure{}, service_host{};
};

/// Reads them from a configuration. `on_fault`: ObjectRules.
[[nodiscard]] MaybeFault read_datastore_members(const JsonAt& root, OnFault on_fault, DatastoreMembers& out);

/// The datastore as far as the members say it: of what they lead to nothing has to be usable from here, so that
/// endpoints, kubeconfig and api_root may be missing. Fault: no such datastore.
[[nodiscard]] MaybeFault datastore_of_members(const DatastoreMembers& members, DatastoreChoice& out);

inline constexpr std::int64_t kLogMegabytesMax = 100'000;

/// A member that nobody knows, with a name close to one that counts.
struct NearMiss {
  std::string member;  ///< with its section: "ipam.ipv4_pool"
  std::string meant;   ///< "ipv4_pools"
  friend bool operator==(const NearMiss&, const NearMiss&) = default;
};
inline constexpr std::size_t kNearMissesMax = 8;

/// A network configuration together with CNI_ARGS and the environment.
struct CalicoNetconf {
  std::string name;
  DatastoreChoice datastore;

  // The node's name, in the order of preference; empty when not given. After them comes the host's own name.
  std::string nodename;
  std::string nodename_file = "/var/lib/calico/nodename";
  std::string hostname;
  /// The main plugin's: it makes no pod before the file exists. An IPAM plugin goes on to the next source.
  bool nodename_file_optional = false;

  std::string ipam_lock_file = "/var/run/calico/ipam.lock";
  std::optional<std::string> log_file;  ///< `log_file_path`
  std::int64_t log_megabytes_max = 100;
  bool log_only_failures = false;  ///< `log_level` is "error"

  bool single_block = false;  ///< `windows_use_single_network`: the node may have one block
  bool assign_v4 = true;
  bool assign_v6 = false;
  net::PerFamily<std::vector<core::AskedPool>> asked_pools;  ///< `ipv4_pools`, `ipv6_pools`

  // The address that CNI_ARGS ask for.
  std::optional<net::Address> requested_address;
  core::PodIdentity pod;  ///< members the runtime did not say are empty

  std::vector<NearMiss> near_misses;  ///< ADD only: the first kNearMissesMax

  /// Whether Kubernetes called: pod and namespace are known (docs/notes/calico-ipam.md#plugin-configuration).
  [[nodiscard]] bool names_pod() const { return !pod.name.empty() && !pod.namespace_name.empty(); }
  friend bool operator==(const CalicoNetconf&, const CalicoNetconf&) = default;
};

/// Decodes a configuration. A member of the configuration overrides its environment variable. Unknown members are
/// ignored, as by Calico: a real configuration may have any; those that look like a slip are in `near_misses`. DEL
/// needs `name` and the datastore; every other member, and CNI_ARGS, counts as absent when it has a fault. Errors name
/// the member, its value and what to do:
/// - code 999 for a JSON type that does not fit;
/// - code 7 for a value that is not allowed, of a member or a variable;
/// - code 4 for CNI_ARGS.
Checked<CalicoNetconf> decode_calico_netconf(const Network& network, const std::string& args, Command command,
                                             const GetVariable& variable);

inline constexpr std::size_t kNodenameFileBytesMax = 4096;

/// The name in Calico's file of the node's name (`nodename_file`): what it has without white space around it; empty
/// when it has nothing else. Error: invalid_argument, which repeats nothing of the content: who writes the network
/// configuration names the file, and may not read it (docs/threat-model.md).
[[nodiscard]] Result<std::string> decode_nodename_file(std::string_view content);

}  // namespace croft::wire::cni
