#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include "agent/metrics/web_server.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/result.h"
#include "cli/stores/open_store.h"
#include "os/look_up.h"
#include "os/process.h"

// The common parts of croftd's subcommands.

namespace croft::app {

/// A daemon's main loop comes round at least so often, and says so to systemd (WatchdogSec in deploy/systemd).
inline constexpr std::chrono::minutes kTurnMax{1};

/// Its world, and the function that runs when the command line has been read.
struct Daemon {
  const Clock& clock;
  Random& random;
  os::StopSignal& stop;
  /// The subcommand that was chosen; returns the exit code, or an error that main() prints.
  std::function<Result<int>()> run;
};

// Each adds one subcommand; each in a file of its own.
void add_controller_command(CLI::App& app, Daemon& daemon);
void add_agent_command(CLI::App& app, Daemon& daemon);
void add_install_command(CLI::App& app, Daemon& daemon);
void add_vpc_agent_command(CLI::App& app, Daemon& daemon);

/// With what the daemon opens stores and APIs.
inline constexpr StoreParts kDaemonParts{kubernetes_registry, os::look_up_host, store::kube::make_service_mappings,
                                         os::ask_to_end};

/// A text for a log: what others sent or wrote may hold anything.
[[nodiscard]] inline std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

/// The form of croftd's lines: time, level, whose line it is, and the text, of which nothing reaches a terminal as more
/// than text.
class LogFormat final : public spdlog::formatter {
 public:
  explicit LogFormat(std::string who)
      : who_(std::move(who)), pattern_("%Y-%m-%dT%H:%M:%S.%eZ %l " + who_ + ": %v", spdlog::pattern_time_type::utc) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const std::string text = printable({message.payload.data(), message.payload.size()}, Printed::line);
    spdlog::details::log_msg safe = message;
    safe.payload = text;
    pattern_.format(safe, out);
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<LogFormat>(who_); }

 private:
  std::string who_;
  spdlog::pattern_formatter pattern_;
};

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
