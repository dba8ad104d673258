#include "store/kube/lease_rules.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace croft::store::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using wire::kube::LeaseRecord;

constexpr double kJitterFactor = 1.2;  // client-go's JitterFactor

std::int64_t ms(nanoseconds span) { return std::chrono::duration_cast<milliseconds>(span).count(); }

/// The longest pause between two tries.
nanoseconds pause_max(const LeaseTimes& times) {
  return times.retry_period +
         nanoseconds(static_cast<std::int64_t>(static_cast<double>(times.retry_period.count()) * kJitterFactor));
}

}  // namespace

Result<void> check_lease_times(const LeaseTimes& times) {
  const auto wrong = [](std::string text) { return fail(invalid_argument(std::move(text))); };
  if (times.duration < seconds{1}) {
    return wrong(fmt::format("lease duration {} ms: at least 1000 ms", ms(times.duration)));
  }
  if (times.renew_deadline >= times.duration) {
    return wrong(fmt::format("renew deadline {} ms: below the lease duration, {} ms, after which another may lead",
                             ms(times.renew_deadline), ms(times.duration)));
  }
  if (times.retry_period <= nanoseconds{0}) {
    return wrong(fmt::format("retry period {} ms: above 0", ms(times.retry_period)));
  }
  if (pause_max(times) >= times.renew_deadline) {
    return wrong(fmt::format("retry period {} ms: 2.2 of them are to be below the renew deadline, {} ms",
                             ms(times.retry_period), ms(times.renew_deadline)));
  }
  return {};
}

std::int64_t lease_seconds(nanoseconds duration) { return std::chrono::ceil<seconds>(duration).count(); }

nanoseconds candidate_pause(const LeaseTimes& times, Random& random) {
  const auto more = static_cast<std::uint64_t>((pause_max(times) - times.retry_period).count());
  return times.retry_period + nanoseconds(static_cast<std::int64_t>(random.next() % (more + 1)));
}

void LeaseSight::see(const LeaseRecord& record, const Instant& now) {
  if (record_ == record) return;
  record_ = record;
  changed_ = now.since_boot;
}

bool LeaseSight::may_take(std::string_view identity, const LeaseTimes& times, const Instant& now) const {
  if (!record_ || record_->holder.empty() || record_->holder == identity) return true;
  const nanoseconds duration = record_->duration_s > 0 ? nanoseconds(seconds(record_->duration_s)) : times.duration;
  return now.since_boot - changed_ >= duration;
}

LeaseRecord taken_record(const LeaseRecord* before, std::string_view identity, const LeaseTimes& times, WallTime now) {
  LeaseRecord record;
  record.holder = identity;
  record.duration_s = lease_seconds(times.duration);
  record.renewed = wire::kube::micro_time(now);
  const bool is_renewal = before != nullptr && before->holder == identity;
  record.acquired = is_renewal && !before->acquired.empty() ? before->acquired : record.renewed;
  // The API takes no more of them than an int32.
  const std::int64_t more = is_renewal ? 0 : 1;
  if (before != nullptr) record.transitions = std::min<std::int64_t>(before->transitions + more, INT32_MAX);
  return record;
}

LeaseRecord released_record(const LeaseRecord& before, WallTime now) {
  LeaseRecord record;
  record.duration_s = 1;
  record.acquired = record.renewed = wire::kube::micro_time(now);
  record.transitions = before.transitions;
  return record;
}

}  // namespace croft::store::kube
