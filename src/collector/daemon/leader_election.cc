#include "collector/daemon/leader_election.h"

#include <utility>

#include <fmt/format.h>

#include "agent/daemon/log_format.h"
#include "os/process.h"
#include "os/service_manager.h"

namespace croft::app {
namespace {

using std::chrono::milliseconds;
using store::kube::Leadership;

constexpr std::int64_t kSpanMsMax = 24LL * 3'600'000;
constexpr milliseconds kReleasePatience{1000};
/// Between two looks whether this process leads.
constexpr milliseconds kLookInterval{200};

}  // namespace

void add_leader_election_flags(CLI::App& command, LeaderElectionFlags& flags) {
  const CLI::Range span(std::int64_t{1}, kSpanMsMax);
  command.add_flag("--leader-elect", flags.leader_elect,
                   "On a kube: store only the controller that holds the Lease works, and others wait for it (default: "
                   "true; not with --once or --dry-run); --leader-elect=false turns it off");
  command
      .add_option("--leader-elect-lease-duration-ms", flags.lease_duration_ms,
                  "Others take a Lease that was not renewed for so long; rounded up to seconds")
      ->check(span)
      ->capture_default_str();
  command
      .add_option("--leader-elect-renew-deadline-ms", flags.renew_deadline_ms,
                  "A leader that could not renew its Lease for so long stops working")
      ->check(span)
      ->capture_default_str();
  command.add_option("--leader-elect-retry-period-ms", flags.retry_period_ms, "Time between two tries at the Lease")
      ->check(span)
      ->capture_default_str();
  command.add_option("--leader-elect-resource-name", flags.resource_name, "Name of the Lease")->capture_default_str();
  command.add_option("--leader-elect-resource-namespace", flags.resource_namespace, "Namespace of the Lease")
      ->capture_default_str();
}

Result<std::unique_ptr<LeaderElection>> LeaderElection::make(const LeaderElectionFlags& flags,
                                                             std::unique_ptr<store::kube::Api> api,
                                                             store::Store& beneath, Daemon& daemon) {
  store::kube::LeadershipOptions options{flags.resource_namespace, flags.resource_name, {}, {}};
  TRY(const std::string host, os::host_name());
  // What no other process has ever had.
  options.identity = fmt::format("{}_{:016x}{:016x}", host, daemon.random.next(), daemon.random.next());
  options.times = {milliseconds(flags.lease_duration_ms), milliseconds(flags.renew_deadline_ms),
                   milliseconds(flags.retry_period_ms)};
  auto leadership = Leadership::make(*api, std::move(options), daemon.clock);
  if (!leadership) return fail(leadership.error().in("--leader-elect-…"));
  return std::unique_ptr<LeaderElection>(new LeaderElection(std::move(api), *std::move(leadership), beneath, daemon));
}

void LeaderElection::start(spdlog::logger& log, edge::Metrics& metrics) {
  log_ = &log;
  metrics_ = &metrics;
  metrics.set_leading(leadership_->options().name, false);
  thread_ = std::thread([this] { run(); });
}

void LeaderElection::end() {
  if (!thread_.joinable()) return;
  thread_.join();
  const auto done = leadership_->release(Deadline::after(daemon_.clock.now(), kReleasePatience));
  if (!led_) return;
  if (done) return log_->info("the Lease is given back");
  log_->warn("the Lease could not be given back, others wait until it is over: {}", one_line(done.error().message));
}

std::optional<store::kube::Term> LeaderElection::wait_for_term() {
  do {
    os::tell_service_manager("WATCHDOG=1");
    const auto term = leadership_->term();
    if (!term) continue;
    fenced_.enter(*term);
    return term;
  } while (!daemon_.stop.wait_for(kLookInterval));
  return std::nullopt;
}

void LeaderElection::run() {
  do {
    // An attempt may take a while: what is over is said before.
    if (led_ && !leadership_->is_leader()) tell({});
    tell(leadership_->attempt());
  } while (!daemon_.stop.wait_for(leadership_->pause(daemon_.random)));
  leadership_->resign();
  metrics_->set_leading(leadership_->options().name, false);
}

void LeaderElection::tell(const Leadership::Attempt& attempt) {
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

}  // namespace croft::app
