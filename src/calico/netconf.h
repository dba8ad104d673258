#pragma once
// The network configuration of the personality `calico-ipam` (docs/notes/calico-ipam.md#plugin-configuration).
// docs/formats/calico-ipam.md has the table of members and says what differs.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/document.h"
#include "base/net/address.h"
#include "base/net/per_family.h"
#include "base/result.h"
#include "calico/datastore.h"
#include "cni/format/config.h"
#include "cni/format/environment.h"
#include "cni/format/error.h"
#include "cni/format/network.h"
#include "register/owner.h"

namespace croft::wire::cni {

inline constexpr const char* kDefaultNodenameFile = "/var/lib/calico/nodename";
inline constexpr const char* kDefaultIpamLockFile = "/var/run/calico/ipam.lock";
inline constexpr std::int64_t kDefaultLogMegabytes = 100;
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
  std::string nodename_file = kDefaultNodenameFile;
  std::string hostname;
  /// The main plugin's: it makes no pod before the file exists. An IPAM plugin goes on to the next source.
  bool nodename_file_optional = false;

  std::string ipam_lock_file = kDefaultIpamLockFile;
  std::optional<std::string> log_file;  ///< `log_file_path`
  std::int64_t log_megabytes_max = kDefaultLogMegabytes;
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
  [[nodiscard]] bool is_kubernetes() const { return !pod.name.empty() && !pod.namespace_name.empty(); }
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
