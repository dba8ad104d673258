#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"
#include "install/decide/node_network.h"

namespace croft::wire {

/// As large as containerd takes a configuration (go-cni).
inline constexpr std::size_t kNodeNetworkBytesMax = std::size_t{2} << 20;

/// A network configuration, a list or the one plugin of a .conf. `ours`: the text that is to be written, for the
/// comparison. A text that is none has `trouble`; names of members count as they are written.
[[nodiscard]] core::NodeNetwork read_node_network(const std::string& file, std::string_view text,
                                                  std::string_view ours = {});

/// The `networking` of a kubeadm ClusterConfiguration (kubeadm.k8s.io/v1beta3 and v1beta4), as kubeadm keeps it in the
/// ConfigMap kubeadm-config of kube-system.
struct KubeadmNetworking {
  std::vector<net::Prefix> pod_subnets;      ///< `podSubnet`; empty: not said
  std::vector<net::Prefix> service_subnets;  ///< `serviceSubnet`; empty: not said
  friend bool operator==(const KubeadmNetworking&, const KubeadmNetworking&) = default;
};

/// Reads the text `data.ClusterConfiguration` of the ConfigMap; an empty one says nothing. The first YAML document of
/// the kind counts. Error: invalid_argument, naming the member, also for host bits, for two subnets of one
/// family, and for more than 1 MiB, 20,000 values or 32 of them inside each other.
[[nodiscard]] Result<KubeadmNetworking> parse_kubeadm_config(std::string_view yaml);

/// The files that `croftd install` wrote on a node, so that this and nothing else is taken back. Names are those of
/// files in the runtime's two directories.
struct InstallRecord {
  std::set<std::string> programs = {};
  bool kubeconfig = false;
  std::set<std::string> networks = {};  ///< of several only one is there; the others were renamed
  std::string network = {};             ///< its name, which the next installation keeps
  std::string main = {};                ///< `--main-plugin`
  friend bool operator==(const InstallRecord&, const InstallRecord&) = default;
};

/// The file's name, beside the network configurations; a runtime takes it for none.
inline constexpr const char* kInstallRecordName = "croft-install.record";
inline constexpr std::size_t kInstallRecordBytesMax = 65536;
/// The plugin's kubeconfig, there too.
inline constexpr const char* kKubeconfigName = "croft-kubeconfig";

/// A plain name of a file in a directory: letters, digits, `.`, `-` and `_`, no dot in front, at most 200 bytes.
[[nodiscard]] bool is_install_name(std::string_view name);

/// One line of JSON: {"version": 1, "files": [{"kind": "program", "name": "croft-ipam"}], "network":
/// "k8s-pod-network", "mainPlugin": "ptp"}. The kinds are program, kubeconfig and network.
[[nodiscard]] std::string encode(const InstallRecord& record);
/// Other members are passed over. Errors: corrupt; newer_version.
[[nodiscard]] Result<InstallRecord> decode_install_record(std::string_view json);

}  // namespace croft::wire
