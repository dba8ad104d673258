#include "cli/croft_ipam/node_paths.h"

#include <utility>

#include <fmt/format.h>

#include "agent/door/agent.h"
#include "base/net/echo.h"
#include "cli/stores/environment.h"
#include "cni/door/tombstones.h"

namespace croft::app {
namespace {

std::string path_named_by(const char* variable, const char* otherwise, std::string_view none,
                          std::optional<Error>& fault) {
  std::string named = from_environment(variable);
  if (named.empty()) return otherwise;
  if (named.front() != '/' && named != none && !fault) {
    fault = Error{ErrorCode::refused_by_configuration,
                  fmt::format("{} in the environment of the container runtime: {} is no absolute path; give one that "
                              "begins with /, or \"{}\"",
                              variable, net::echo(named), none),
                  {}};
  }
  return named;
}

}  // namespace

NodePaths node_paths() {
  NodePaths paths;
  paths.agent_socket = path_named_by("CROFT_AGENT", edge::kDefaultAgentSocket, edge::kNoAgent, paths.fault);
  paths.tombstones = path_named_by("CROFT_TOMBSTONES", edge::kDefaultTombstones, edge::kNoTombstones, paths.fault);
  return paths;
}

}  // namespace croft::app
