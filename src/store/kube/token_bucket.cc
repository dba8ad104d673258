#include "store/kube/token_bucket.h"

#include <algorithm>

namespace croft::store::kube {

TokenBucket::TokenBucket(const RateLimit& limit) {
  if (!(limit.per_second > 0)) return;
  // Slower than one an hour nobody asks.
  constexpr double kSlowest = 1.0 / 3600;
  const double seconds = 1.0 / std::max(limit.per_second, kSlowest);
  between_ = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  // More than a month's turns at once is no limit any more, and would not fit.
  constexpr std::chrono::nanoseconds kAheadMax = std::chrono::hours{24 * 30};
  const std::int64_t more = std::max<std::int64_t>(limit.burst, 1) - 1;
  ahead_ = more > kAheadMax / std::max(between_, std::chrono::nanoseconds{1}) ? kAheadMax : between_ * more;
}

std::optional<std::chrono::nanoseconds> TokenBucket::take(const Instant& now, Deadline deadline) {
  if (between_.count() <= 0) return std::chrono::nanoseconds{0};
  const std::lock_guard lock(mutex_);
  const auto at = std::max(next_, now.since_boot);
  const auto wait = std::max(at - ahead_ - now.since_boot, std::chrono::nanoseconds{0});
  if (now.since_boot + wait >= deadline.at_since_boot) return std::nullopt;
  next_ = at + between_;
  return wait;
}

}  // namespace croft::store::kube
