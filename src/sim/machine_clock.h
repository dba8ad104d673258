#pragma once

#include <chrono>

#include "base/clock.h"
#include "sim/schedule.h"

namespace croft::sim {

/// The time that the wall clocks of a run show at its beginning, but for their skew, if nothing else is said:
/// 2026-01-15 10:00:00 UTC.
inline constexpr WallTime kBeginning{std::chrono::seconds(1768471200)};

/// The clocks of one machine: the wall clock may be wrong and be set, the other counts from the boot.
class MachineClock final : public Clock {
 public:
  /// `number`: of the machine, which no other has.
  MachineClock(const Schedule& schedule, std::uint16_t number, WallTime beginning = kBeginning)
      : schedule_(schedule), beginning_(beginning), booted_at_(Span{0} - kUpBefore) {
    boot_.bytes[0] = 1;
    boot_.bytes[1] = static_cast<std::uint8_t>(number);
    boot_.bytes[2] = static_cast<std::uint8_t>(number >> 8);
  }
  [[nodiscard]] Instant now() const override {
    return {beginning_ + schedule_.now() + skew_, schedule_.now() - booted_at_, boot_};
  }
  void set_skew(Span skew) { skew_ = skew; }
  void reboot() {
    booted_at_ = schedule_.now();
    ++boot_.bytes[0];
  }
  /// When a deadline of this boot is, on the schedule.
  [[nodiscard]] Span at(Deadline deadline) const {
    return deadline.at_since_boot == kNever ? kNever : booted_at_ + deadline.at_since_boot;
  }
  [[nodiscard]] const BootId& boot() const { return boot_; }
  [[nodiscard]] Span booted_at() const { return booted_at_; }

 private:
  static constexpr Span kUpBefore = std::chrono::hours{2};

  const Schedule& schedule_;
  const WallTime beginning_;
  Span booted_at_;
  Span skew_{0};
  BootId boot_;
};

}  // namespace croft::sim
