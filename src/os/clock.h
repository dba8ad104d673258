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

/// Random numbers from the kernel, fit for names that must not collide between machines (write tokens). Waits for the
/// kernel's pool only in the first seconds of a machine's life. Safe to call from several threads.
///
/// The kernel is asked for several at once, the more the more a thread draws, 32 at most, which the thread keeps for
/// the draws to come. Each is given out once and forgotten. After a fork() the child has none of its parent's. It would
/// have after a bare clone(2), and a machine that is put back to an image of its memory draws those few again.
class SystemRandom final : public Random {
 public:
  [[nodiscard]] std::uint64_t next() override;
};

}  // namespace croft::os
