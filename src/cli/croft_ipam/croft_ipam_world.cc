#include "cli/croft_ipam/croft_ipam_world.h"

#include <string>

#include "cli/croft_ipam/log_place.h"
#include "cli/croft_ipam/node.h"
#include "os/log_file.h"
#include "os/process.h"

namespace croft::app {
namespace {

/// The lock's directory lasts one boot, as the agent's socket.
constexpr const char* kTurns = "/run/croft";

}  // namespace

edge::CroftIpamWorld croft_ipam_world(const Clock& clock, Random& random) {
  const NodePaths paths = node_paths();
  return {
      {},
      clock,
      random,
      os::host_name().value_or(""),
      [](const std::string& file, const std::string& line) { os::append_log_line(log_place(file), line); },
      [&clock](const std::string& socket) { return find_agent(socket, clock); },
      paths.agent_socket,
      paths.tombstones,
      paths.fault,
      nullptr,
      device_of_living(clock),
      kTurns,
  };
}

}  // namespace croft::app
