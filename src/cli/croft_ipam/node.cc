#include "cli/croft_ipam/node.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "agent/door/client.h"
#include "base/net/echo.h"
#include "cli/stores/environment.h"
#include "cni/door/tombstones.h"
#include "os/files.h"
#include "os/host_route.h"
#include "vpc/door/ip_bytes.h"

namespace croft::app {
namespace {

/// The kernel answers in microseconds, or while somebody else changes its tables a little later.
constexpr std::chrono::seconds kKernelTime{1};

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

std::unique_ptr<edge::Agent> find_agent(const std::string& socket, const Clock& clock) {
  const auto status = os::file_status(socket);
  return status && *status ? edge::agent_at(socket, clock) : nullptr;
}

engine::DeviceOf device_of_living(const Clock& clock) {
  return [&clock](const net::Address& address) {
    return os::device_of_living(edge::to_bytes(address), clock, Deadline::after(clock.now(), kKernelTime));
  };
}

NodePaths node_paths() {
  NodePaths paths;
  paths.agent_socket = path_named_by("CROFT_AGENT", edge::kDefaultAgentSocket, edge::kNoAgent, paths.fault);
  paths.tombstones = path_named_by("CROFT_TOMBSTONES", edge::kDefaultTombstones, edge::kNoTombstones, paths.fault);
  return paths;
}

}  // namespace croft::app
