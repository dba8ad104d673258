#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/metrics/metrics.h"
#include "base/result.h"
#include "store/kube/api.h"
#include "store/kube/leadership.h"
#include "store/store.h"

namespace croft::app {

/// The flags, as kube-controller-manager has them. Other stores than kube: do without.
struct LeaderElectionFlags {
  bool leader_elect = true;
  std::int64_t lease_duration_ms = 15'000;
  std::int64_t renew_deadline_ms = 10'000;
  std::int64_t retry_period_ms = 2'000;
  std::string resource_name = "croftd-controller";
  std::string resource_namespace = "croft-system";
};
void add_leader_election_flags(CLI::App& command, LeaderElectionFlags& flags);

/// Leads or waits to, in a thread of its own, until the process is told to end. From then on nothing more is
/// committed.
class LeaderElection {
 public:
  /// References outlive it. Error: invalid_argument, naming the flag.
  [[nodiscard]] static Result<std::unique_ptr<LeaderElection>> make(const LeaderElectionFlags& flags,
                                                                    std::unique_ptr<store::kube::Api> api,
                                                                    store::Store& beneath, Daemon& daemon);
  ~LeaderElection() { end(); }
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  /// The store for all work of a leader.
  [[nodiscard]] store::Store& store() { return fenced_; }

  /// Both must live until end(). Says in the log who leads, whenever that changes.
  void start(spdlog::logger& log, edge::Metrics& metrics);
  /// Waits until the process was told to end, and gives the Lease back: for when the work of a leader is over.
  void end();

  /// Waits until this process leads, and begins work in that term: what was begun in another one commits nothing any
  /// more. Nothing: the process is told to end.
  [[nodiscard]] std::optional<store::kube::Term> wait_for_term();
  /// Whether that term goes on.
  [[nodiscard]] bool leads_in(store::kube::Term term) const { return leadership_->end_of(term).has_value(); }

 private:
  LeaderElection(std::unique_ptr<store::kube::Api> api, std::unique_ptr<store::kube::Leadership> leadership,
                 store::Store& beneath, Daemon& daemon)
      : daemon_(daemon), api_(std::move(api)), leadership_(std::move(leadership)), fenced_(beneath, *leadership_) {}
  void run();
  void tell(const store::kube::Leadership::Attempt& attempt);

  Daemon& daemon_;
  const std::unique_ptr<store::kube::Api> api_;
  const std::unique_ptr<store::kube::Leadership> leadership_;
  store::kube::FencedStore fenced_;
  spdlog::logger* log_ = nullptr;
  edge::Metrics* metrics_ = nullptr;
  std::thread thread_;

  // Of that thread: what was told last.
  bool led_ = false;
  std::string holder_;
  std::string failure_;
};

}  // namespace croft::app
