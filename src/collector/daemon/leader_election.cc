#include "collector/daemon/leader_election.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agent/daemon/log_format.h"
#include "os/process.h"
#include "os/service_manager.h"

namespace croft::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using store::kube::Leadership;

constexpr std::int64_t kSpanMsMax = 24LL * 3'600'000;
/// A commit that takes longer is not waited for: its conditions guard it.
constexpr milliseconds kCommitPatience{500};
constexpr milliseconds kReleasePatience{1000};
/// How soon a candidate that listens to the Lease hears that the process is to end.
constexpr milliseconds kListenPiece{200};

/// What no other process has ever had.
[[nodiscard]] Result<std::string> identity(Random& random) {
  TRY(const std::string host, os::host_name());
  const std::uint64_t high = (random.next() & ~std::uint64_t{0xf000}) | 0x4000;                      // version 4
  const std::uint64_t low = (random.next() & ~(std::uint64_t{3} << 62)) | (std::uint64_t{1} << 63);  // its variant
  return fmt::format("{}_{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", host, high >> 32, (high >> 16) & 0xffff, high & 0xffff,
                     low >> 48, low & 0xffff'ffff'ffff);
}

}  // namespace

void add_leader_election_flags(CLI::App& command, LeaderElectionFlags& flags) {
  const CLI::Range span(std::int64_t{1}, kSpanMsMax);
  flags.given[0] = command.add_flag("--leader-elect", flags.leader_elect,
                                    "On a kube: store only the controller that holds the Lease works, and others wait "
                                    "for it (default: true; not with "
                                    "--once or --dry-run); --leader-elect=false turns it off");
  flags.given[1] = command
                       .add_option("--leader-elect-lease-duration-ms", flags.lease_duration_ms,
                                   "Others take a Lease that was not renewed for so long; rounded up to seconds")
                       ->check(span)
                       ->capture_default_str();
  flags.given[2] = command
                       .add_option("--leader-elect-renew-deadline-ms", flags.renew_deadline_ms,
                                   "A leader that could not renew its Lease for so long stops working")
                       ->check(span)
                       ->capture_default_str();
  flags.given[3] =
      command
          .add_option("--leader-elect-retry-period-ms", flags.retry_period_ms, "Time between two tries at the Lease")
          ->check(span)
          ->capture_default_str();
  flags.given[4] = command.add_option("--leader-elect-resource-name", flags.resource_name, "Name of the Lease")
                       ->capture_default_str();
  flags.given[5] =
      command.add_option("--leader-elect-resource-namespace", flags.resource_namespace, "Namespace of the Lease")
          ->capture_default_str();
}

std::string first_given(const LeaderElectionFlags& flags) {
  for (const CLI::Option* option : flags.given) {
    const bool is_off = option == flags.given[0] && !flags.leader_elect;
    if (option->count() > 0 && !is_off) return option->get_name();
  }
  return {};
}

Result<std::unique_ptr<LeaderElection>> LeaderElection::make(const LeaderElectionFlags& flags,
                                                             std::unique_ptr<store::kube::Api> api,
                                                             store::Store& beneath, Daemon& daemon) {
  store::kube::LeadershipOptions options{flags.resource_namespace, flags.resource_name, {}, {}};
  TRY(options.identity, identity(daemon.random));
  options.times = {milliseconds(flags.lease_duration_ms), milliseconds(flags.renew_deadline_ms),
                   milliseconds(flags.retry_period_ms)};
  auto leadership = Leadership::make(*api, std::move(options), daemon.clock);
  if (!leadership) return fail(leadership.error().in("--leader-elect-…"));
  return std::unique_ptr<LeaderElection>(new LeaderElection(std::move(api), *std::move(leadership), beneath, daemon));
}

LeaderElection::LeaderElection(std::unique_ptr<store::kube::Api> api, std::unique_ptr<Leadership> leadership,
                               store::Store& beneath, Daemon& daemon)
    : daemon_(daemon), api_(std::move(api)), leadership_(std::move(leadership)), fenced_(beneath, *leadership_) {}

LeaderElection::~LeaderElection() { end(); }

void LeaderElection::start(spdlog::logger& log, edge::Metrics& metrics) {
  log_ = &log;
  metrics_ = &metrics;
  metrics.set_leading(leadership_->options().name, false);
  thread_ = std::thread([this] { run(); });
}

void LeaderElection::end() {
  if (thread_.joinable()) thread_.join();
}

std::optional<store::kube::Term> LeaderElection::wait_for_term() {
  std::unique_lock lock(mutex_);
  std::optional<store::kube::Term> term;
  const auto is_over = [&] { return ends_ || (term = leadership_->term()).has_value(); };
  while (!changed_.wait_for(lock, kTurnMax, is_over)) os::tell_service_manager("WATCHDOG=1");
  if (ends_) return std::nullopt;
  fenced_.enter(*term);
  return term;
}

void LeaderElection::run() {
  do {
    // An attempt may take a while: what is over is said before.
    if (led_ && !leadership_->is_leader()) tell({});
    tell(leadership_->attempt());
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  } while (!wait());
  give_back();
  const std::lock_guard lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

bool LeaderElection::wait() {
  const nanoseconds pause = leadership_->pause(daemon_.random);
  if (leadership_->is_leader()) return daemon_.stop.wait_for(pause);
  const nanoseconds end = daemon_.clock.now().since_boot + pause;
  while (!daemon_.stop.wait_for(nanoseconds(0))) {
    const nanoseconds now = daemon_.clock.now().since_boot;
    if (now >= end) return false;
    switch (leadership_->listen({std::min<nanoseconds>(end, now + kListenPiece)})) {
      case Leadership::Heard::nothing:
        break;
      case Leadership::Heard::release:
        return false;
      case Leadership::Heard::no_watch:
        return daemon_.stop.wait_for(end - now);
    }
  }
  return true;
}

void LeaderElection::tell(const Leadership::Attempt& attempt) {
  const auto& options = leadership_->options();
  const std::string lease = fmt::format("the Lease {}/{}", options.name_space, options.name);
  const bool leads = leadership_->is_leader();
  metrics_->set_leading(options.name, leads);
  const std::string failure = attempt.failure ? one_line(attempt.failure->message) : "";
  if (leads && !led_) log_->info("this controller leads now, as {} by {}", options.identity, lease);
  if (!leads && led_) {
    log_->warn("no longer the leader: {}", attempt.holder.empty() || attempt.holder == options.identity
                                               ? lease + " was not renewed in time"
                                               : one_line(attempt.holder) + " leads by " + lease);
  } else if (!leads && !attempt.holder.empty() && attempt.holder != options.identity && attempt.holder != holder_) {
    log_->info("{} leads by {}; this controller waits", one_line(attempt.holder), lease);
  }
  // A leader's are about time that runs out, a candidate's the same again and again.
  if (leads && !failure.empty()) log_->warn("{} could not be renewed: {}", lease, failure);
  const bool is_race = attempt.failure && attempt.failure->code == ErrorCode::conflict;
  if (!leads && !failure.empty() && failure != failure_ && !is_race) {
    log_->error("{} could not be had: {}", lease, failure);
  }
  led_ = leads;
  failure_ = failure;
  if (!attempt.holder.empty()) holder_ = attempt.holder;
}

void LeaderElection::give_back() {
  leadership_->resign();
  metrics_->set_leading(leadership_->options().name, false);
  if (!fenced_.wait_until_idle(kCommitPatience))
    log_->warn("a commit is under way still while the Lease is given back");
  const auto done = leadership_->release(Deadline::after(daemon_.clock.now(), kReleasePatience));
  if (!led_) return;
  if (done) return log_->info("the Lease is given back");
  log_->warn("the Lease could not be given back, others wait until it is over: {}", one_line(done.error().message));
}

}  // namespace croft::app
