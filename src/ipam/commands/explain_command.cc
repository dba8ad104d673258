#include <memory>

#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/listing.h"
#include "cni/error_table.h"
#include "ipam/commands/explain_request.h"
#include "ipam/use/assign.h"
#include "ipam/use/nodes.h"

namespace croft::app {
namespace {

[[nodiscard]] Result<int> explain(CommandLine& line, const ExplainQuestion& options) {
  TRY(const engine::Context context, line.open_to_look());
  TRY(const core::AssignRequest request, explain_request(context, options));
  const auto known = engine::check_node_known(context, options.node);
  if (!known && known.error().code == ErrorCode::permission_denied) {
    line.note_not_read("nodes", known.error());
  } else if (!known && known.error().code == ErrorCode::not_found) {
    warn(known.error().message + "; it is taken for a new one");
  } else {
    TRY_VOID(known);
  }
  TRY(const core::Explanation explanation, engine::explain(context, request));
  print(line.wants_data() ? line.data_text(json_of(explanation)) : text_of(explanation, request));
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
