#pragma once

#include <mutex>
#include <string_view>

#include "base/clock.h"

namespace croft::os {

/// The clocks of this machine. The boot identity is read once, when the clock is first asked; it is all zero when /proc
/// can't be read. Safe to call from several threads.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override;

 private:
  mutable std::once_flag boot_read_;
  mutable BootId boot_;
};

/// The UUID in /proc/sys/kernel/random/boot_id: 32 hex digits in lower case, dashes don't count. All zero (unknown)
/// when the text is anything else.
[[nodiscard]] BootId parse_boot_id(std::string_view text);

}  // namespace croft::os
