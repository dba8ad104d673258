#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cni/format/network.h"

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

/// The parts of a node's network configuration list.
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

/// The list as the plugin of its first entry gets it from the runtime. Error: invalid_argument, of a text that is no
/// UTF-8, which the file would not have as it is, of what flannel would not be told, and of the network's name.
[[nodiscard]] Result<Network> network_as_called(const NetworkList& list);

}  // namespace croft::wire::cni
