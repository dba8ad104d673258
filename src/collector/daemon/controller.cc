#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/daemon/shown_status.h"
#include "agent/metrics/metrics.h"
#include "agent/metrics/web_server.h"
#include "base/printable.h"
#include "base/result.h"
#include "base/time_text.h"
#include "cli/croft/json_output.h"
#include "cli/stores/open_store.h"
#include "cni/error_table.h"
#include "collector/door/static_facts.h"
#include "collector/use/node_facts.h"
#include "collector/use/sweep.h"
#include "desk/daemon/desk.h"
#include "history/daemon/history_keeper.h"
#include "ipam/use/damage_reporting_store.h"
#include "noderanges/commands/node_range_inputs.h"
#include "noderanges/daemon/node_ranges.h"
#include "os/process.h"
#include "services/daemon/service_ranges.h"
#include "store/kube/api.h"
#include "store/kube/cluster_facts.h"
#include "store/kube/events.h"
#include "store/kube/leadership.h"
#include "store/kube/status_board.h"
#include "store/pause.h"
#include "store/store.h"
#include "store/store_url.h"

// croftd controller: the collector, pass after pass.

namespace croft::app {

namespace {

/// The flags, as kube-controller-manager has them. Other stores than kube: do without.
struct LeaderElectionFlags {
  bool leader_elect = true;
  std::int64_t lease_duration_ms = 15'000;
  std::string resource_namespace = "croft-system";
};

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

using Json = nlohmann::ordered_json;
using core::collect::Evidence;

Json json_of(const Evidence& evidence) {
  return {{"what", name_of(evidence.what)},
          {"subject", evidence.subject},
          {"reason", evidence.reason},
          {"handle", text_or_null(evidence.handle)},
          {"sequenceNumber", evidence.sequence.value == 0 ? Json() : Json(std::to_string(evidence.sequence.value))},
          {"node", text_or_null(evidence.node)},
          {"namespace", text_or_null(evidence.namespace_name)},
          {"pod", text_or_null(evidence.pod)},
          {"podUID", text_or_null(evidence.uid)},
          {"firstLook", rfc3339_rounded_up(evidence.first_look.wall)},
          {"lastLook", rfc3339_rounded_up(evidence.last_look.wall)},
          {"facts", evidence.facts}};
}

std::ptrdiff_t count_of(const engine::SweepReport& report, Evidence::What what) {
  return std::ranges::count(report.released, what, &Evidence::what);
}

/// One line for people: what was looked at and what came of it.
std::string summary_of(const engine::SweepReport& report) {
  using What = Evidence::What;
  std::string text = fmt::format("{} addresses in {} blocks, {} nodes, ", report.held, report.blocks, report.nodes);
  text += report.pods_known ? fmt::format("{} pods", report.pods) : "pods not known";
  text += fmt::format(": {} candidates, {} addresses, {} blocks, {} claims, {} handles {}", report.candidates,
                      count_of(report, What::address), count_of(report, What::block), count_of(report, What::affinity),
                      count_of(report, What::handle), report.dry_run ? "would be released" : "released");
  if (report.kept_by_brake > 0) text += fmt::format(", {} kept by the brake", report.kept_by_brake);
  if (report.failure) text += "; not finished: " + report.failure->message;
  return text;
}

/// One JSON object in one line, with a newline (docs/formats/cli-json.md).
std::string json_of(const engine::SweepReport& report) {
  std::vector<Json> released, alarms;
  for (const Evidence& evidence : report.released) released.push_back(json_of(evidence));
  for (const auto& alarm : report.alarms) alarms.push_back({{"alarm", name_of(alarm.kind)}, {"text", alarm.text}});
  const Json json{{"dryRun", report.dry_run},
                  {"began", rfc3339_rounded_up(report.began.wall)},
                  {"seconds", std::chrono::duration<double>(report.ended.since_boot - report.began.since_boot).count()},
                  {"held", report.held},
                  {"blocks", report.blocks},
                  {"nodes", report.nodes},
                  {"pods", report.pods_known ? Json(report.pods) : Json()},
                  {"candidates", report.candidates},
                  {"confirmed", report.confirmed},
                  {"waitingForHandle", report.waiting_for_handle},
                  {"keptByBrake", report.kept_by_brake},
                  {"changedMeanwhile", report.changed_meanwhile},
                  {"cooledBlocks", report.cooled_blocks},
                  {"released", released},
                  {"alarms", alarms},
                  {"failure", report.failure ? Json(report.failure->message) : Json()}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

using std::chrono::milliseconds;

/// Between passes when the grace, and with it the collecting, is off (docs/notes/calico-ipam.md#collector).
constexpr milliseconds kIntervalWithoutGrace = std::chrono::minutes(5);
constexpr milliseconds kIntervalMin{1};
/// For a page of a list: the server reads 500 pods.
constexpr std::chrono::seconds kPageTime{15};
/// Between two Events of one reason about one object: an API server keeps one for an hour.
constexpr std::chrono::hours kEventInterval{1};
/// Work that takes longer is taken for stuck.
constexpr milliseconds kWorkTimeout = std::chrono::minutes(15);
/// Between two looks whether work is stuck.
constexpr milliseconds kWatchInterval = std::chrono::seconds(10);
/// Between two rounds of counting and writing how full pools are.
constexpr milliseconds kStatusInterval = std::chrono::minutes(1);

struct ControllerOptions {
  std::string store_url;
  std::string facts_path;
  std::int64_t grace_ms = std::chrono::duration_cast<milliseconds>(core::collect::Settings{}.grace).count();
  std::optional<std::int64_t> interval_ms;
  bool once = false;
  bool dry_run = false;
  bool json = false;
  bool allocate_node_cidrs = false;
  NodeRangeFlags node_ranges;
  bool repair_service_ranges = false;
  std::string service_node_port_range;
  std::string metrics_bind_address;
  std::int64_t status_interval_ms = kStatusInterval.count();
  std::int64_t work_timeout_ms = kWorkTimeout.count();
  LeaderElectionFlags leader_election;
  HistoryFlags history;
  DeskFlags desk;
};

/// The pods of the cluster whose API keeps the register.
class ClusterPods final : public engine::PodSource {
 public:
  ClusterPods(std::unique_ptr<store::kube::Api> api, const Clock& clock) : api_(std::move(api)), clock_(clock) {}
  [[nodiscard]] Result<std::optional<std::uint64_t>> pods(
      const std::function<void()>& begin, const std::function<void(const core::collect::PodFact&)>& take) override {
    return store::kube::for_each_pod(*api_, clock_, begin, take);
  }
  [[nodiscard]] Result<std::optional<core::collect::PodFact>> pod(const std::string& namespace_name,
                                                                  const std::string& name) override {
    return store::kube::find_pod(*api_, namespace_name, name, Deadline::after(clock_.now(), kPageTime));
  }

 private:
  const std::unique_ptr<store::kube::Api> api_;
  const Clock& clock_;
};

/// The facts of the cluster that the register is of. Those of another one are an error: two clusters that share a
/// register by mistake would free each other's pods.
class FactsOfOwner final : public engine::FactSource {
 public:
  FactsOfOwner(std::unique_ptr<engine::FactSource> beneath, store::HasEpoch& owned, const Clock& clock)
      : beneath_(std::move(beneath)), owned_(owned), clock_(clock) {}
  [[nodiscard]] Result<core::collect::Facts> facts() override {
    TRY(core::collect::Facts facts, beneath_->facts());
    if (!facts.cluster.empty()) {
      TRY_VOID(owned_.belong_to(facts.cluster, Deadline::after(clock_.now(), kPageTime)));
    }
    return facts;
  }

 private:
  const std::unique_ptr<engine::FactSource> beneath_;
  store::HasEpoch& owned_;
  const Clock& clock_;
};

/// The parts of a controller that ask a Kubernetes API besides the register; null where there is none.
struct ClusterParts {
  std::unique_ptr<engine::PodSource> pods;
  std::unique_ptr<engine::NodeCidrs> cidrs;
  std::unique_ptr<store::kube::Events> events;
  std::unique_ptr<store::kube::StatusBoard> board;
};

/// The kinds that a dry run passes over, as this account may not read them, each with the reason.
using NotRead = std::map<std::string, Error>;

/// The store, its source of facts, and what the looks so far have left.
class Controller {
 public:
  /// `election`: null where every controller works.
  Controller(const ControllerOptions& options, Daemon& daemon, store::Store& opened, LeaderElection* election,
             ClusterParts cluster, NotRead& not_read)
      : options_(options),
        daemon_(daemon),
        election_(election),
        cluster_(std::move(cluster)),
        not_read_(not_read),
        telling_(opened,
                 [this](const core::Key&, const Error& damage) {
                   log_.warn("damaged record, set aside: {}", one_line(damage.message));
                 }),
        context_{telling_, daemon.clock, daemon.random},
        log_("croftd", std::make_shared<spdlog::sinks::stderr_sink_mt>()),
        health_(daemon.clock, milliseconds(options.work_timeout_ms)),
        node_ranges_(context_, log_, metrics_, {milliseconds(options.grace_ms), options.dry_run}, cluster_.cidrs.get(),
                     cluster_.events.get()),
        service_ranges_(context_, log_, metrics_),
        shown_status_(context_, log_, cluster_.board.get(), cluster_.events.get(),
                      options.metrics_bind_address.empty() ? nullptr : &metrics_,
                      milliseconds(options.status_interval_ms), options.allocate_node_cidrs) {
    log_.set_formatter(std::make_unique<LogFormat>("controller"));
    sweep_options_.settings.grace = milliseconds(options.grace_ms);
    sweep_options_.dry_run = options.dry_run;
    if (options.facts_path.empty()) {
      engine::NodeFacts::Denied denied;
      if (options.dry_run) denied = [this](const std::string& what, const Error& why) { not_read_.emplace(what, why); };
      source_ = std::make_unique<engine::NodeFacts>(context_, cluster_.pods.get(), std::move(denied));
    } else {
      source_ = std::make_unique<edge::StaticFacts>(options.facts_path, facts_age_max(), daemon.clock);
      if (auto* const owned = dynamic_cast<store::HasEpoch*>(&opened); owned != nullptr) {
        source_ = std::make_unique<FactsOfOwner>(std::move(source_), *owned, daemon.clock);
      }
    }
  }

  [[nodiscard]] Result<int> run() {
    if (options_.grace_ms == 0) {
      log_.info("collects nothing of {} (grace 0)", options_.store_url);
    } else {
      log_.info("collecting from {}, nodes and pods from {}, grace {:g} s{}", options_.store_url,
                !options_.facts_path.empty() ? options_.facts_path
                : cluster_.pods != nullptr   ? "the Kubernetes API"
                                             : "the store's nodes (pods are not known)",
                std::chrono::duration<double>(milliseconds(options_.grace_ms)).count(),
                options_.dry_run ? ", dry run: nothing is written" : "");
    }
    TRY_VOID(serve_metrics());
    // Node ranges are written into the store, after all that can refuse a flag.
    if (options_.repair_service_ranges) {
      TRY_VOID(service_ranges_.configure(options_.node_ranges.service_cluster_ip_range,
                                         options_.service_node_port_range, options_.dry_run));
    }
    // Each controller has one, whoever leads.
    std::unique_ptr<Desk> desk;
    if (!options_.once) {
      TRY(desk, Desk::start(options_.desk, options_.store_url, daemon_, log_, options_.history.path));
    }
    // An option that can't work is refused at once. All else may be mended, as a damaged record or a pool that is in
    // the way, and leaks are collected meanwhile.
    if (options_.allocate_node_cidrs) {
      const auto done = prepare_node_ranges();
      if (!done && done.error().code == ErrorCode::invalid_argument) return fail(done.error());
    }
    if (options_.once) return run_once();
    // The supervisor starts the ended process again; nothing has to ask for that, where others could keep it from an
    // answer.
    const edge::Watchdog watchdog(health_, std::min(kWatchInterval, milliseconds(options_.work_timeout_ms)),
                                  [](const std::string& text) { end_stuck(text); });
    // Each controller has its own, whoever leads.
    const HistoryKeeper history(context_, options_.history, daemon_, log_, metrics_);
    os::tell_service_manager("READY=1");
    if (election_ != nullptr) election_->start(log_, metrics_);
    auto code = run_until_stopped();
    if (election_ != nullptr) election_->end();
    // All work is done. A check of the desk, whose end is waited for now, may be cut off.
    if (desk != nullptr) daemon_.stop.before_forced_end({}, os::StopSignal::CutsOff::reading);
    return code;
  }

 private:
  /// Not by way of what is stuck: nothing is half done that a kill would not leave as well.
  [[noreturn]] static void end_stuck(const std::string& text) {
    static_cast<void>(os::write_standard_error(
        fmt::format("croftd: ending, to be started anew: {}\n", printable(text, Printed::line))));
    std::_Exit(static_cast<int>(edge::ExitCode::error));
  }

  [[nodiscard]] milliseconds facts_age_max() const {
    return options_.grace_ms > 0 ? milliseconds(options_.grace_ms / 2) : interval();
  }

  [[nodiscard]] milliseconds interval() const {
    if (options_.interval_ms) return milliseconds(*options_.interval_ms);
    return options_.grace_ms > 0 ? std::max(milliseconds(options_.grace_ms / 2), kIntervalMin) : kIntervalWithoutGrace;
  }

  /// Ends with what failed first, if anything did.
  [[nodiscard]] Result<int> run_once() {
    Result<int> code = look_twice();
    if (failed_) return fail(*failed_);
    return code;
  }

  /// The two looks that one conclusion takes.
  [[nodiscard]] Result<int> look_twice() {
    if (options_.repair_service_ranges) repair_service_ranges();
    TRY(engine::SweepReport report, pass());
    if (options_.grace_ms > 0) {
      if (daemon_.stop.wait_for(milliseconds(options_.grace_ms))) return static_cast<int>(edge::ExitCode::fine);
      TRY(report, pass());
    }
    if (report.failure) return fail(*report.failure);
    const bool is_held_back = ranges_held_back_ || !report.alarms.empty();
    return static_cast<int>(is_held_back ? edge::ExitCode::findings : edge::ExitCode::fine);
  }

  [[nodiscard]] bool leads() const { return election_ == nullptr || (term_ && election_->leads_in(*term_)); }

  /// The work of a controller that leads, in its order.
  [[nodiscard]] std::vector<Periodic> work() {
    std::vector<Periodic> all;
    const auto add = [&](std::chrono::nanoseconds every, const std::function<void()>& run) {
      all.push_back({every, [this, run] {
                       os::tell_service_manager("WATCHDOG=1");
                       health_.begin_work();
                       run();
                       health_.end_work();
                       return std::string();
                     }});
    };
    if (cluster_.events != nullptr) {
      all.push_back({kTurnMax, [this] { return cluster_.events->trouble(); },
                     "no Event tells what is wrong with pools and nodes"});
    }
    if (options_.repair_service_ranges) add(kServiceRangesInterval, [this] { repair_service_ranges(); });
    add(interval(), [this] {
      const auto done = pass();
      if (!done) log_.error("{}; trying again in {} ms", one_line(done.error().message), interval().count());
      health_.set("collector", done ? std::string() : done.error().message);
      if (!done) metrics_.count_failed_pass();
    });
    if (shown_status_.due() != std::chrono::nanoseconds::max()) {
      add(milliseconds(options_.status_interval_ms), [this] {
        if (leads() && daemon_.clock.now().since_boot >= shown_status_.due()) shown_status_.show();
      });
    }
    return all;
  }

  [[nodiscard]] Result<int> run_until_stopped() {
    std::vector<Periodic> all = work();
    do {
      os::tell_service_manager("WATCHDOG=1");
      if (!leads()) {
        metrics_.forget_pools();
        // A controller that waits for its turn is as good as it can be.
        health_.forget();
        health_.set("leading", "");
        term_ = election_->wait_for_term();
        if (!term_) break;
        forget();
        for (Periodic& one : all) one.due = {};
      }
      run_due(all, daemon_, log_);
    } while (!daemon_.stop.wait_for(until_due(all, daemon_.clock)));
    os::tell_service_manager("STOPPING=1");
    log_.info("told to stop");
    return static_cast<int>(edge::ExitCode::fine);
  }

  /// Forgets observations of another term: another controller may have led since.
  void forget() {
    memory_ = {};
    shown_status_.forget();
    node_ranges_.forget();
    node_ranges_ready_ = false;
    service_ranges_.forget();
  }

  [[nodiscard]] Result<void> serve_metrics() {
    if (options_.metrics_bind_address.empty()) return {};
    TRY(const auto address, edge::MetricsAddress::parse(options_.metrics_bind_address));
    TRY(metrics_server_, edge::serve_metrics([this] { return metrics_.text(); }, address, &health_));
    log_.info("metrics at http://{}/metrics, health at /healthz and /readyz", address.text());
    return {};
  }

  [[nodiscard]] Result<void> prepare_node_ranges() {
    if (node_ranges_ready_) return {};
    TRY_VOID(node_ranges_.configure(options_.node_ranges));
    node_ranges_ready_ = true;
    return {};
  }

  [[nodiscard]] Result<bool> node_ranges_pass() {
    if (const auto ready = prepare_node_ranges(); !ready) {
      if (ready.error().code != ErrorCode::refused_by_configuration) return fail(ready.error());
      return fail(ready.error().code,
                  ready.error().message +
                      ": no node gets a range until that is mended, and each pass tries again; what has pools, as ptp, "
                      "bridge and calico, needs no node ranges (docs/runbooks/node-ranges.md)");
    }
    return node_ranges_.pass();
  }

  /// Failures here keep nobody from collecting.
  void pass_over_node_ranges() {
    const auto done = node_ranges_pass();
    health_.set("node ranges", done ? std::string() : done.error().message);
    if (!done) return note_failure("node ranges", done.error());
    ranges_held_back_ = *done;
  }

  /// Likewise.
  void repair_service_ranges() {
    const auto done = service_ranges_.pass();
    health_.set("service ranges", done ? std::string() : done.error().message);
    if (!done) note_failure("service ranges", done.error());
  }

  void note_failure(const char* what, const Error& error) {
    log_.error("{}: {}", what, one_line(error.message));
    if (!failed_) failed_ = error.in(what);
  }

  [[nodiscard]] Result<engine::SweepReport> pass() {
    if (options_.allocate_node_cidrs) pass_over_node_ranges();
    TRY(engine::SweepReport report, engine::sweep(context_, *source_, memory_, sweep_options_));
    for (const auto& [kind, why] : report.not_allowed) {
      not_read_.emplace(kind == core::Kind::handle     ? "handles"
                        : kind == core::Kind::affinity ? "claims on blocks"
                                                       : "nodes that were removed",
                        why);
    }
    tell_not_read();
    const char* what = report.dry_run ? "would release" : "released";
    for (const auto& evidence : report.released) log_.info("{} {}", what, one_line(to_string(evidence)));
    for (const auto& alarm : report.alarms) log_.warn("{}: {}", name_of(alarm.kind), one_line(alarm.text));
    metrics_.count(report);
    log_.info("{}", summary_of(report));
    if (options_.json && !os::write_json_to_standard_output(json_of(report))) {
      return fail(ErrorCode::internal, "standard output is closed");
    }
    return report;
  }

  /// Once, of what was found so far.
  void tell_not_read() {
    if (std::exchange(told_not_read_, not_read_.size()) == not_read_.size()) return;
    std::string text;
    for (const auto& [what, why] : not_read_) {
      text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", what, one_line(why.message));
    }
    log_.warn("not judged, as this account may not read it: {}", text);
  }

  const ControllerOptions& options_;
  Daemon& daemon_;
  LeaderElection* const election_;
  std::optional<store::kube::Term> term_;  ///< in which this one leads, where there is an election
  const ClusterParts cluster_;
  NotRead& not_read_;
  std::size_t told_not_read_ = 0;  ///< so many of it
  engine::DamageReportingStore telling_;
  const engine::Context context_;
  spdlog::logger log_;
  engine::SweepOptions sweep_options_;
  std::unique_ptr<engine::FactSource> source_;
  core::collect::Memory memory_;
  edge::ControllerMetrics metrics_;
  edge::Health health_;
  std::unique_ptr<edge::WebServer> metrics_server_;
  NodeRanges node_ranges_;
  bool node_ranges_ready_ = false;
  bool ranges_held_back_ = false;  ///< in the last pass
  ServiceRanges service_ranges_;
  ShownStatus shown_status_;
  std::optional<Error> failed_;  ///< of the passes beside the collecting, the first
};

/// Null where every controller works.
[[nodiscard]] Result<std::unique_ptr<LeaderElection>> make_election(const ControllerOptions& options, Daemon& daemon,
                                                                    store::Store& opened) {
  // A controller that writes nothing takes the work from nobody, and `--once` looks once.
  const bool is_wanted = options.leader_election.leader_elect && !options.once && !options.dry_run;
  if (!is_wanted || store::scheme_of(options.store_url) != store::Scheme::kube) return nullptr;
  // One request that hangs must not cost the Lease.
  const milliseconds request_timeout{options.leader_election.lease_duration_ms / 3};
  TRY(auto api, open_kube_api(options.store_url, daemon.clock, kDaemonParts, request_timeout));
  return LeaderElection::make(options.leader_election, std::move(api), opened, daemon);
}

/// Empty where the store is no Kubernetes API; without pods where a file says what there is.
[[nodiscard]] Result<ClusterParts> make_cluster_parts(const ControllerOptions& options, Daemon& daemon) {
  ClusterParts parts;
  if (store::scheme_of(options.store_url) != store::Scheme::kube) return parts;
  if (options.facts_path.empty()) {
    TRY(auto api, open_kube_api(options.store_url, daemon.clock, kDaemonParts, kPageTime));
    parts.pods = std::make_unique<ClusterPods>(std::move(api), daemon.clock);
  }
  if (options.allocate_node_cidrs) {
    TRY(parts.cidrs, open_node_cidrs(options.store_url, daemon.clock, kDaemonParts));
  }
  // A controller that looks once leads nobody, and the next one shows it.
  if (options.status_interval_ms > 0 && !options.once && !options.dry_run) {
    TRY(auto api, open_kube_api(options.store_url, daemon.clock, kDaemonParts, kPageTime));
    parts.board = std::make_unique<store::kube::StatusBoard>(std::move(api), daemon.clock);
  }
  const bool tells = (options.allocate_node_cidrs || parts.board != nullptr) && !options.dry_run;
  if (tells) {
    TRY(auto api, open_kube_api(options.store_url, daemon.clock, kDaemonParts, kPageTime));
    TRY(const std::string host, os::host_name());
    parts.events = std::make_unique<store::kube::Events>(
        std::move(api), daemon.clock, daemon.random,
        store::kube::Events::Options{.component = "croft-controller", .node = host, .interval = kEventInterval});
  }
  return parts;
}

[[nodiscard]] Result<int> run_controller(const ControllerOptions& options, Daemon& daemon) {
  NotRead not_read;
  auto opened = options.dry_run
                    ? open_store_to_look(options.store_url, daemon.clock, kDaemonParts,
                                         [&](const Error& why) { not_read.emplace("what is Croft's own", why); })
                    : open_store(options.store_url, store::OpenMode::existing, daemon.clock, kDaemonParts);
  // An absent store is an unreachable one.
  if (!opened && opened.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::unavailable, opened.error().message);
  }
  if (!opened) return fail(opened.error());
  TRY(const auto election, make_election(options, daemon, **opened));
  store::Store& store = election != nullptr ? election->store() : **opened;
  TRY(auto cluster, make_cluster_parts(options, daemon));
  return Controller(options, daemon, store, election.get(), std::move(cluster), not_read).run();
}

}  // namespace

void add_controller_command(CLI::App& app, Daemon& daemon) {
  const auto options = std::make_shared<ControllerOptions>();
  const CLI::AsNumberWithUnit duration(
      std::map<std::string, std::int64_t>{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}},
      CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME");
  constexpr std::int64_t kDurationMax = 7LL * 24 * 3'600'000;
  CLI::App* command = app.add_subcommand("controller", "Collect leaked addresses, blocks, claims and handles");
  command->add_option("--store", options->store_url, "Store to work on")
      ->envname("CROFT_STORE")
      ->default_val(edge::kDefaultStoreUrl);
  command->add_option("--facts", options->facts_path,
                      "JSON file that lists the existing nodes and pods; without it the controller asks the Kubernetes "
                      "API that keeps the store, and of another store uses the node records and collects only what "
                      "belongs to nodes that are gone");
  const auto add_duration = [&](const char* name, auto& value, std::int64_t min, const char* help) {
    return command->add_option(name, value, help)
        ->transform(duration)
        ->check(CLI::Range(min, kDurationMax))
        ->type_name("DURATION");
  };
  add_duration("--grace", options->grace_ms, 0,
               "Time between the two looks in which something must look dead, e.g. 30s, 15m, 1h; 0s: collect nothing")
      ->default_str("15m");
  add_duration("--interval", options->interval_ms, kIntervalMin.count(),
               "Time between two looks (default: half of the grace)");
  command->add_flag("--once", options->once, "Look, wait for the grace period, look again and exit");
  command->add_flag(
      "--allocate-node-cidrs", options->allocate_node_cidrs,
      "In each pass, give every node with a record a range, and release the ranges of nodes that have been gone for "
      "the grace period; ranges are cut from --cluster-cidr, or as configured in the store; on a Kubernetes API they "
      "are also said in the nodes' spec.podCIDRs");
  add_node_range_flags(*command, options->node_ranges);
  command->add_flag("--repair-service-ranges", options->repair_service_ranges,
                    "Every three minutes, compare the Service ranges with the Services and repair them; "
                    "--service-cluster-ip-range sets the expected ranges (default: as stored)");
  command->add_option("--service-node-port-range", options->service_node_port_range,
                      "With --repair-service-ranges: the expected node port range (default: as stored)");
  add_metrics_option(*command, options->metrics_bind_address);
  add_duration("--status-interval", options->status_interval_ms, 0,
               "On a Kubernetes API: time between two rounds of writing how full pools and node ranges are "
               "(`kubectl get croftpools`); only what has changed is written; 0s turns it off")
      ->default_str("1m");
  add_duration("--work-timeout", options->work_timeout_ms, 1,
               "Longest time of a pass; a longer one is stuck and ends the process with exit code 1")
      ->default_str("15m");
  command->add_flag("--leader-elect", options->leader_election.leader_elect,
                    "On a kube: store only the controller that holds the Lease works, and others wait for it (default: "
                    "true; not with --once or --dry-run); --leader-elect=false turns it off");
  command
      ->add_option("--leader-elect-lease-duration-ms", options->leader_election.lease_duration_ms,
                   "Others take a Lease that was not renewed for so long; rounded up to seconds")
      ->check(CLI::Range(std::int64_t{1000}, std::int64_t{24} * 3'600'000))
      ->capture_default_str();
  command
      ->add_option("--leader-elect-resource-namespace", options->leader_election.resource_namespace,
                   "Namespace of the Lease")
      ->capture_default_str();
  add_history_flags(*command, options->history);
  add_desk_flags(*command, options->desk);
  command->add_flag("--dry-run", options->dry_run, "Show what would be released and write nothing");
  command->add_option("--output", options->json, "json: print one object per look on standard output")
      ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"json", true}, {"none", false}}))
      ->default_str("none");
  command->footer(
      "With --once, the exit code is that of the first pass that failed (node ranges, Services or collecting), or 3 if "
      "an alarm held it back; otherwise as for croft.");
  command->callback(
      [options, &daemon] { daemon.run = [options, &daemon] { return run_controller(*options, daemon); }; });
}

}  // namespace croft::app
