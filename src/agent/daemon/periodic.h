#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/daemon/log_format.h"
#include "agent/metrics/server.h"

namespace croft::app {

/// Something that a daemon does again and again.
struct Periodic {
  std::chrono::nanoseconds every;    ///< from one end to the next begin; 0: each round
  std::function<std::string()> run;  ///< says what is in the way; empty: nothing is
  std::string what = {};             ///< begins the line in the log that tells of it
  std::string told = {};             ///< the last that was told: one line when it begins, or is another
  std::chrono::nanoseconds due{0};   ///< since boot
};

/// Runs those that are due, in their order. Told to stop, it begins none any more: each may wait for a store that is
/// away.
inline void run_due(std::vector<Periodic>& all, const Daemon& daemon, spdlog::logger& log) {
  for (Periodic& one : all) {
    if (daemon.clock.now().since_boot < one.due) continue;
    if (daemon.stop.wait_for(std::chrono::nanoseconds(0))) return;
    std::string trouble = one.run();
    if (!trouble.empty() && trouble != one.told) log.warn("{}: {}", one.what, one_line(trouble));
    one.told = std::move(trouble);
    one.due = daemon.clock.now().since_boot + one.every;
  }
}

/// How long until one of them is due; at most kTurnMax.
[[nodiscard]] inline std::chrono::nanoseconds until_due(const std::vector<Periodic>& all, const Clock& clock) {
  std::chrono::nanoseconds wait = kTurnMax;
  const auto now = clock.now().since_boot;
  for (const Periodic& one : all) wait = std::clamp(one.due - now, std::chrono::nanoseconds(0), wait);
  return wait;
}

/// --metrics-bind-address, into `text`.
inline void add_metrics_option(CLI::App& command, std::string& text) {
  command
      .add_option("--metrics-bind-address", text,
                  "Address for Prometheus metrics and for /healthz and /readyz: 127.0.0.1:9600, [::1]:9600, or :9600 "
                  "for all addresses of both families; without it nothing listens")
      ->type_name("HOST:PORT")
      ->check([](const std::string& given) {
        const auto address = edge::MetricsAddress::parse(given);
        return address ? std::string() : address.error().message;
      });
}

}  // namespace croft::app
