#include "vpc/ucloud/limiter.h"

#include <algorithm>

namespace croft::cloud::ucloud {
namespace {

std::chrono::nanoseconds between(double per_second) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 / per_second));
}

}  // namespace

void Limiter::recover(const Instant& now) {
  const double seconds = std::chrono::duration<double>(now.since_boot - looked_at_).count();
  looked_at_ = now.since_boot;
  if (seconds > 0) current_ = std::min(rate_.per_second, current_ + seconds * rate_.recovery_per_second);
}

std::optional<std::chrono::nanoseconds> Limiter::take(const Instant& now, Deadline deadline) {
  if (rate_.per_second <= 0) return std::chrono::nanoseconds{0};
  const std::lock_guard lock(mutex_);
  recover(now);
  const auto turn = std::max(next_, now.since_boot);
  if (turn >= deadline.at_since_boot) return std::nullopt;
  next_ = turn + between(current_);
  return turn - now.since_boot;
}

void Limiter::refused(const Instant& now) {
  if (rate_.per_second <= 0) return;
  const std::lock_guard lock(mutex_);
  recover(now);
  if (refused_at_ && now.since_boot - *refused_at_ < between(current_)) return;
  refused_at_ = now.since_boot;
  current_ = std::max(std::min(rate_.least_per_second, rate_.per_second), current_ / 2);
  next_ = std::max(next_, now.since_boot + between(current_));
}

double Limiter::per_second(const Instant& now) {
  const std::lock_guard lock(mutex_);
  recover(now);
  return current_;
}

}  // namespace croft::cloud::ucloud
