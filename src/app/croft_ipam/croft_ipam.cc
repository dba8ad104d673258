#include "edge/croft_ipam.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "app/croft_ipam/personalities.h"
#include "app/open_store.h"
#include "edge/agent_client.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/log_file.h"
#include "os/process.h"
#include "os/random.h"

namespace croft::app {
namespace {

/// Most machines without an agent have no socket either: then there is nothing to try.
std::unique_ptr<edge::Agent> find_agent(const std::string& socket, const Clock& clock) {
  const auto status = os::file_status(socket);
  return status && *status ? edge::agent_at(socket, clock) : nullptr;
}

std::string agent_socket() {
  const char* named = std::getenv("CROFT_AGENT");
  return named != nullptr && *named != '\0' ? named : edge::kDefaultAgentSocket;
}

}  // namespace

int serve_croft_ipam(const edge::CniHost& host) {
  os::make_files_private();
  const os::SystemClock clock;
  os::SystemRandom random;
  const edge::CroftIpamWorld world{
      [&](const std::string& url, edge::OpenMode mode) { return open_store(url, mode, clock); },
      clock,
      random,
      os::host_name().value_or(""),
      [](const std::string& file, const std::string& line) { os::append_log_line(file, line); },
      [&](const std::string& socket) { return find_agent(socket, clock); },
      agent_socket(),
  };
  return edge::serve_cni(edge::croft_ipam_plugin(world), host, os::write_standard_output, os::write_standard_error);
}

}  // namespace croft::app
