#pragma once

#include "base/clock.h"

namespace croft::os {

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
