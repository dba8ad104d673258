#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent/door/client.h"
#include "base/texts.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/table.h"

namespace croft::app {
namespace {

using wire::agent::AgentStatus;

/// The properties in their order, with their names in both forms.
nlohmann::ordered_json properties_of(const AgentStatus& status) {
  return {{"version", status.version},
          {"store", status.store},
          {"node", status.node},
          {"cacheInUse", status.cache_in_use},
          {"ownBlocks", number_64_json(status.own_blocks)},
          {"knownAffinities", number_64_json(status.known_affinities)},
          {"servedFromCache", number_64_json(status.served_from_cache)},
          {"servedFromStore", number_64_json(status.served_from_store)},
          {"failed", number_64_json(status.failed)},
          {"commits", number_64_json(status.commits)},
          {"blocksAhead", number_64_json(status.blocks_ahead)}};
}

std::string status_text(const AgentStatus& status) {
  Table table({"PROPERTY", "VALUE"});
  const char* const truth = status.cache_in_use ? "true" : "false: it asks the store each time";
  const nlohmann::ordered_json properties = properties_of(status);
  for (const auto& [name, value] : properties.items()) {
    table.add({name, value.is_boolean() ? truth : value.get<std::string>()});
  }
  return table.to_string();
}

/// The exit code is never the one for a store that is away: without an agent every plugin goes to the store by itself.
[[nodiscard]] Error unanswered(const std::string& socket, const Error& why) {
  if (why.code == ErrorCode::permission_denied) {  // it may serve the plugins all the same
    return make_error(ErrorCode::not_found,
                      "the agent at {} was not asked: {}; ask as root, or as the user whose agent it is", socket,
                      why.message);
  }
  return make_error(ErrorCode::not_found,
                    "no agent answers at {}: {}; plugins on this node use the store themselves. Start or restart "
                    "`croftd agent --socket {}`",
                    socket, why.message, socket);
}

[[nodiscard]] Result<int> show_status(CommandLine& line, const std::string& socket) {
  if (socket.empty() || socket == edge::kNoAgent) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("--socket (or CROFT_AGENT): \"{}\" names no agent; give the path of its socket, by default {}",
                    socket, edge::kDefaultAgentSocket));
  }
  const auto status = edge::agent_status(socket, line.clock);
  if (!status) return fail(unanswered(socket, status.error()));
  print(line.wants_data() ? line.data_text(Data(nlohmann::ordered_json::array({properties_of(*status)})))
                          : status_text(*status));
  return 0;
}

}  // namespace

void add_agent_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const agent = add_noun(app, "agent", "The agent of this node (`croftd agent`)");
  const auto [status, socket] =
      add_command(*agent, line, "status", "Show what the agent serves, and how often it needed the store", show_status);
  *socket = edge::kDefaultAgentSocket;
  status->add_option("--socket", *socket, "Socket of the agent")->envname("CROFT_AGENT")->capture_default_str();
  status->footer("Asks the agent, not the store. The exit code is 1 if no agent answers.");
}

}  // namespace croft::app
