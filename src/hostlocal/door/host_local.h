#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cni/door/skeleton.h"
#include "hostlocal/reservations.h"
#include "store/store_url.h"

namespace croft::edge {

/// The outside of the personality `host-local`; `app` fills it in.
struct HostLocalWorld {
  /// Opens and locks a network's reservations; one that must exist and does not is not_found.
  std::function<Result<std::unique_ptr<store::Reservations>>(const std::string& data_dir, const std::string& network,
                                                             store::OpenMode mode)>
      open_reservations;
  /// Whether an ADD could write there now.
  std::function<Result<void>(const std::string& data_dir, const std::string& network)> check_directory;
  const Clock& clock;
  /// Takes one line for standard error.
  std::function<void(const std::string& line)> warn;
  /// Takes one line for each decision, without newline; never fails. Empty: nothing is logged.
  std::function<void(const std::string& line)> log;
};

/// The personality `host-local`: the reference plugin's configuration, files, results and errors
/// (docs/notes/host-local.md), all errors with code 999. `world` must outlive the plugin. Where it does better than
/// the reference:
/// - an ADD that fails, for whatever reason, leaves no reservation and touches no other one;
/// - DEL and GC need `name` and `ipam.dataDir` of the configuration and nothing else; a DEL that cannot remove a file
///   fails;
/// - CHECK compares with `prevResult`; GC works; STATUS looks at the directory, and at the ranges with
///   `"statusWhenFull": true`.
[[nodiscard]] CniPlugin host_local_plugin(const HostLocalWorld& world);

}  // namespace croft::edge
