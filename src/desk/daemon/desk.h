#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "base/result.h"
#include "desk/use/past.h"

namespace croft::app {

struct DeskFlags {
  std::string address;     ///< empty: there is no page
  std::string token_file;  ///< empty: a Kubernetes API judges tokens, or nobody does
};
void add_desk_flags(CLI::App& command, DeskFlags& flags);

/// Serves the page (docs/desk.md) while it lives, by a store of its own that refuses writes. Nothing else waits for it.
class Desk {
 public:
  /// Nothing without an address. `past` may be null; it and the other references outlive this. Errors:
  /// invalid_argument for another address than loopback without a token file; already_exists when nothing can listen
  /// there; those of opening the store.
  [[nodiscard]] static Result<std::unique_ptr<Desk>> start(const DeskFlags& flags, const std::string& store_url,
                                                           Daemon& daemon, spdlog::logger& log, engine::Past* past);
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

 private:
  struct Parts;
  explicit Desk(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace croft::app
