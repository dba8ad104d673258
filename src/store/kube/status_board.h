#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ipam/audit/pool_status.h"
#include "store/kube/api.h"
#include "store/kube/format/event.h"

namespace croft::store::kube {

/// The object that shows a pool, for Events about it.
[[nodiscard]] wire::kube::Regarding pool_shown(std::string pool, std::string uid);

/// Shows in a Kubernetes API how full pools and node ranges are (docs/formats/kubernetes-own.md#status): a CroftPool
/// for each pool, and the status of the CroftNodeRangeSet. No part of the register: what it writes nobody reads to
/// decide, and it writes neither pools nor any `spec` of a record. For who leads; two that do so at once take turns, as
/// every write is under the resourceVersion that was read. For one thread.
class StatusBoard {
 public:
  struct Options {
    /// Objects made or written in one round, and as many deleted. Those whose conditions have turned come first; the
    /// others take turns, so that none waits for ever.
    std::size_t writes_max = 200;
    std::chrono::nanoseconds request_time = std::chrono::seconds(15);  ///< of one request
  };
  /// `clock` must outlive it.
  StatusBoard(std::unique_ptr<Api> api, const Clock& clock, Options options);

  /// What came of a round.
  struct Shown {
    std::size_t made = 0, written = 0, left = 0;  ///< objects; `left` are to be written and wait for the next round
    /// Names of objects that showed no pool: gone, or once their finalizers are. Each is told once.
    std::vector<std::string> deleted;
    std::map<std::string, std::string> uids;  ///< of the objects, by pool; of those that were there
  };
  /// All pools there are, ascending by name. Objects that are as they should be are not written; who was faster is not
  /// overwritten before the next round. Errors, after which some may be written: those of the API; not_found with the
  /// remedy when it has no such kind, permission_denied likewise.
  [[nodiscard]] Result<Shown> show(const std::vector<core::PoolStatus>& pools);
  /// Whether something was written. Nothing is where there is no such object. Errors: likewise.
  [[nodiscard]] Result<bool> show(const core::NodeRangeStatus& ranges);

 private:
  [[nodiscard]] Answer ask(const Request& request);
  /// Whether it was done; false: somebody else was faster.
  [[nodiscard]] Result<bool> change(const Request& request, std::string_view what);

  const std::unique_ptr<Api> api_;
  const Clock& clock_;
  const Options options_;
  std::string next_;  ///< pools before this name, whose conditions did not turn, have had their turn
};

}  // namespace croft::store::kube
