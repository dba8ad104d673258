#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "ipam/decide/assign.h"

namespace croft::edge {

/// The ADDs that an agent has answered since its start, for Prometheus:
///
///   croft_agent_add_duration_seconds {outcome}     histogram: ok, refused, failed; from the call to its answer
///   croft_agent_refusals_total {pool, reason}      counter, ADDs that no address was free for: of each pool that might
///                                                  have served; `pool` is empty where none might
///   croft_agent_borrowed_addresses_total           counter, given from blocks that the node does not own
///
/// Any thread may call anything.
class AgentMetrics {
 public:
  AgentMetrics();
  ~AgentMetrics();
  AgentMetrics(const AgentMetrics&) = delete;
  AgentMetrics& operator=(const AgentMetrics&) = delete;

  /// One ADD; `answer`: null where it failed.
  void count(std::chrono::nanoseconds took, const core::AssignAnswer* answer);
  /// All of it in Prometheus' text format.
  [[nodiscard]] std::string text() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace croft::edge
