#include "app/croft_ipam/node_agent.h"

#include <cstdlib>

#include "edge/agent/client.h"
#include "os/files.h"

namespace croft::app {

std::unique_ptr<edge::Agent> find_agent(const std::string& socket, const Clock& clock) {
  const auto status = os::file_status(socket);
  return status && *status ? edge::agent_at(socket, clock) : nullptr;
}

std::string agent_socket() {
  const char* named = std::getenv("CROFT_AGENT");
  return named != nullptr && *named != '\0' ? named : edge::kDefaultAgentSocket;
}

}  // namespace croft::app
