#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/daemon/daemon.h"
#include "agent/daemon/plugin_kubeconfig.h"
#include "base/result.h"
#include "cni/format/network_list.h"

namespace croft::app {

inline constexpr const char* kDefaultPrograms = "/opt/cni/bin";
inline constexpr const char* kDefaultConfigurations = "/etc/cni/net.d";

/// The flags of `croftd install` (docs/runbooks/kubernetes-node.md).
struct InstallOptions {
  std::string programs = kDefaultPrograms;
  std::string configurations = kDefaultConfigurations;
  std::string configurations_on_host;  ///< empty: the same
  std::string containerd = "/etc/containerd/config.toml";
  std::string source;
  std::string main;
  std::string network_name;  ///< empty: name_of_network()
  std::string replaced;      ///< a network's name, or a file's
  std::string network_file;  ///< empty: network_file_of the main plugin
  std::vector<std::string> also_as;
  std::int64_t wait_s = 0;  ///< for STATUS
  bool no_v4 = false, no_masquerade = false;
  bool no_network = false;  ///< the node's own configuration calls the plugin (docs/runbooks/migrate.md)
  bool skip_status = false, uninstall = false, dry_run = false, is_forced = false;
  std::string store = "kube:";  ///< as this process sees it
  wire::cni::NetworkList network;
  PluginKubeconfigOptions kubeconfig;
};

/// Writes the plugin, its kubeconfig and the network configuration, or nothing. Errors: those of judge_networks() and
/// ask_plugin_status(); invalid_argument, of a flag; of the files and the API.
[[nodiscard]] Result<int> install(InstallOptions options, const Daemon& daemon);

/// Takes back what the record names. Errors: those of judge_uninstall(); of the files.
[[nodiscard]] Result<int> uninstall(const InstallOptions& options, const Daemon& daemon);

}  // namespace croft::app
