#include "cli/croft/command_line.h"

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/texts.h"
#include "cli/build_commit.h"
#include "cli/command_model.h"
#include "cli/program.h"
#include "cni/error_table.h"
#include "ipam/use/damage_reporting_store.h"
#include "os/files.h"
#include "os/look_up.h"
#include "os/process.h"

// The common parts of all commands, and the tree of all commands.

namespace croft::app {

StoreParts operator_parts() { return {kubernetes_registry, os::look_up_host, store::kube::make_service_mappings}; }

namespace {

/// An absent store is an unreachable one; an absent pool or address is an ordinary error.
[[nodiscard]] Result<std::unique_ptr<store::Store>> or_away(Result<std::unique_ptr<store::Store>> opened,
                                                            std::string_view if_absent) {
  if (!opened && opened.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::unavailable, opened.error().message + std::string(if_absent));
  }
  return opened;
}

}  // namespace

Result<std::unique_ptr<store::Store>> open_by_url(const std::string& url, store::OpenMode mode, const Clock& clock,
                                                  std::string_view if_absent) {
  return or_away(open_store(url, mode, clock, operator_parts()), if_absent);
}

namespace {

/// The server that refuses a read says which right lacks; the rest is the request and the account.
[[nodiscard]] std::string right_in(const std::string& refusal) {
  const std::size_t from = refusal.find("cannot ");
  return from == refusal.npos ? refusal : refusal.substr(from, refusal.find(" (", from) - from);
}

}  // namespace

Result<engine::Context> CommandLine::open(bool create) {
  return take(open_by_url(store_url, create ? store::OpenMode::create : store::OpenMode::existing, clock, if_absent()));
}

Result<engine::Context> CommandLine::open_to_look() {
  return take(or_away(open_store_to_look(store_url, clock, operator_parts(),
                                         [this](const Error& why) { note_not_read("what is Croft's own", why); }),
                      if_absent()));
}

std::string_view CommandLine::if_absent() const {
  return is_default_store ? "; the register of a cluster is named with --kubeconfig or --store" : "";
}

Result<engine::Context> CommandLine::take(Result<std::unique_ptr<store::Store>> opened) {
  if (!opened) return fail(opened.error());
  const auto* const looking = dynamic_cast<store::LookOnly*>(opened->get());
  pausable = dynamic_cast<store::Pausable*>(looking != nullptr ? &looking->looked_at() : opened->get());
  // Records that are left out of an answer are named beside it, once.
  store = std::make_unique<engine::DamageReportingStore>(
      *std::move(opened),
      [](const store::Key&, const Error& damage) { warn("damaged record, set aside: " + damage.message); });
  return engine::Context{*store, clock, random};
}

void CommandLine::note_not_read(const std::string& what, const Error& why) {
  not_read[right_in(why.message)].insert(what);
}

std::string not_read_text(const CommandLine& line) {
  if (line.not_read.empty()) return {};
  std::string text;
  for (const auto& [right, what] : line.not_read) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", fmt::join(what, ", "), right);
  }
  return fmt::format("croft: not judged, as this account may not read it: {}\n", printable(text, Printed::line));
}

Result<void> CommandLine::choose_store(bool is_kubectl_plugin) {
  const bool asks_kubernetes = !context.empty() || !kubeconfig.empty();
  is_default_store = store_url.empty() && !asks_kubernetes && !is_kubectl_plugin;
  if (store_url.empty()) store_url = is_default_store ? edge::kDefaultStoreUrl : "kube:";
  const bool is_kube = store::scheme_of(store_url) == store::Scheme::kube;
  if (!asks_kubernetes) {
    if (is_kube) cluster_url = store_url;
    return {};
  }
  const char* flag = context.empty() ? "--kubeconfig" : "--context";
  if (!is_kube && asks_cluster) {
    TRY(cluster_url, with_kube_flags("kube:", kubeconfig, context));
    if (!kubeconfig.empty())
      cluster_words += " --kubeconfig " + in_shell_quotes_if_needed(os::absolute_path(kubeconfig));
    if (!context.empty()) cluster_words += " --context " + in_shell_quotes_if_needed(context);
    return {};
  }
  if (!is_kube) {
    return fail(ErrorCode::invalid_argument,
                "{} is for a store in a Kubernetes API, and {} is none: give --store kube: or leave it out", flag,
                echo(store::without_user(store_url)));
  }
  TRY(store_url, with_kube_flags(store_url, kubeconfig, context));
  cluster_url = store_url;
  return {};
}

bool CommandLine::in_colour() const {
  if (colour == "auto") return os::standard_output_is_terminal() && std::getenv("NO_COLOR") == nullptr;
  return colour == "always";
}

std::string CommandLine::data_text(const Data& data) const {
  return printable(output == Output::yaml ? data.yaml() : data.json(), Printed::json);
}

void print(const std::string& text, Printed how) {
  if (!os::write_standard_output(text, how)) std::exit(static_cast<int>(edge::ExitCode::error));
}

void tell(const std::string& text) { static_cast<void>(os::write_standard_error(text + "\n")); }

void warn(const std::string& text) { tell("croft: " + printable(text, Printed::line)); }

Result<net::Address> address_argument(const std::string& name, const std::string& text) {
  auto address = net::Address::parse(text);
  if (!address) return fail(address.error().in(name));
  return *address;
}

Result<net::Prefix> prefix_argument(const std::string& name, const std::string& text) {
  auto prefix = net::Prefix::parse(text);
  if (!prefix) return fail(prefix.error().in(name));
  return *prefix;
}

namespace {

void add_common(CLI::App& app, CommandLine& line) {
  app.add_option("--store", line.store_url,
                 "Store to work on: sqlite:/absolute/path.db, etcd:https://…, kube:/path/kubeconfig")
      ->envname("CROFT_STORE")
      ->default_str(edge::kDefaultStoreUrl);
  app.add_option(
      "--kubeconfig", line.kubeconfig,
      "Kubeconfig of a store in a Kubernetes API (default: as kubectl finds it); without --store that API is "
      "the store; beside another store, the cluster that `check` and `ip release` ask for pods");
  app.add_option("--context", line.context,
                 "Context of the kubeconfig; without --store that cluster's API is the store");
  static const std::map<std::string, CommandLine::Output> outputs{{"table", CommandLine::Output::table},
                                                                  {"wide", CommandLine::Output::wide},
                                                                  {"json", CommandLine::Output::json},
                                                                  {"yaml", CommandLine::Output::yaml}};
  app.add_option_function<std::string>(
         "-o,--output", [&line](const std::string& name) { line.output = outputs.at(name); },
         "Output format: table, wide, json or yaml")
      ->check(CLI::IsMember(outputs))
      ->default_str("table");
  app.add_option("--colour,--color", line.colour, "Colour: auto (only on a terminal), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->default_val("auto");
}

/// The nouns, in the order in which help lists them.
constexpr AddCommands* kNouns[] = {
    add_pool_commands,    add_block_commands,  add_ip_commands,          add_node_commands,    add_affinity_commands,
    add_agent_commands,   add_config_commands, add_check_command,        add_explain_command,  add_plan_command,
    add_history_commands, add_top_command,     add_host_local_commands,  add_service_commands, add_store_commands,
    add_migrate_commands, add_record_commands, add_reservation_commands, add_vpc_commands,     add_self_commands,
};

/// One is as good as many, and `ls` as `list`: `croft pools list`, `croft ip ls`.
void add_aliases(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    const std::string& name = command->get_name();
    for (const char* noun : {"agent", "pool", "block", "ip", "node", "service", "record", "reservation", "range"}) {
      const bool is_noun = !command->get_subcommands([](CLI::App*) { return true; }).empty();
      if (is_noun && name == noun) command->alias(name + "s");
    }
    if (name == "affinity") command->alias("affinities");
    if (name == "list") command->alias("ls");
    add_aliases(*command);
  }
}

}  // namespace

CLI::App* add_noun(CLI::App& app, const char* name, const char* help) {
  CLI::App* const noun = app.add_subcommand(name, help);
  noun->require_subcommand(1);
  noun->fallthrough();
  return noun;
}

void add_everything(CLI::App& app, CommandLine& line) {
  use_help_pages(app, examples_of);
  app.require_subcommand(1);
  app.fallthrough();
  add_common(app, line);
  for (AddCommands* const add : kNouns) add(app, line);
  add_aliases(app);
}

// The program about itself: croft version, completion, man.

std::string version_text() {
  return std::string("croft ") + CROFT_VERSION + commit_text() + "\nbuilt with " + CROFT_LIBRARIES;
}

void add_self_commands(CLI::App& app, CommandLine& line) {
  app.add_subcommand("version", "Show the version, its commit and the libraries it is built with")->callback([&line] {
    line.run = [](CommandLine&) -> Result<int> {
      print(version_text() + "\n");
      return 0;
    };
  });

  add_page_commands(app, examples_of, 1, [&line](std::function<Result<int>()> run) {
    line.run = [run = std::move(run)](CommandLine&) { return run(); };
  });
}

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
    {"history", "croft history node-a --from 2h -o json"},
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
