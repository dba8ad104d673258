#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/daemon/log_format.h"
#include "agent/metrics/metrics.h"
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
                edge::Metrics& metrics)
      : context_(context), flags_(flags), daemon_(daemon), log_(log), metrics_(metrics) {
    if (!flags_.path.empty()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

 private:
  static constexpr std::chrono::seconds kAgain{10};
  static constexpr std::chrono::minutes kForecastInterval{5};

  void run(const std::stop_token& stop) {
    std::string told;
    while (!stop.stop_requested()) {
      const auto done = record(stop, told);
      if (done) return;
      if (done.error().message != told) log_.warn("history: {}; trying again", one_line(done.error().message));
      told = done.error().message;
      if (daemon_.stop.wait_for(kAgain)) return;
    }
  }

  [[nodiscard]] Result<void> record(const std::stop_token& stop, std::string& told) {
    TRY(const auto file,
        edge::HistoryFile::open(flags_.path, {std::chrono::hours(flags_.retention_hours), flags_.bytes_max}));
    engine::Recorder recorder(context_, *file);
    std::chrono::nanoseconds next_forecast{0};
    bool is_first = true;
    while (!stop.stop_requested() && !daemon_.stop.wait_for(std::chrono::nanoseconds(0))) {
      TRY_VOID(recorder.step());
      if (std::exchange(is_first, false)) {
        log_.info("history: {} holders are recorded in {}", recorder.open_count(), one_line(flags_.path));
        told.clear();
      }
      const Instant now = context_.clock.now();
      if (now.since_boot < next_forecast) continue;
      next_forecast = now.since_boot + kForecastInterval;
      TRY(const auto uses, file->uses(now.wall - edge::kForecastPast));
      std::map<std::string, core::history::Forecast> forecasts;
      for (const auto& [pool, series] : uses) forecasts.emplace(pool, core::history::forecast(series));
      metrics_.count(forecasts);
    }
    return {};
  }

  const engine::Context& context_;
  const HistoryFlags& flags_;
  Daemon& daemon_;
  spdlog::logger& log_;
  edge::Metrics& metrics_;
  std::jthread thread_;
};

}  // namespace croft::app
