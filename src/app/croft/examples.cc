#include "app/croft/examples.h"

#include <utility>

namespace croft::app {
namespace {

using Example = std::pair<std::string_view, std::string_view>;  // the command, the line

constexpr Example kExamples[] = {
    {"", "croft pool create a --cidr 10.1.0.0/16"},
    {"", "croft ip list"},
    {"", "croft check"},
    {"pool", "croft pool list"},
    {"pool create", "croft pool create a --cidr 10.1.0.0/16"},
    {"pool create", "croft pool create six --cidr fd00:1::/64 --gateway none --cooldown-seconds 60"},
    {"pool defaults", "croft pool defaults --ipv4-cidr 10.64.0.0/12 --dry-run"},
    {"pool list", "croft pool list"},
    {"pool list", "croft pool list -o wide --sort-by HELD"},
    {"pool show", "croft pool show"},
    {"pool show", "croft pool show a --show-blocks"},
    {"pool split", "croft pool split 4 --name a --gateways first --dry-run"},
    {"pool disable", "croft pool disable a"},
    {"pool enable", "croft pool enable a"},
    {"pool delete", "croft pool delete a --dry-run"},
    {"block", "croft block list"},
    {"block list", "croft block list --node node-a"},
    {"block show", "croft block show 10.1.0.64/26"},
    {"ip", "croft ip list --pod default/web-0"},
    {"ip list", "croft ip list --namespace default --node node-a"},
    {"ip list", "croft ip list --pool a --watch"},
    {"ip show", "croft ip show 10.1.0.66"},
    {"ip release", "croft ip release 10.1.0.66 --dry-run"},
    {"ip release", "croft ip release --pod default/web-0"},
    {"ip release", "croft ip release --from-report first.json --from-report second.json"},
    {"node", "croft node list"},
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
    {"affinity", "croft affinity release --node node-a --dry-run"},
    {"affinity release", "croft affinity release --node node-a --cidr 10.1.0.64/26"},
    {"affinity claim", "croft affinity claim 10.1.0.64/26 --node node-a"},
    {"agent", "croft agent status"},
    {"agent status", "croft agent status"},
    {"agent status", "croft agent status --socket /run/croft/agent.sock -o json"},
    {"config", "croft config show"},
    {"config show", "croft config show"},
    {"config set", "croft config set --strict-affinity true --max-blocks-per-host 4"},
    {"check", "croft check"},
    {"check", "croft check --cni-cache /var/lib/cni --node node-a --report today.json"},
    {"explain", "croft explain --node node-a"},
    {"explain", "croft explain --node node-a --pool a --ip 10.1.0.66"},
    {"host-local", "croft host-local list --dir /var/lib/cni/networks/cbr0"},
    {"host-local list", "croft host-local list --dir /var/lib/cni/networks/cbr0"},
    {"host-local check", "croft host-local check --dir /var/lib/cni/networks/cbr0"},
    {"host-local repair", "croft host-local repair --dir /var/lib/cni/networks/cbr0 --grace 5m --apply"},
    {"host-local import", "croft host-local import --dir /var/lib/cni/networks/cbr0 --pool a --dry-run"},
    {"service", "croft service list --all-namespaces"},
    {"service create", "croft service create web --type NodePort --tcp 80:8080"},
    {"service create", "croft service create -f services.yaml"},
    {"service update", "croft service update web --tcp 80:8080,443:8443"},
    {"service delete", "croft service delete web --namespace default --dry-run"},
    {"service list", "croft service list --all-namespaces"},
    {"service show", "croft service show web"},
    {"service audit", "croft service audit"},
    {"service repair", "croft service repair --apply"},
    {"service range", "croft service range servicenodeports"},
    {"store", "croft store backup /var/backups/croft.db"},
    {"store backup", "croft store backup /var/backups/croft.db"},
    {"store restore", "croft store restore /var/backups/croft.db --dry-run"},
    {"store crds", "croft store crds"},
    {"store crds", "croft store crds --calico-kinds"},
    {"record", "croft record remove pool a"},
    {"record remove", "croft record remove pool a"},
    {"vpc", "croft vpc get pool"},
    {"vpc get", "croft vpc get node"},
    {"vpc get node", "croft vpc get node --agent node-a=10.0.0.2:7312 --agent node-b=10.0.0.3:7312"},
    {"vpc get pool", "croft vpc get pool -n 10.0.0.2 -o wide"},
    {"vpc get pod", "croft vpc get pod 10.0.4."},
    {"vpc get unuse", "croft vpc get unuse -n 10.0.0.2"},
    {"vpc pop", "croft vpc pop 10.0.0.2 10.0.4.7 --dry-run"},
    {"vpc push", "croft vpc push 10.0.0.2"},
    {"vpc release", "croft vpc release 10.0.0.2 --dry-run"},
    {"vpc version", "croft vpc version"},
    {"vpc certificates", "croft vpc certificates --directory /etc/croft/vpc --node node-a --node node-b"},
    {"vpc certificates", "croft vpc certificates --directory /etc/croft/vpc --node node-a -o yaml"},
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
  return lines;
}

}  // namespace croft::app
