#pragma once

// What is told of pools and of node ranges to who asks the Kubernetes API: the `status` of Croft's own objects
// (docs/formats/kubernetes-own.md#status). Written as merge patches of the subresource, under the resourceVersion that
// was read; read to compare with, and by nobody to decide.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json/document.h"
#include "ipam/audit/pool_status.h"
#include "store/kube/format/api.h"

namespace croft::wire::kube {

/// A condition as an object has it.
struct StatusCondition {
  std::string type, status;  ///< "Ready", "True"
  std::int64_t observed_generation = 0;
  std::string last_transition_time;  ///< RFC 3339
  std::string reason, message;
  friend bool operator==(const StatusCondition&, const StatusCondition&) = default;
};

/// An object as far as its status is compared with another one.
struct StatusSeen {
  std::int64_t generation = 0;              ///< of the object; 0: it says none
  std::vector<StatusCondition> conditions;  ///< without those that can't be read
  std::string status;                       ///< all of it, as canonical JSON; empty: there is none
};
/// Never fails: what is no status is another one than any that is written, and is written over.
[[nodiscard]] StatusSeen read_status(JsonRef object);

/// A status in canonical JSON, to compare with StatusSeen::status. A condition that was there with the same `status`
/// keeps its time; others changed `now`, in whole seconds.
[[nodiscard]] std::string encode_status(const core::PoolStatus& status, const StatusSeen& before, WallTime now);
[[nodiscard]] std::string encode_status(const core::NodeRangeStatus& status, const StatusSeen& before, WallTime now);

/// Whether a `status` of a condition, or which conditions there are, is another one than before.
[[nodiscard]] bool is_turn(const std::vector<core::Condition>& conditions, const StatusSeen& before);

/// The body of a merge patch (RFC 7386) of the subresource: only if the object is still that.
[[nodiscard]] std::string encode_status_patch(const ApiMeta& of, std::string_view status);
/// The body of the POST that makes a CroftPool; the API drops a status there.
[[nodiscard]] std::string encode_own_pool(std::string_view pool);

}  // namespace croft::wire::kube
