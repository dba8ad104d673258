#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/warm.h"
#include "vpc/decide/moves.h"
#include "vpc/decide/reconcile.h"

// A stock whose records are lost is known again from what is left: what the cloud has on this node's interface, what
// live pods say they have, and what the host uses (docs/warm-pool.md#a-damaged-store). It begins with an intent of
// process 0, which stands for all that the lost records may have known, and ends when that is settled.

namespace croft::core::warm {

/// As many addresses as one intent speaks for; more than an interface has.
inline constexpr std::uint32_t kRebuildMax = 4096;

/// The intent that a rebuild begins with: always of the same id, so that there is one at most.
[[nodiscard]] WarmIntent rebuild_intent(const Instant& now);
/// Whether no process asked for it.
[[nodiscard]] inline bool is_rebuild(const WarmIntent& intent) { return intent.process == 0; }

/// What looks have shown so far.
struct RebuildMemory {
  std::optional<std::chrono::nanoseconds> begun{};  ///< the first whole look, since boot
  /// Addresses without a record that nothing has used in any look, since when, since boot.
  std::map<net::Address, std::chrono::nanoseconds> unused_since{};
};

struct RebuildStep {
  std::vector<Given> take;  ///< into the stock, to be probed
  std::size_t resting = 0;  ///< unused, but not for long enough
  std::size_t of_pods = 0;  ///< judge() finds them, and they are recorded as held
  std::size_t of_host = 0;  ///< used by the host, and no pod says so: left to be quarantined
  bool is_done = false;     ///< nothing of it is left that could be taken in or recorded: the intent goes
};

/// `look` is whole: cloud, host, and pods where pods can be known; `records` were read after it. What nothing has used
/// for `rest`, in each look, is taken in: no pod that was being set up, and none that has just ended, has it. What is
/// set apart is nobody's.
[[nodiscard]] RebuildStep step_rebuild(RebuildMemory& memory, const std::vector<WarmAddress>& records, const Look& look,
                                       std::chrono::nanoseconds rest, const Instant& now);

}  // namespace croft::core::warm
