#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ipam/audit/pool_status.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// A status as an object of Croft's own has it, in compact JSON with sorted names, as the API server sends it. A
/// condition that `object` has with the same `status` keeps its time; others changed `now`, in whole seconds. Pure.
[[nodiscard]] std::string encode_status(const core::PoolStatus& status, wire::JsonRef object, WallTime now);
[[nodiscard]] std::string encode_status(const core::NodeRangeStatus& status, wire::JsonRef object, WallTime now);

/// Shows in a Kubernetes API how full pools and node ranges are (docs/formats/kubernetes-own.md#status): a CroftPool
/// for each pool, and the status of the CroftNodeRangeSet. No part of the register: nothing decides by it. For the
/// leader and one thread; every write is under the resourceVersion that was read, and what somebody else has changed
/// meanwhile is left to the next round.
class StatusBoard {
 public:
  /// `clock` must outlive it.
  StatusBoard(std::unique_ptr<Api> api, const Clock& clock) : api_(std::move(api)), clock_(clock) {}

  struct Shown {
    std::vector<std::string> deleted;         ///< names of objects that showed no pool
    std::map<std::string, std::string> uids;  ///< of the objects, by pool
  };
  /// All pools there are. Objects that are as they should be are not written. Errors, after which some may be written:
  /// those of the API; not_found with the remedy when it has no such kind, permission_denied likewise.
  [[nodiscard]] Result<Shown> show(const std::vector<core::PoolStatus>& pools);
  /// Nothing is written where there is no such object. Errors: likewise.
  [[nodiscard]] Result<void> show(const core::NodeRangeStatus& ranges);

 private:
  /// The answer's body; nothing: there is no such object, or it is another one by now.
  [[nodiscard]] Result<std::optional<std::string>> ask(const Request& request);

  const std::unique_ptr<Api> api_;
  const Clock& clock_;
};

}  // namespace croft::store::kube
