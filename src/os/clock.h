#pragma once

#include "base/clock.h"

namespace croft::os {

/// The clocks of this machine. The boot identity is read once, on construction; it is all zero when /proc can't be
/// read. Safe to call from several threads.
class SystemClock final : public Clock {
 public:
  SystemClock();
  [[nodiscard]] Instant now() const override;

 private:
  BootId boot_;
};

}  // namespace croft::os
