#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/door/agent.h"
#include "base/clock.h"
#include "base/error.h"
#include "ipam/use/living.h"

// A plugin with a store finds these on its node.

namespace croft::app {

/// The agent behind a socket; nothing when there is no such file: most machines without an agent have none.
[[nodiscard]] std::unique_ptr<edge::Agent> find_agent(const std::string& socket, const Clock& clock);

/// Asks the kernel of this process's network namespace, which is the node's: main plugins start their IPAM plugin
/// before they enter the container's.
[[nodiscard]] engine::DeviceOf device_of_living(const Clock& clock);

/// The places on this node by the runtime's environment.
struct NodePaths {
  std::string agent_socket;  ///< CROFT_AGENT, else the default
  std::string tombstones;    ///< CROFT_TOMBSTONES, else the default
  /// A value that is neither an absolute path nor "none" is refused_by_configuration, naming it. It would be another
  /// place for each directory that a runtime calls from, and nobody finds a DEL left in one.
  std::optional<Error> fault;
};
[[nodiscard]] NodePaths node_paths();

}  // namespace croft::app
