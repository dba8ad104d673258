#include "vpc/daemon/vpc_agent_options.h"

#include "vpc/format/messages.h"

namespace croft::app {

void add_vpc_agent_options(CLI::App& command, VpcAgentOptions& options) {
  command
      .add_option("--low-water-mark,--availablePodIPLowWatermark", options.low,
                  "Minimum number of free addresses to keep. Set both marks to 0 to keep no stock")
      ->capture_default_str();
  command
      .add_option("--high-water-mark,--availablePodIPHighWatermark", options.high,
                  "More free addresses than this go back to the cloud")
      ->capture_default_str();
  command
      .add_option("--cooldown-seconds,--cooldownPeriodSeconds", options.cooldown_s,
                  "Seconds a released address rests before another pod gets it; 0: none")
      ->check(CLI::Range(0, 1200))
      ->capture_default_str();
  command.add_flag("--calico-policy,--calicoPolicyFlag", options.calico_policy,
                   "Write each pod's address into its annotation cni.projectcalico.org/podIP");
  command.add_option("--node", options.node, "Name of this node (default: its host name)")->envname("KUBE_NODE_NAME");
  command.add_option("--socket", options.socket, "Unix socket of plugins and operators")->capture_default_str();
  command.add_option("--user", options.users, "User IDs that may connect to it")->capture_default_str();
  command.add_option("--store", options.store, "Where the stock is recorded: a file of this node's own")
      ->envname("CROFT_VPC_STORE")
      ->capture_default_str();
  command.add_option("--api", options.cloud.api, "URL of UCloud's API (default: the one inside a VPC)")
      ->envname("UCLOUD_API_ENDPOINT");
  command.add_option("--metadata", options.cloud.metadata, "URL of the instance's metadata (default: UCloud's)");
  command.add_option("--region", options.cloud.region, "Region (default: the metadata's)")->envname("UCLOUD_REGION_ID");
  command.add_option("--project", options.cloud.project, "Project (default: the metadata's)")
      ->envname("UCLOUD_PROJECT_ID");
  command.add_option("--vpc", options.cloud.vpc, "VPC (default: the metadata's)")->envname("UCLOUD_VPC_ID");
  command.add_option("--subnet", options.cloud.subnet, "Subnet to take addresses from (default: the interface's)")
      ->envname("UCLOUD_SUBNET_ID");
  command.add_option("--interface", options.interface, "Interface to probe on (default: the one with the cloud's MAC)");
  command.add_flag("--no-probe", options.no_probe, "Skip the ARP probe of new addresses");
  command
      .add_option("--probe-unit-milliseconds", options.probe_wait_ms,
                  "PROBE_WAIT of RFC 5227; scales the whole window of the probe")
      ->check(CLI::Range(10, 10000))
      ->capture_default_str();
  command
      .add_option("--max-addresses", options.node_max,
                  "Maximum number of addresses of this node, of all states; 0: no limit")
      ->capture_default_str();
  command
      .add_option("--reconcile-seconds", options.reconcile_s,
                  "Seconds between comparisons of records, cloud, pods and host")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command.add_option("--grace-seconds", options.grace_s, "Seconds a difference has to be seen before it is acted on")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command.add_option("--young-seconds", options.young_s, "Seconds for which a new record is left alone")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command
      .add_option("--doubt-seconds", options.doubt_s,
                  "Seconds within which the cloud may still do what it never answered")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command
      .add_option("--release-unknown-after-seconds", options.release_unknown_after_s,
                  "Seconds after which an unknown address goes back to the cloud; 0: never by itself")
      ->capture_default_str();
  command.add_option(
      "--peer", options.peers,
      "Another node's agent, NODE=ADDRESS:PORT; may be given several times. Others are found in the cluster");
  command.add_option("--listen", options.listen, "ADDRESS:PORT for the agents of other nodes, with certificates")
      ->envname("LISTEN_TCP_ADDR");
  command.add_option("--tls-ca", options.tls_ca, "CA of the agents' certificates");
  command.add_option("--tls-certificate", options.tls_certificate, "This agent's certificate");
  command.add_option("--tls-key", options.tls_key, "Its key, readable to its user only");
  command.add_flag(
      "--insecure-peers", options.insecure_peers,
      "Speak plain gRPC with other nodes' agents and operators, as UK8S' own agent and cnivpctl do: whoever "
      "reaches --listen moves addresses. For the time of an upgrade");
  command.add_flag("--operators-over-tcp", options.operators_over_tcp,
                   "Let operators in over --listen too, for croft vpc from another node");
  command.add_option(
      "--kubernetes", options.kubernetes,
      "kube: or kube:/path/kubeconfig: the cluster's pods, and where the agents find each other (default: "
      "kube: inside a cluster); 'none': no API");
  command.add_option("--metrics", options.metrics, "ADDRESS:PORT for /metrics, /healthz and /readyz");
  command
      .add_option("--log-directory", options.log_directory, "Directory of the log file; 'none': standard error alone")
      ->capture_default_str();
  // As Go's flags, of a flag that is given twice the last counts.
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() <= 1) option->take_last();
  }
}

}  // namespace croft::app
