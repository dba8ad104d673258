#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/metrics/web_server.h"
#include "base/clock.h"
#include "base/result.h"

namespace croft::app {

struct DeskFlags {
  std::string address;     ///< empty: there is no page
  std::string token_file;  ///< empty: a Kubernetes API judges tokens, or nobody does
};
void add_desk_flags(CLI::App& command, DeskFlags& flags);

/// Serves the page (docs/desk.md) while it lives, by a store of its own that refuses writes. Nothing else waits for it,
/// but for its end: that of a reading which is under way.
class Desk {
 public:
  /// Nothing without an address. A busy port, or a store that cannot be opened, is logged and tried again each minute.
  /// `history`: the file of one; empty: there is none. The references outlive this. Errors: invalid_argument for
  /// another address than loopback without a token file; those of reading that file.
  [[nodiscard]] static Result<std::unique_ptr<Desk>> start(const DeskFlags& flags, const std::string& store_url,
                                                           Daemon& daemon, spdlog::logger& log,
                                                           const std::string& history);
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

 private:
  struct Task {
    DeskFlags flags;
    edge::MetricsAddress address;
    std::string store_url;
    const Clock& clock;
    Random& random;
    spdlog::logger& log;
    std::string history;
  };
  class Served;

  explicit Desk(Task task);
  void serve(const std::stop_token& end);

  const Task task_;
  std::jthread thread_;  ///< last: it uses the task
};

}  // namespace croft::app
