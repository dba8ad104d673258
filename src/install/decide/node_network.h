#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// A node has one network. This decides which configuration of a runtime's directory is another one, and what becomes of
// it (docs/runbooks/kubernetes-node.md#over-another-network). A runtime takes the first by name.
namespace croft::core {

/// A file that had a name before Croft, and is another's, is kept under it with this behind. No runtime reads such a
/// name.
inline constexpr std::string_view kBeforeCroft = ".before-croft";

/// The IPAM plugin that gives a network's addresses, and where it keeps them.
struct NetworkGiver {
  std::string program;  ///< empty: the network gives no addresses
  std::string records;  ///< a register's URL; of host-local its directory, which is the network's name
};

/// Whether both go by the same records, as far as they say.
[[nodiscard]] bool is_same_giver(const NetworkGiver& a, const NetworkGiver& b);

/// One configuration of the directory.
struct NodeNetwork {
  std::string file;           ///< its name in the directory
  std::string trouble = {};   ///< why it cannot be read; empty: it can
  std::string name = {};      ///< the network's
  std::string main = {};      ///< type of its first plugin
  NetworkGiver giver = {};    ///< of its first plugin that has one
  std::string node = {};      ///< `ipam.nodename` there
  bool is_of_croft = false;   ///< calls Croft, or has the mark of what is written under flannel
  bool is_as_wanted = false;  ///< equal to what is to be written, in any order of members
  /// Multus: its network is that of another file or the ones that it has inside.
  bool calls_others = false;
  std::string other = {};                   ///< Multus: `clusterNetwork`, a name or a path
  std::vector<NodeNetwork> delegates = {};  ///< Multus: copies inside it
};

/// An installation to be written, and what is known of the one before.
struct WantedNetwork {
  std::string file, name, node;
  NetworkGiver giver;
  std::string replaced = {};           ///< `--replace`: a network's name, or a file's
  std::set<std::string> written = {};  ///< files that an installation before wrote
};

/// The network's name when `--network-name` says none. It is part of every owner and of host-local's directory, so a
/// name that is in use stays: the recorded one, that of a configuration which calls Croft, or that of the main plugin's
/// own. Else flannel's `cbr0`, or `k8s-pod-network`.
[[nodiscard]] std::string name_of_network(const std::vector<NodeNetwork>& there, const std::string& recorded,
                                          const std::string& main);

/// Whether a runtime takes a file of this name for a network configuration (libcni, ConfFiles).
[[nodiscard]] bool is_network_file(std::string_view name);

struct NetworkVerdict {
  std::vector<std::string> set_aside;  ///< files of another network that somebody gave up with `--replace`
  std::vector<std::string> told;       ///< lines for people
};
/// Another network is a file that the runtime takes before ours; at a first installation also one behind it that gives
/// addresses by other records, or cannot be read, and is no example of a package. Croft's own file is another network
/// when it has another giver. Multus that delegates to ours alone is ours. Error: refused_for_safety, with the file,
/// the network and the ways out; also for a copy of our network inside Multus that names another node.
[[nodiscard]] Result<NetworkVerdict> judge_networks(const std::vector<NodeNetwork>& there, const WantedNetwork& own);

/// Before Croft's files are taken back: the other names in the directory, and nothing that is inside. Error:
/// refused_for_safety, when the runtime would go by another network, or a switched configuration still calls Croft.
[[nodiscard]] Result<void> judge_uninstall(const std::vector<std::string>& names, const std::set<std::string>& written,
                                           const std::string& main);

}  // namespace croft::core
