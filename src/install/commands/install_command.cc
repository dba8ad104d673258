// The flags of croftd install (docs/runbooks/kubernetes-node.md).

#include <memory>
#include <string>

#include "agent/daemon/daemon.h"
#include "install/commands/install.h"

namespace croft::app {

void add_install_command(CLI::App& app, Daemon& daemon) {
  CLI::App* command =
      app.add_subcommand("install", "Put Croft's plugin and its configuration on this node, or take them back");
  command->footer(
      "All files are drafted, the plugin answers STATUS with the drafts, and then they take their places: programs "
      "first, the network configuration, which makes the node ready, last. Run it again at any time.");
  const auto options = std::make_shared<InstallOptions>();
  command
      ->add_option("--main-plugin", options->main,
                   "Plugin that gives pods their interfaces: ptp, bridge, calico or flannel. There is no default")
      ->envname("CROFT_MAIN_PLUGIN");
  command->add_option("--cni-bin-dir", options->programs, "The runtime's directory of plugins")
      ->envname("CROFT_CNI_BIN_DIR")
      ->capture_default_str();
  command->add_option("--cni-conf-dir", options->configurations, "The runtime's directory of network configurations")
      ->envname("CROFT_CNI_CONF_DIR")
      ->capture_default_str();
  command
      ->add_option("--cni-conf-dir-on-host", options->configurations_on_host,
                   "The same directory as the node sees it, where a container sees it elsewhere (default: the same)")
      ->envname("CNI_NET_DIR");
  command
      ->add_option("--conflist-name", options->network_file,
                   "Name of the network configuration's file (default: 10-croft.conflist; under calico "
                   "05-croft.conflist, which comes before Calico's own)")
      ->envname("CNI_CONF_NAME");
  command->add_option("--network-name", options->network_name,
                      "Name of the network, part of every owner in the register (default: that of the installation "
                      "before; under calico and flannel that of their own configuration; k8s-pod-network)");
  CLI::Option* const replace = command->add_option(
      "--replace", options->replaced,
      "Set aside another network of this node, by its name or its file's: its pods keep addresses that "
      "Croft does not know (docs/runbooks/kubernetes-node.md)");
  command
      ->add_option("--containerd-config", options->containerd,
                   "containerd's configuration on this node: that it looks for plugins elsewhere is told")
      ->capture_default_str();
  command->add_option(
      "--source", options->source,
      "Directory that has croft-ipam, croft-ipam-cluster and host-local (default: that of this program, else "
      "libexec and the runtime's, where packages put them)");
  command
      ->add_option("--also-as", options->also_as,
                   "Install this plugin too: host-local, calico-ipam or croft-ipam; may be repeated")
      ->check(CLI::IsMember({"host-local", "calico-ipam", "croft-ipam"}));
  command->add_option("--store", options->store, "Store URL; of a kube: store the plugin gets a kubeconfig of its own")
      ->envname("CROFT_STORE")
      ->capture_default_str();
  command->add_option("--node", options->network.node, "Name of this node (default: its host name)")
      ->envname("CROFT_NODE");
  command->add_option("--ipv4-pool", options->network.pools_v4,
                      "Pool for IPv4; may be given several times (default: any)");
  command->add_option("--ipv6-pool", options->network.pools_v6,
                      "Pool for IPv6; may be given several times (default: any)");
  command->add_flag("--ipv6", options->network.assign_v6, "Give pods an IPv6 address too");
  command->add_flag("--no-ipv4", options->no_v4, "Give pods no IPv4 address");
  command->add_option("--mtu", options->network.mtu, "MTU of the pods' interfaces; 0: the plugin's own choice")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_flag("--no-masquerade", options->no_masquerade,
                    "Leave what leaves the pods' network as it is (ptp, bridge)");
  command->add_option(
      "--calico-kubeconfig", options->network.calico_kubeconfig,
      "Kubeconfig of Calico's plugin, as the node sees it (default: calico-kubeconfig beside the configuration)");
  add_plugin_kubeconfig_options(*command, options->kubeconfig);
  CLI::Option* const no_conflist = command->add_flag(
      "--no-conflist", options->no_network,
      "Write the plugin and its kubeconfig, and no network configuration: for a node whose own one is to "
      "call croft-ipam (croft migrate calico); instead of --main-plugin");
  command->add_flag("--no-probe", options->skip_status,
                    "Write the network configuration without asking the plugin STATUS, or whether the node is there");
  command
      ->add_option("--await-pools", options->wait_s,
                   "Seconds to ask STATUS again while it says \"try again later\", as before the first pool is made")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  CLI::Option* const uninstalls =
      command->add_flag("--uninstall", options->uninstall, "Take back all that was installed, and nothing else");
  replace->excludes(no_conflist)->excludes(uninstalls);
  command
      ->add_flag("--force", options->is_forced,
                 "With --uninstall: also where the runtime would go by another network then")
      ->needs(uninstalls);
  command->add_flag("--dry-run", options->dry_run, "Only tell what would be done");
  command->callback([options, &daemon] {
    daemon.run = [options, &daemon] {
      for (std::string* path : {&options->programs, &options->configurations, &options->configurations_on_host}) {
        while (path->size() > 1 && path->ends_with('/')) path->pop_back();
      }
      return options->uninstall ? uninstall(*options, daemon) : install(*options, daemon);
    };
  });
}

}  // namespace croft::app
