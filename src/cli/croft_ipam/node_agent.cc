#include "cli/croft_ipam/node_agent.h"

#include "agent/door/client.h"
#include "os/files.h"

namespace croft::app {

std::unique_ptr<edge::Agent> find_agent(const std::string& socket, const Clock& clock) {
  const auto status = os::file_status(socket);
  return status && *status ? edge::agent_at(socket, clock) : nullptr;
}

}  // namespace croft::app
