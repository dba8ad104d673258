#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/metrics/metrics.h"
#include "base/pacing.h"
#include "history/door/history_file.h"
#include "history/use/recorder.h"

namespace croft::app {

struct HistoryFlags {
  std::string path;  ///< empty: no history is kept
  std::int64_t retention_hours = edge::HistoryBounds{}.retention.count();
  std::int64_t bytes_max = edge::HistoryBounds{}.bytes_max;
};

inline void add_history_flags(CLI::App& command, HistoryFlags& flags) {
  command
      .add_option("--history", flags.path,
                  "File to record in who holds which address, for croft who, history and forecast; its directory "
                  "must exist")
      ->type_name("FILE");
  command
      .add_option("--history-retention", flags.retention_hours, "How long a record is kept after its holder has gone")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, std::int64_t>{{"h", 1}, {"d", 24}},
                                        CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME"))
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{24} * 3660))
      ->type_name("TIME")
      ->default_str("90d");
  command.add_option("--history-max-bytes", flags.bytes_max, "Size of the file above which the oldest records go")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 50))
      ->default_str("4GiB");
}

/// Records in a thread of its own. A failure is said in the log, once, and everything is tried again; nothing else
/// waits for it. References outlive it.
class HistoryKeeper {
 public:
  HistoryKeeper(const engine::Context& context, const HistoryFlags& flags, Daemon& daemon, spdlog::logger& log,
                edge::ControllerMetrics& metrics)
      : context_(context), flags_(flags), daemon_(daemon), log_(log), metrics_(metrics) {
    if (!flags_.path.empty()) thread_ = std::thread([this] { run(); });
  }
  ~HistoryKeeper() {
    is_over_ = true;
    // Nothing else is under way any more, and a store that is away may keep it waiting. A write of it is whole or none.
    daemon_.stop.before_forced_end({}, os::StopSignal::CutsOff::reading);
    if (thread_.joinable()) thread_.join();
  }
  HistoryKeeper(const HistoryKeeper&) = delete;
  HistoryKeeper& operator=(const HistoryKeeper&) = delete;

 private:
  static constexpr std::chrono::seconds kPauseMin{2};
  static constexpr std::chrono::minutes kPauseMax{5};
  static constexpr std::chrono::minutes kForecastInterval{5};

  void run() {
    std::string told;
    Backoff pauses(kPauseMin, kPauseMax, static_cast<std::uint64_t>(context_.clock.now().since_boot.count()));
    for (;;) {
      std::string trouble;
      const Instant begun = context_.clock.now();
      try {
        const auto done = record([&] { told.clear(); });
        if (!done) trouble = done.error().message;
      } catch (const std::exception& thrown) {
        trouble = thrown.what();  // no memory, say; the controller goes on
      }
      // A forecast that nobody renews is none.
      metrics_.count(std::map<std::string, core::history::Forecast>());
      if (is_ending()) return;
      if (trouble != told) log_.warn("history: {}; trying again", one_line(trouble));
      told = trouble;
      // One that fails soon behind its first look reads everything again and again.
      if (Deadline::after(begun, kPauseMax).passed(context_.clock.now())) pauses.reset();
      const Deadline pause = Deadline::after(context_.clock.now(), pauses.next());
      while (!pause.passed(context_.clock.now())) {
        if (is_over_ || daemon_.stop.wait_for(std::chrono::seconds(1))) return;
      }
    }
  }

  /// Until the daemon ends, or a step fails. `on_begin`: everything was read.
  [[nodiscard]] Result<void> record(const std::function<void()>& on_begin) {
    TRY(const auto file,
        edge::HistoryFile::open(flags_.path, {std::chrono::hours(flags_.retention_hours), flags_.bytes_max}));
    engine::Recorder recorder(
        context_, *file, [this] { return is_ending(); }, last_);
    std::chrono::nanoseconds next_forecast{0};
    bool is_first = true;
    while (!is_ending()) {
      const auto done = recorder.step();
      last_ = recorder.last_step();
      if (!done) return done;
      if (std::exchange(is_first, false)) {
        log_.info("history: {} holders are recorded in {}", recorder.open_count(), one_line(flags_.path));
        on_begin();
      }
      const Instant now = context_.clock.now();
      if (now.since_boot < next_forecast) continue;
      next_forecast = now.since_boot + kForecastInterval;
      TRY(const auto forecasts, file->forecasts(now.wall));
      metrics_.count(forecasts);
    }
    return {};
  }

  [[nodiscard]] bool is_ending() const { return is_over_ || daemon_.stop.wait_for(std::chrono::nanoseconds(0)); }

  const engine::Context context_;
  const HistoryFlags& flags_;
  Daemon& daemon_;
  spdlog::logger& log_;
  edge::ControllerMetrics& metrics_;
  Instant last_{};  ///< of the thread
  std::atomic<bool> is_over_ = false;
  std::thread thread_;  ///< the last: it uses all of the above
};

}  // namespace croft::app
