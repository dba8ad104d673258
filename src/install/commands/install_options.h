#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "cni/format/network_list.h"
#include "install/commands/plugin_kubeconfig.h"

// What `croftd install` is told, and how it answers (docs/runbooks/kubernetes-node.md).
namespace croft::app {

/// Croft's plugin, as a network configuration calls it.
inline constexpr const char* kPluginName = "croft-ipam";
/// Its file for directories, which flannel's network calls.
inline constexpr const char* kHostLocalName = "host-local";
inline constexpr const char* kDefaultPrograms = "/opt/cni/bin";
inline constexpr const char* kDefaultConfigurations = "/etc/cni/net.d";
/// Where host-local keeps what it gave, a directory for each network.
inline constexpr const char* kHostLocalDirectory = "/var/lib/cni/networks";
/// For one question to a register or an API.
inline constexpr std::chrono::seconds kInstallProbeTime{10};
/// For a list, all its pages: 5,000 nodes are ten.
inline constexpr std::chrono::seconds kInstallListTime{60};
inline constexpr std::chrono::seconds kPoolsLookEvery{1};
/// For its turn: another one waits for an API meanwhile.
inline constexpr std::chrono::seconds kInstallTurnTime{60};

struct InstallOptions {
  std::string programs = kDefaultPrograms;
  std::string configurations = kDefaultConfigurations;
  std::string programs_on_host, configurations_on_host;
  std::string subnet_env = "/run/flannel/subnet.env";
  std::string containerd = "/etc/containerd/config.toml";
  std::string source;
  std::string main;
  std::string network_name;      ///< empty: that of before, else the main plugin's, else the default
  std::string replaced_network;  ///< the name of one whose pods are gone, or known
  std::string replaced_store;    ///< the URL of a register of which the same is so
  std::string network_file;      ///< empty: network_file_of the main plugin
  std::vector<std::string> also_as;
  std::string store = "kube:";
  std::string node;
  bool assign_v6 = false, no_v4 = false, no_masquerade = false;
  std::int64_t pools_wait_s = 0;  ///< for pools that are expected
  bool skip_probe = false, uninstall = false, dry_run = false, is_forced = false;
  bool no_network = false;  ///< the node's own configuration calls the plugin (docs/runbooks/migrate.md)
  wire::cni::NetworkList network;
  PluginKubeconfigOptions kubeconfig;
};

/// A store's URL as a network configuration has it, with the file that it names as this process sees that.
[[nodiscard]] std::string url_seen_from_here(const InstallOptions& options, std::string url);

/// From which host-local gives under flannel, as its agent on this node says; empty where that is not seen here.
[[nodiscard]] std::vector<net::Prefix> ranges_of_flannels_agent(const InstallOptions& options);

/// Directories of the host as a path without a slash behind it.
void trim_path(std::string& path);

/// To standard output, one line.
void tell(const std::string& line);

/// The same, however often it is looked at.
class ToldOnce {
 public:
  void operator()(std::string line) {
    if (told_.insert(line).second) tell(line);
  }

 private:
  std::set<std::string> told_;
};

}  // namespace croft::app
