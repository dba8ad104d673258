#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace croft::app {

/// What the runtime's environment says of places on this node.
struct NodePaths {
  std::string agent_socket;  ///< CROFT_AGENT, else the default
  std::string tombstones;    ///< CROFT_TOMBSTONES, else the default
  /// A value that is neither an absolute path nor "none" (refused_by_configuration, naming it): it would be another
  /// place for each directory that a runtime calls from, and a DEL left in one is found by nobody.
  std::optional<Error> fault;
};
[[nodiscard]] NodePaths node_paths();

}  // namespace croft::app
