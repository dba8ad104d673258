#pragma once

#include "base/clock.h"

namespace croft::os {

/// Random numbers from the kernel, fit for names that must not collide between machines (write tokens). Waits for the
/// kernel's pool only in the first seconds of a machine's life. Safe to call from several threads.
class SystemRandom final : public Random {
 public:
  [[nodiscard]] std::uint64_t next() override;
};

}  // namespace croft::os
