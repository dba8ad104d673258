#include <algorithm>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "cli/croft/command_line.h"
#include "cli/croft/filters.h"
#include "cli/croft/json_output.h"
#include "cni/error_table.h"
#include "ipam/use/assign.h"
#include "ipam/use/inspect.h"
#include "ipam/use/nodes.h"

namespace croft::app {
namespace {

struct ExplainOptions {
  std::string node, namespace_name, pod, use = "workload", family;
  std::vector<std::string> namespace_labels, pools, addresses;
};

core::PoolUse pool_use_of(const std::string& text) {
  return text == "tunnel" ? core::PoolUse::tunnel : core::PoolUse::workload;
}

[[nodiscard]] Result<core::Labels> labels_of(const std::vector<std::string>& texts) {
  core::Labels labels;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return fail(ErrorCode::invalid_argument, fmt::format("--namespace-label {}: not KEY=VALUE", net::echo(text)));
    }
    labels[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return labels;
}

/// Sorts the pools asked for by family; one that does not exist counts as of the family asked for.
[[nodiscard]] Result<void> ask_for_pools(const engine::Context& context, const ExplainOptions& options,
                                         core::AssignRequest& request) {
  TRY(const std::vector<core::Pool> pools, engine::list_pools(context));
  for (const std::string& text : options.pools) {
    const core::AskedPool asked = core::asked_pool(text);
    const auto it = std::find_if(pools.begin(), pools.end(),
                                 [&](const core::Pool& p) { return core::is_asked(asked, p.name, p.cidr); });
    const bool is_v6 = it != pools.end() ? it->cidr.family() == net::Family::v6 : options.family == "6";
    (is_v6 ? request.pools.v6 : request.pools.v4).push_back(asked);
  }
  return {};
}

/// Which families are wanted: as said, else of the pools and addresses asked for, else IPv4.
void choose_families(const ExplainOptions& options, core::AssignRequest& request) {
  const auto has = [&](net::Family family) {
    return std::any_of(request.addresses.begin(), request.addresses.end(),
                       [&](const net::Address& a) { return a.family() == family; });
  };
  const bool v6 = has(net::Family::v6) || !request.pools.v6.empty();
  const bool v4 = has(net::Family::v4) || !request.pools.v4.empty() || !v6;
  request.count.v4 = (options.family.empty() ? v4 : options.family != "6") ? 1 : 0;
  request.count.v6 = (options.family.empty() ? v6 : options.family != "4") ? 1 : 0;
}

[[nodiscard]] Result<int> explain(CommandLine& line, const ExplainOptions& options) {
  core::AssignRequest request;
  // Nobody's: what such a pod holds already would be the answer otherwise.
  request.owner = {"croft-explain", "no-container", "eth0"};
  request.node = {core::AffinityOwner::Type::host, options.node};
  request.pod = {options.pod, options.namespace_name, ""};
  request.use = pool_use_of(options.use);
  TRY(request.namespace_labels, labels_of(options.namespace_labels));
  for (const std::string& text : options.addresses) {
    TRY(const net::Address address, address_argument("--ip", text));
    request.addresses.push_back(address);
  }
  TRY(const engine::Context context, line.look());
  TRY_VOID(ask_for_pools(context, options, request));
  choose_families(options, request);
  if (context.store.capabilities().foreign_writers) request.default_block_limit = core::kCalicoBlockLimit;
  const auto known = engine::check_node_known(context, options.node);
  if (!known && known.error().code == ErrorCode::permission_denied) {
    line.note_not_read("nodes", known.error());
  } else if (!known) {
    warn(known.error().message + "; it is taken for a new one");
  }
  TRY(const core::Explanation explanation, engine::explain(context, request));
  print(line.json() ? line.data(json_of(explanation)) : text_of(explanation, request));
  const auto* refusal = std::get_if<core::Refusal>(&explanation.answer);
  return static_cast<int>(refusal != nullptr ? edge::exit_code_of(refusal->code) : edge::ExitCode::fine);
}

}  // namespace

void add_explain_command(CLI::App& app, CommandLine& line) {
  const auto [command, options] =
      add_command(app, line, "explain", "Explain what an ADD on a node would get, and why", explain);
  command->add_option("--node", options->node, "The node")->required();
  command->add_option("--namespace", options->namespace_name, "Namespace of the pod");
  command->add_option("--pod", options->pod, "Name of the pod");
  command->add_option("--namespace-label", options->namespace_labels,
                      "Label KEY=VALUE of the namespace, for pools with a namespaceSelector; may be repeated");
  command->add_option("--use", options->use, "Purpose of the address")->check(CLI::IsMember({"workload", "tunnel"}));
  command->add_option("--pool", options->pools,
                      "Request this pool, by name or CIDR; repeat the option for more, in order of preference");
  command->add_option("--ip", options->addresses, "Request this address");
  command->add_option("--family", options->family, "4, 6 or 46 (default: the family of what is requested, otherwise 4)")
      ->check(CLI::IsMember({"4", "6", "46"}));
  command->footer(
      "Makes the decision of an ADD on the current records and writes nothing. Lists every pool in the order it is "
      "considered; a refusal reads like the CNI error. The store does not have namespace labels: pass them with "
      "--namespace-label.");
}

}  // namespace croft::app
