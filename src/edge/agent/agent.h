#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "wire/agent/messages.h"

namespace croft::edge {

inline constexpr const char* kDefaultAgentSocket = "/run/croft/agent.sock";
/// What switches the agent off in the place of a path.
inline constexpr const char* kNoAgent = "none";
/// How long a plugin waits for its agent before it goes to the store itself (docs/promises.md#plugin-alone).
inline constexpr std::chrono::milliseconds kAgentPatience{1000};

/// The agent of this node, as a plugin sees it. Every Error means the same to a plugin: it goes to the store itself, be
/// it that no agent answered in time or that it could not serve. An interface, so that a program without an agent
/// doesn't carry the transport.
class Agent {
 public:
  virtual ~Agent() = default;
  /// The answer is an Assigned or a Refusal, decided on the same records and durable.
  [[nodiscard]] virtual Result<core::AssignAnswer> assign(const wire::agent::AssignCall& call) = 0;
  /// Whether the assign() that failed last may have written something, or may yet.
  [[nodiscard]] virtual bool may_have_written() const { return true; }
  [[nodiscard]] virtual Result<std::vector<net::Address>> release(const wire::agent::ReleaseCall& call) = 0;
};

}  // namespace croft::edge
