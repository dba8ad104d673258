#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"

namespace croft::wire::cni {

/// The file beside croft-ipam that it becomes where it needs an etcd, a Kubernetes API or a cloud
/// (docs/adr/0019-plugin-files.md); calico-ipam is this file too.
inline constexpr const char* kSiblingName = "croft-ipam-cluster";

/// The plugin that gives a pod its interface, which is not Croft's part.
enum class MainPlugin : std::uint8_t {
  ptp,      ///< a pair of interfaces a pod, and routes: of the CNI project
  bridge,   ///< a bridge a node: of the CNI project
  calico,   ///< Calico's, which asks Croft for addresses
  flannel,  ///< flannel's, which asks host-local: Croft's
};
struct MainPluginName {
  std::string_view text;
  MainPlugin plugin;
};
inline constexpr std::array<MainPluginName, 4> kMainPlugins = {{{"ptp", MainPlugin::ptp},
                                                                {"bridge", MainPlugin::bridge},
                                                                {"calico", MainPlugin::calico},
                                                                {"flannel", MainPlugin::flannel}}};

/// What a node's network configuration list is made of.
struct NetworkList {
  std::string name =
      "k8s-pod-network";  ///< Calico's default: blocks and handles of a cluster of Calico's go on being right
  MainPlugin main = MainPlugin::ptp;
  std::string node;                             ///< its name, as the register has it
  std::string store;                            ///< URL, as the node sees it; not of flannel
  std::vector<std::string> pools_v4, pools_v6;  ///< by name; empty: as the register says
  bool assign_v4 = true, assign_v6 = false;
  std::int64_t mtu = 0;           ///< 0: not said
  bool masquerades = true;        ///< ptp, bridge: what leaves the pods' network
  std::string calico_kubeconfig;  ///< of Calico's plugin, as the node sees it
};

/// Which plugins such a list calls, besides Croft's: the runtime looks for them in its directory.
[[nodiscard]] std::vector<std::string> plugins_of(MainPlugin main);
/// The file's name unless another is asked for. A runtime takes the first by name: Croft's has to come before the main
/// plugin's own, which whoever brings that writes again and again (10-calico.conflist, 10-flannel.conflist).
[[nodiscard]] std::string_view network_file_of(MainPlugin main);
/// Under which name it calls Croft's.
[[nodiscard]] std::string_view ipam_name_of(MainPlugin main);

/// The file's text (CNI 1.0.0, network configuration lists), indented, with a line break behind it.
[[nodiscard]] std::string encode_network_list(const NetworkList& list);

/// Reads what encode_network_list() makes as Croft's plugin will when the runtime calls it with that, so that no node
/// gets a configuration with which each of its pods fails. Of flannel's, whose plugin makes Croft's configuration, only
/// the name. Error: invalid_argument with the plugin's own words; also for a text that is no UTF-8, which the file
/// would not have as it is.
[[nodiscard]] Result<void> check_network_list(const NetworkList& list);

/// Who gives the addresses of a network, as far as its configuration says.
struct AddressGiver {
  std::string program;         ///< the IPAM plugin; of a plugin that needs none that plugin itself
  std::string network;         ///< the network's name, under which it keeps what it gives
  std::string directory = {};  ///< of host-local, where another one than its own is named
  std::string datastore = {};  ///< of calico-ipam: kubernetes, etcdv3; empty: not said
  std::string store = {};      ///< of Croft's register, its URL; empty: not said
  /// All from which host-local gives; nullopt: not said here, as under flannel and of other programs.
  std::optional<std::vector<net::Prefix>> ranges = {};
  /// What decides is there twice, in any case: of such members a runtime that reads them into a structure merges the
  /// values, and one that hands them on sorts them. Nobody can tell what this one gives.
  bool is_unclear = false;
};

/// What a network configuration calls, a list or the one plugin of a .conf, as libcni and the plugins read it: bytes
/// that are no UTF-8 count as U+FFFD, of a member that is given twice the last counts, and in a plugin names of members
/// match in any case. Of what is one plugin and a list too both count: the file's name decides which a runtime takes.
struct NetworkCalls {
  std::string name;
  std::vector<std::string> types;            ///< of its plugins, of their delegates, and of the IPAM of both
  std::vector<NetworkCalls> delegates = {};  ///< whole networks that a plugin of it calls in its turn, as multus
  bool names_another = false;                ///< multus: its network is that of another file
  std::string other = {};                    ///< its name, or a path, where it is said (clusterNetwork)
  std::vector<AddressGiver> givers = {};     ///< of this one alone, without its name
  bool only_inlined = false;                 ///< loadOnlyInlinedPlugins: no plugins in the folder of its name
  bool is_list = false;                      ///< else the one plugin of a .conf
  bool is_whole = false;                     ///< libcni loads it, as far as its text says: a name, a type of each
                          ///< plugin, members of the right kind, a version that plugins of years know
  [[nodiscard]] bool has(std::string_view type) const;
  /// The name of the network that calls a plugin of this type: this one, or the first of its delegates, which go by its
  /// name where they have none.
  [[nodiscard]] std::optional<std::string> name_with(std::string_view type) const;
  /// Whether it calls a program of this name, by itself, by a delegate or by what flannel's plugin calls.
  [[nodiscard]] bool needs(std::string_view program) const;
  /// Of it and its delegates, each with the name of its network.
  [[nodiscard]] std::vector<AddressGiver> all_givers() const;
  /// Whether Croft gives its addresses: under another plugin's name that can't be seen.
  [[nodiscard]] bool is_of_croft() const;
};
/// Of one file: as large as containerd takes one (go-cni, namespace_opts of its configuration files).
inline constexpr std::size_t kNetworkBytesMax = std::size_t{2} << 20;
/// Error: invalid_argument, of what is no such configuration, or a larger one.
[[nodiscard]] Result<NetworkCalls> read_network_calls(std::string_view text);

/// Adds what a file of a list's folder calls. To a list that does not say loadOnlyInlinedPlugins libcni adds, from 1.3
/// on (CNI 1.1.0), the plugins of net.d/NAME/*.conf, by name, whatever the list's version. Error: as above; libcni
/// takes none of the list then.
[[nodiscard]] Result<void> add_plugin_of_folder(NetworkCalls& calls, std::string_view text);

/// What a configuration has and one that is to take its place has not, ready for a message: members of plugins of one
/// type ("mtu 1430", "ipam.ipv4_pools"), and whole plugins ("the plugin bandwidth"). What says nothing there, as 0 or
/// an empty text, is left out; of values only numbers are told. Nothing of what is no configuration.
[[nodiscard]] std::vector<std::string> members_lost(std::string_view ours, std::string_view theirs);

/// Whether a runtime takes a file of this name for a network configuration: `.conf`, `.conflist`, `.json` (libcni,
/// ConfFiles). It takes the first by name, bytewise.
[[nodiscard]] bool is_network_file(std::string_view name);

}  // namespace croft::wire::cni
