#include "agent/metrics/agent_metrics.h"

#include <map>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include <prometheus/text_serializer.h>

#include "agent/metrics/samples.h"

namespace croft::edge {

class AgentMetrics::State {
 public:
  void count(std::chrono::nanoseconds took, const core::AssignAnswer* answer) {
    const auto* refusal = answer != nullptr ? std::get_if<core::Refusal>(answer) : nullptr;
    const std::lock_guard lock(mutex_);
    (answer == nullptr ? failed_ : refusal != nullptr ? refused_ : ok_).count(took);
    if (refusal != nullptr) {
      count(*refusal);
    } else if (answer != nullptr) {
      for (const core::AssignedAddress& one : std::get<core::Assigned>(*answer).addresses) {
        borrowed_ += one.borrowed && !one.held_before ? 1 : 0;
      }
    }
  }

  [[nodiscard]] std::string text() const {
    using prometheus::MetricType;
    std::vector<prometheus::MetricFamily> all;
    const std::lock_guard lock(mutex_);
    auto durations =
        family("croft_agent_add_duration_seconds", "How long ADDs took in the agent", MetricType::Histogram);
    add(durations, {{"outcome", "ok"}}, ok_);
    add(durations, {{"outcome", "refused"}}, refused_);
    add(durations, {{"outcome", "failed"}}, failed_);
    all.push_back(std::move(durations));
    auto refusals = family("croft_agent_refusals_total", "ADDs that no address was free for, by pool and reason",
                           MetricType::Counter);
    for (const auto& [key, count] : refusals_) {
      add(refusals, {{"pool", key.first}, {"reason", std::string(name_of(key.second))}}, number(count));
    }
    if (!refusals_.empty()) all.push_back(std::move(refusals));
    all.push_back(one("croft_agent_borrowed_addresses_total", "Addresses given from blocks that the node does not own",
                      MetricType::Counter, number(borrowed_)));
    return prometheus::TextSerializer().Serialize(all);
  }

 private:
  /// With mutex_ held.
  void count(const core::Refusal& refusal) {
    bool might_serve = false;
    for (const core::PoolVerdict& verdict : refusal.considered) {
      if (!verdict.usable) continue;
      might_serve = true;
      ++refusals_[{verdict.pool, refusal.cause}];
    }
    if (!might_serve) ++refusals_[{"", refusal.cause}];
  }

  mutable std::mutex mutex_;  ///< guards all below
  Durations ok_, refused_, failed_;
  std::map<std::pair<std::string, core::RefusalCause>, std::uint64_t> refusals_;
  std::uint64_t borrowed_ = 0;
};

AgentMetrics::AgentMetrics() : state_(std::make_unique<State>()) {}
AgentMetrics::~AgentMetrics() = default;

void AgentMetrics::count(std::chrono::nanoseconds took, const core::AssignAnswer* answer) {
  state_->count(took, answer);
}

std::string AgentMetrics::text() const { return state_->text(); }

}  // namespace croft::edge
