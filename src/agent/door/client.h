#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "agent/format/messages.h"
#include "base/clock.h"
#include "base/result.h"

namespace croft::edge {

inline constexpr const char* kDefaultAgentSocket = "/run/croft/agent.sock";
/// The word that switches the agent off in the place of a path.
inline constexpr const char* kNoAgent = "none";
/// How long a plugin waits for an answer or a sign of life of its agent before it goes to the store itself
/// (docs/promises.md#plugin-alone).
inline constexpr std::chrono::milliseconds kAgentPatience{1000};
/// How much sooner than that the agent stops beginning things, so that it has not just begun when the plugin turns
/// away. Only to spare work: the conditions of the commits keep the two apart.
inline constexpr std::chrono::milliseconds kHeadStart{100};
/// How long a plugin waits for the answer of an agent that gives signs of life; a DEL's begins with the DEL.
inline constexpr std::chrono::seconds kAnswerTimeMax{14};

/// The agent of this node, as a plugin sees it. Every Error means the same to a plugin: it goes to the store itself, be
/// it that no agent answered in time or that it could not serve. An interface, so that a program without an agent
/// doesn't carry the transport.
class Agent {
 public:
  virtual ~Agent() = default;
  /// The answer is an Assigned or a Refusal, decided on the same records and durable.
  [[nodiscard]] virtual Result<core::AssignAnswer> assign(const wire::agent::AssignCall& call) = 0;
  [[nodiscard]] virtual Result<std::vector<net::Address>> release(const wire::agent::ReleaseCall& call) = 0;
};

/// The agent behind a Unix socket. Each call connects, asks once and waits up to kAnswerTimeMax for its answer, but no
/// longer than `patience` for the first sign of life and for each next one. Nothing is ever asked twice. A socket that
/// belongs to another user than root or this process's is not spoken to. `clock` must outlive it.
[[nodiscard]] std::unique_ptr<Agent> agent_at(const std::string& socket, const Clock& clock,
                                              std::chrono::nanoseconds patience = kAgentPatience);

/// The status that the agent at a socket reports; for operators and health checks.
[[nodiscard]] Result<wire::agent::AgentStatus> agent_status(const std::string& socket, const Clock& clock,
                                                            std::chrono::nanoseconds patience = kAgentPatience);

}  // namespace croft::edge
