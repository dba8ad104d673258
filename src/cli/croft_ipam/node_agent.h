#pragma once

#include <memory>
#include <string>

#include "agent/door/agent.h"
#include "base/clock.h"

namespace croft::app {

/// The agent behind a socket; nothing when there is no such file: most machines without an agent have none.
[[nodiscard]] std::unique_ptr<edge::Agent> find_agent(const std::string& socket, const Clock& clock);

}  // namespace croft::app
