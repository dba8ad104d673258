#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/metrics/metrics.h"
#include "base/result.h"
#include "os/process.h"
#include "os/service_manager.h"
#include "store/kube/api.h"
#include "store/kube/leadership.h"
#include "store/store.h"

namespace croft::app {

/// The flags, as kube-controller-manager has them. Other stores than kube: do without.
struct LeaderElectionFlags {
  bool leader_elect = true;
  std::int64_t lease_duration_ms = 15'000;
  std::string resource_namespace = "croft-system";
};

inline void add_leader_election_flags(CLI::App& command, LeaderElectionFlags& flags) {
  command.add_flag("--leader-elect", flags.leader_elect,
                   "On a kube: store only the controller that holds the Lease works, and others wait for it (default: "
                   "true; not with --once or --dry-run); --leader-elect=false turns it off");
  command
      .add_option("--leader-elect-lease-duration-ms", flags.lease_duration_ms,
                  "Others take a Lease that was not renewed for so long; rounded up to seconds")
      ->check(CLI::Range(std::int64_t{1000}, std::int64_t{24} * 3'600'000))
      ->capture_default_str();
  command.add_option("--leader-elect-resource-namespace", flags.resource_namespace, "Namespace of the Lease")
      ->capture_default_str();
}

/// Leads or waits to, in a thread of its own, until the process is told to end. From then on nothing more is
/// committed.
class LeaderElection {
 public:
  /// References outlive it. Error: invalid_argument, naming the flag.
  [[nodiscard]] static Result<std::unique_ptr<LeaderElection>> make(const LeaderElectionFlags& flags,
                                                                    std::unique_ptr<store::kube::Api> api,
                                                                    store::Store& beneath, Daemon& daemon) {
    store::kube::LeadershipOptions options{flags.resource_namespace, "croftd-controller", {}};
    TRY(const std::string host, os::host_name());
    // An identity that no other process has ever had.
    options.identity = fmt::format("{}_{:016x}{:016x}", host, daemon.random.next(), daemon.random.next());
    options.duration = std::chrono::milliseconds(flags.lease_duration_ms);
    auto leadership = store::kube::Leadership::make(*api, std::move(options), daemon.clock);
    if (!leadership) return fail(leadership.error().in("--leader-elect-resource-namespace"));
    return std::unique_ptr<LeaderElection>(new LeaderElection(std::move(api), *std::move(leadership), beneath, daemon));
  }
  ~LeaderElection() { end(); }
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  /// The store for all work of a leader.
  [[nodiscard]] store::Store& store() { return fenced_; }

  /// Both must live until end(). Says in the log who leads, whenever that changes.
  void start(spdlog::logger& log, edge::ControllerMetrics& metrics) {
    log_ = &log;
    metrics_ = &metrics;
    metrics.set_leading(leadership_->options().name, false);
    thread_ = std::thread([this] { run(); });
  }
  /// Waits until the process was told to end, and gives the Lease back: for when the work of a leader is over.
  void end() {
    if (!thread_.joinable()) return;
    thread_.join();
    const auto done = leadership_->release(Deadline::after(daemon_.clock.now(), std::chrono::seconds(1)));
    if (!led_) return;
    if (done && *done) log_->info("the Lease is given back");
    if (done) return;
    log_->warn("the Lease could not be given back, others wait until it is over: {}", one_line(done.error().message));
  }

  /// Waits until this process leads, and begins work in that term: what was begun in another one commits nothing any
  /// more. Nothing: the process is told to end.
  [[nodiscard]] std::optional<store::kube::Term> wait_for_term() {
    do {
      os::tell_service_manager("WATCHDOG=1");
      const auto term = leadership_->term();
      if (!term) continue;
      fenced_.enter(*term);
      return term;
    } while (!daemon_.stop.wait_for(std::chrono::milliseconds(200)));
    return std::nullopt;
  }
  /// Whether that term goes on.
  [[nodiscard]] bool leads_in(store::kube::Term term) const { return leadership_->end_of(term).has_value(); }

 private:
  LeaderElection(std::unique_ptr<store::kube::Api> api, std::unique_ptr<store::kube::Leadership> leadership,
                 store::Store& beneath, Daemon& daemon)
      : daemon_(daemon), api_(std::move(api)), leadership_(std::move(leadership)), fenced_(beneath, *leadership_) {}
  void run() {
    do {
      // An attempt may take a while: what is over is said before.
      if (led_ && !leadership_->is_leader()) tell({});
      tell(leadership_->attempt());
    } while (!daemon_.stop.wait_for(leadership_->pause(daemon_.random)));
    leadership_->resign();
    metrics_->set_leading(leadership_->options().name, false);
  }

  void tell(const store::kube::Leadership::Attempt& attempt) {
    const auto& options = leadership_->options();
    const std::string lease = fmt::format("the Lease {}/{}", options.name_space, options.name);
    const bool leads = leadership_->is_leader();
    metrics_->set_leading(options.name, leads);
    const std::string holder = one_line(attempt.holder);
    const std::string failure = attempt.failure ? one_line(attempt.failure->message) : "";
    if (leads && !led_) log_->info("this controller leads now, as {} by {}", options.identity, lease);
    if (!leads && led_) {
      log_->warn("no longer the leader: {}",
                 holder.empty() ? lease + " was not renewed in time" : holder + " leads by " + lease);
    } else if (!leads && !holder.empty() && holder != holder_) {
      log_->info("{} leads by {}; this controller waits", holder, lease);
    }
    // A leader's are about time that runs out, a candidate's the same again and again.
    if (!failure.empty() && (leads || failure != failure_)) {
      log_->warn("{} could not be {}: {}", lease, leads ? "renewed" : "had", failure);
    }
    led_ = leads;
    failure_ = failure;
    if (!holder.empty()) holder_ = holder;
  }

  Daemon& daemon_;
  const std::unique_ptr<store::kube::Api> api_;
  const std::unique_ptr<store::kube::Leadership> leadership_;
  store::kube::FencedStore fenced_;
  spdlog::logger* log_ = nullptr;
  edge::ControllerMetrics* metrics_ = nullptr;
  std::thread thread_;

  // Used by that thread: the state that was told last.
  bool led_ = false;
  std::string holder_;
  std::string failure_;
};

}  // namespace croft::app
