#include <string>
#include <string_view>
#include <utility>

#include "cli/croft/command_line.h"

namespace croft::app {
namespace {

using Example = std::pair<std::string_view, std::string_view>;  // the command, the line

constexpr Example kExamples[] = {
    {"", "croft pool create a --cidr 10.1.0.0/16"},
    {"", "croft ip list"},
    {"", "croft check"},
    {"pool create", "croft pool create a --cidr 10.1.0.0/16"},
    {"pool create", "croft pool create six --cidr fd00:1::/64 --gateway none --cooldown-seconds 60"},
    {"pool defaults", "croft pool defaults --ipv4-cidr 10.64.0.0/12 --dry-run"},
    {"pool set", "croft pool set a --cooldown-seconds 60 --priority 10"},
    {"pool list", "croft pool list"},
    {"pool list", "croft pool list -o wide --sort-by HELD"},
    {"pool show", "croft pool show"},
    {"pool show", "croft pool show a --show-blocks"},
    {"pool split", "croft pool split 4 --name a --gateways first --dry-run"},
    {"pool disable", "croft pool disable a"},
    {"pool enable", "croft pool enable a"},
    {"pool delete", "croft pool delete a --dry-run"},
    {"block list", "croft block list --node node-a"},
    {"block show", "croft block show 10.1.0.64/26"},
    {"ip", "croft ip list --pod default/web-0"},
    {"ip list", "croft ip list --namespace default --node node-a"},
    {"ip list", "croft ip list --pool a --watch"},
    {"ip show", "croft ip show 10.1.0.66"},
    {"ip release", "croft ip release 10.1.0.66 --dry-run"},
    {"ip release", "croft ip release --pod default/web-0"},
    {"ip release", "croft ip release --from-report first.json --from-report second.json"},
    {"node list", "croft node list -l zone=a"},
    {"node show", "croft node show node-a --plugin-kubeconfig /etc/cni/net.d/croft-kubeconfig"},
    {"node label", "croft node label node-a zone=a rack-"},
    {"node remove", "croft node remove node-a --dry-run"},
    {"node range", "croft node range show"},
    {"node range list", "croft node range list -o wide"},
    {"node range show", "croft node range show node-a"},
    {"node range config", "croft node range config --cluster-cidr 10.244.0.0/16,fd00:244::/48"},
    {"node range assign", "croft node range assign node-a"},
    {"node range release", "croft node range release node-a --dry-run"},
    {"node range subnet-env", "croft node range subnet-env node-a --out /run/flannel/subnet.env"},
    {"affinity release", "croft affinity release --node node-a --cidr 10.1.0.64/26"},
    {"affinity claim", "croft affinity claim 10.1.0.64/26 --node node-a"},
    {"agent status", "croft agent status"},
    {"agent status", "croft agent status --socket /run/croft/agent.sock -o json"},
    {"config show", "croft config show"},
    {"config set", "croft config set --strict-affinity true --max-blocks-per-host 4"},
    {"check", "croft check"},
    {"check", "croft check --cni-cache /var/lib/cni --node node-a --report today.json"},
    {"plan-capacity", "croft plan-capacity --nodes 1000 --pods 40 --block-size 26"},
    {"plan-capacity", "croft plan-capacity --nodes 1000 --growth 500 --against block-size=27"},
    {"plan-capacity", "croft plan-capacity --vary nodes=10,100,1000 --against way=alone"},
    {"who", "croft who 10.1.0.66 --at 2026-01-31T03:10:00Z"},
    {"history", "croft history default/web-0 --from 3d"},
    {"history", "croft history node-a --from 2h --csv"},
    {"history join", "croft history join flows.csv --time start --address srcaddr"},
    {"forecast", "croft forecast --sort-by POOL"},
    {"top", "croft top"},
    {"top", "croft top --map --pool a"},
    {"explain", "croft explain --node node-a"},
    {"explain", "croft explain --node node-a --pool a --ip 10.1.0.66"},
    {"host-local list", "croft host-local list --dir /var/lib/cni/networks/cbr0"},
    {"host-local check", "croft host-local check --dir /var/lib/cni/networks/cbr0"},
    {"host-local repair", "croft host-local repair --dir /var/lib/cni/networks/cbr0 --grace 5m --apply"},
    {"host-local import",
     "croft host-local import --dir /var/lib/cni/networks/cbr0 --pool a --pod-cidr 10.244.3.0/24 --dry-run"},
    {"service create", "croft service create web --type NodePort --tcp 80:8080"},
    {"service create", "croft service create -f services.yaml"},
    {"service update", "croft service update web --tcp 80:8080,443:8443"},
    {"service delete", "croft service delete web --namespace default --dry-run"},
    {"service list", "croft service list --all-namespaces"},
    {"service show", "croft service show web"},
    {"service audit", "croft service audit"},
    {"service repair", "croft service repair --apply"},
    {"store backup", "croft store backup /var/backups/croft.db"},
    {"store restore", "croft store restore /var/backups/croft.db --dry-run"},
    {"store new-epoch", "croft store new-epoch --store etcd:https://10.0.0.1:2379"},
    {"store copy", "croft store copy sqlite:/var/lib/croft/croft.db etcd:https://10.0.0.1:2379 --dry-run"},
    {"store copy", "croft store copy etcd:https://10.0.0.1:2379 kube:/etc/croft/kubeconfig"},
    {"store resume", "croft store resume --store etcd:https://10.0.0.1:2379"},
    {"migrate calico", "croft migrate calico --conflist /etc/cni/net.d/10-calico.conflist --apply"},
    {"reservation create", "croft reservation create printers --cidr 10.1.0.0/28"},
    {"reservation list", "croft reservation list"},
    {"reservation delete", "croft reservation delete printers"},
    {"record remove", "croft record remove pool a"},
    {"vpc", "croft vpc get pool"},
    {"vpc get", "croft vpc get node"},
    {"vpc get node", "croft vpc get node --kubernetes kube:/etc/kubernetes/admin.conf"},
    {"vpc get node", "croft vpc get node --agent node-a=10.0.0.2:7312 --agent node-b=10.0.0.3:7312"},
    {"vpc get pool", "croft vpc get pool -n 10.0.0.2 -o wide"},
    {"vpc get pod", "croft vpc get pod 10.0.4."},
    {"vpc get unuse", "croft vpc get unuse -n 10.0.0.2"},
    {"vpc show", "croft vpc show"},
    {"vpc show", "croft vpc show --agent unix:/run/cni-vpc-ipamd/ipamd.sock -o json"},
    {"vpc pop", "croft vpc pop 10.0.0.2 10.0.4.7 --dry-run"},
    {"vpc push", "croft vpc push 10.0.0.2"},
    {"vpc release", "croft vpc release 10.0.0.2 --dry-run"},
    {"vpc version", "croft vpc version"},
    {"version", "croft version"},
    {"completion", "source <(croft completion bash)"},
    {"man", "croft man /usr/local/share/man/man1"},
};

}  // namespace

std::vector<std::string> examples_of(std::string_view path) {
  std::vector<std::string> lines;
  for (const auto& [command, line] : kExamples) {
    if (command == path) lines.emplace_back(line);
  }
  if (!lines.empty()) return lines;
  // A noun without its own has that of its first verb.
  for (const auto& [command, line] : kExamples) {
    if (command.starts_with(std::string(path) + " ")) return {std::string(line)};
  }
  return lines;
}

}  // namespace croft::app
