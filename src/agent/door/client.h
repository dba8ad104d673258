#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "agent/door/agent.h"
#include "base/clock.h"
#include "base/result.h"

namespace croft::edge {

/// The agent behind a Unix socket. Each call connects, asks once and waits up to kAnswerTimeMax for its answer, but no
/// longer than `patience` for the first sign of life and for each next one. Nothing is ever asked twice. A socket that
/// belongs to another user than root or this process's is not spoken to. `clock` must outlive it.
[[nodiscard]] std::unique_ptr<Agent> agent_at(const std::string& socket, const Clock& clock,
                                              std::chrono::nanoseconds patience = kAgentPatience);

/// The status that the agent at a socket reports; for operators and health checks.
[[nodiscard]] Result<wire::agent::AgentStatus> agent_status(const std::string& socket, const Clock& clock,
                                                            std::chrono::nanoseconds patience = kAgentPatience);

}  // namespace croft::edge
