#pragma once

// Who may take a Lease, and when, as client-go's leader election has it (docs/reference/kubernetes-client.md#leases).
// Pure.

#include <chrono>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/format/lease.h"

namespace croft::store::kube {

struct LeaseTimes {
  std::chrono::nanoseconds duration = std::chrono::seconds{15};        ///< others leave the Lease alone so long
  std::chrono::nanoseconds renew_deadline = std::chrono::seconds{10};  ///< who has not renewed it stops leading
  std::chrono::nanoseconds retry_period = std::chrono::seconds{2};     ///< between two tries
};

/// Error: invalid_argument, naming the time and its bound: duration at least a second and above renew_deadline, that
/// above 2.2 times the retry period, as two tries must fit, that above 0.
[[nodiscard]] Result<void> check_lease_times(const LeaseTimes& times);

/// As a Lease says it: whole seconds, so never less than is meant.
[[nodiscard]] std::int64_t lease_seconds(std::chrono::nanoseconds duration);

/// How long a candidate waits before it tries again: from one to 2.2 retry periods, so that several do not come
/// together.
[[nodiscard]] std::chrono::nanoseconds candidate_pause(const LeaseTimes& times, Random& random);

/// What one candidate has seen of a Lease. No clock of another machine counts: a record is over when it has not
/// changed for its own duration by the clock here that never jumps (Instant::since_boot), counted from when the change
/// was seen, which is never before it was made.
class LeaseSight {
 public:
  /// A record as it was read; `now` is after the answer came.
  void see(const wire::kube::LeaseRecord& record, const Instant& now);

  /// Whether `identity` may write itself into the record seen last: nobody has it, it has it itself, or it is over.
  [[nodiscard]] bool may_take(std::string_view identity, const LeaseTimes& times, const Instant& now) const;

 private:
  std::optional<wire::kube::LeaseRecord> record_;
  std::chrono::nanoseconds changed_{0};  ///< since boot
};

/// The record to write in the place of `before`, which `identity` may take: acquired and counted anew unless it has it
/// already.
[[nodiscard]] wire::kube::LeaseRecord taken_record(const wire::kube::LeaseRecord* before, std::string_view identity,
                                                   const LeaseTimes& times, WallTime now);
/// The record to leave behind: nobody's, and over in a second for who looks at the time only.
[[nodiscard]] wire::kube::LeaseRecord released_record(const wire::kube::LeaseRecord& before, WallTime now);

}  // namespace croft::store::kube
