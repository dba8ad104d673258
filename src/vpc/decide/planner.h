#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "vpc/decide/stock.h"

// How large the stock should be, and when: between two water marks (docs/notes/warm-pool.md#control-loop). Pure
// arithmetic on counts; the stock's scenarios are in vpc/decide/scenarios.

namespace croft::core::warm {

/// An operator's settings.
struct Marks {
  std::uint32_t low = 3;    ///< as many free ones should there be at least
  std::uint32_t high = 50;  ///< and no more than this
  /// The most that a node may hold of all sorts together; 0: no limit. More pods than this it can't run.
  std::uint32_t node_max = 0;
  std::uint32_t batch_max = 110;  ///< asked of the cloud in one call
  friend bool operator==(const Marks&, const Marks&) = default;
};
/// Error: invalid_argument with both values where low > high, or a mark is more than kMarkMax.
[[nodiscard]] Result<void> check_marks(const Marks& marks);
inline constexpr std::uint32_t kMarkMax = 10'000;
/// As many that others answer for may lie in quarantine beside the high mark; then no more are asked for.
inline constexpr std::uint32_t kConflictsMax = 32;

/// The outcome of the last question to the cloud.
enum class Outcome : std::uint8_t {
  done,
  exhausted,
  away,  ///< or it has too many calls
  refused,
  conflict,  ///< most of what came is no pod's to have: somebody else answers for it, or the host uses it
};
/// Why, by the records alone, no more are asked for of what others have: they are too many.
[[nodiscard]] std::optional<std::string> why_not_more(const std::vector<StockAddress>& records, const Marks& marks,
                                                      const Instant& now);

/// The outcome of a question that brought so many, of which pods may have `usable`. One that brought nothing new may
/// have been answered with what an earlier one left.
[[nodiscard]] Outcome outcome_of_fill(std::size_t came, std::size_t usable);

/// The planner's memory from one round to the next; times are since boot, which nobody sets. Begins empty: what it
/// would remember from before a restart costs at the worst one call of the cloud.
struct PlannerMemory {
  std::chrono::nanoseconds grow_not_before{};
  std::chrono::nanoseconds one_not_before{};  ///< the same where somebody waits, and nothing is on its way to him
  std::chrono::nanoseconds shrink_not_before{};
  std::uint32_t failures = 0;    ///< in a row
  Outcome last = Outcome::done;  ///< of the last question for more
  /// The cloud had none for this node: the next question is for one.
  [[nodiscard]] bool is_short() const { return last == Outcome::exhausted || last == Outcome::conflict; }
};

/// The next thing to do. Never both.
struct Wish {
  std::uint32_t grow = 0;
  std::uint32_t shrink = 0;
  /// When to look again if nothing else happens.
  std::chrono::nanoseconds look_again{};
  std::string why;           ///< for people: one line
  bool is_at_limit = false;  ///< more are wanted, and somebody has to do something first: `why`
};

/// `waiting`: attachments that wait for an address because there is none. They are served beside the marks, with both
/// marks 0 too.
[[nodiscard]] Wish plan_stock(const Counts& counts, const Marks& marks, std::uint32_t waiting,
                              const PlannerMemory& memory, const Instant& now);

/// Whether other nodes are asked for what attachments wait for: the cloud has none for this node. Not where the node
/// has as many as it may.
[[nodiscard]] bool may_borrow(const Counts& counts, const Marks& marks, const PlannerMemory& memory);

/// The memory after a question to the cloud for more. `jitter`: 0 to 1, by which rests of many nodes drift apart.
[[nodiscard]] PlannerMemory after_growing(PlannerMemory memory, Outcome outcome, double jitter, const Instant& now);
/// The same after something was given back.
[[nodiscard]] PlannerMemory after_shrinking(PlannerMemory memory, Outcome outcome, double jitter, const Instant& now);
/// Something went back into the subnet, be it by an operator who looked into conflicts: asking is worth while again.
[[nodiscard]] PlannerMemory without_shortage(PlannerMemory memory);

/// "dry", "hungry", "normal" or "overflow", as other agents read it (docs/notes/warm-pool.md#control-loop).
[[nodiscard]] std::string status_of(const Counts& counts, const Marks& marks);

}  // namespace croft::core::warm
