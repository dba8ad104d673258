#include "vpc/decide/planner.h"

#include <algorithm>

#include <fmt/format.h>

namespace croft::core::warm {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kLookEvery = std::chrono::seconds{10};
/// Addresses that just came do not go back at once, whatever the marks were set to meanwhile.
constexpr nanoseconds kKeepAfterGrowing = std::chrono::seconds{60};
constexpr nanoseconds kShrinkEvery = std::chrono::seconds{30};
constexpr std::uint32_t kShrinkMax = 8;  // given back in one round
constexpr nanoseconds kExhaustedRest = std::chrono::seconds{120};
constexpr nanoseconds kWaitingPause = std::chrono::seconds{5};      // the same where an attachment waits
constexpr nanoseconds kTroubleRestFirst = std::chrono::seconds{1};  // doubled with each failure in a row
constexpr nanoseconds kTroubleRestMax = std::chrono::seconds{60};

nanoseconds with_jitter(nanoseconds span, double jitter) {
  const double part = std::clamp(jitter, 0.0, 1.0) / 5;  // up to a fifth longer, never shorter
  return span + nanoseconds{static_cast<std::int64_t>(static_cast<double>(span.count()) * part)};
}

nanoseconds trouble_rest(std::uint32_t failures) {
  const std::uint32_t times = std::clamp<std::uint32_t>(failures, 1, 16) - 1;
  return std::min(kTroubleRestFirst * (std::int64_t{1} << times), kTroubleRestMax);
}

std::uint64_t others_max(const Marks& marks) { return std::uint64_t{marks.high} + kConflictsMax; }

std::string too_many_of_others(const Counts& counts) {
  if (counts.claimed > counts.conflicting) {
    return fmt::format(
        "network namespaces or interfaces of this node have {} addresses of the stock that no pod was given: find "
        "whose "
        "they are (a pod with NET_ADMIN?); until they let go no more are asked for",
        counts.claimed);
  }
  return fmt::format(
      "others answer on the wire for {} addresses that are quarantined: find who does (proxy ARP?), and release "
      "them with `croft vpc release`; until then no more are asked for",
      counts.conflicting);
}

}  // namespace

std::optional<std::string> why_not_more(const std::vector<StockAddress>& records, const Marks& marks,
                                        const Instant& now) {
  Counts counts;
  for (const StockAddress& one : records) count(counts, one, now);
  if (std::uint64_t{counts.conflicting} + counts.claimed < others_max(marks)) return std::nullopt;
  return too_many_of_others(counts);
}

Outcome outcome_of_fill(std::size_t came, std::size_t usable) {
  return usable * 2 < came ? Outcome::conflict : Outcome::done;
}

Result<void> check_marks(const Marks& marks) {
  if (marks.low > marks.high) {
    return fail(
        invalid_argument(fmt::format("the low water mark {} is above the high water mark {}: lower the first or "
                                     "raise the second",
                                     marks.low, marks.high)));
  }
  if (marks.high > kMarkMax) {
    return fail(invalid_argument(
        fmt::format("the high water mark {} is more than {}: no node runs so many pods", marks.high, kMarkMax)));
  }
  return {};
}

Wish plan_stock(const Counts& counts, const Marks& marks, std::uint32_t waiting, const PlannerMemory& memory,
                const Instant& now) {
  Wish wish;
  wish.look_again = now.since_boot + kLookEvery;
  const std::uint64_t coming = std::uint64_t{counts.free} + counts.probing + counts.asked;
  const std::uint64_t wanted = std::uint64_t{marks.low} + waiting;
  if (coming < wanted) {
    std::uint64_t more = wanted - coming;
    if (marks.node_max > 0) {
      const std::uint64_t room = marks.node_max > counts.on_node() ? marks.node_max - counts.on_node() : 0;
      if (room == 0) {
        wish.why = fmt::format("the node has {} addresses, as many as it may (--max-addresses)", counts.on_node());
        wish.is_at_limit = true;
        return wish;
      }
      more = std::min(more, room);
    }
    // A neighbour that answers for one address after the other answers for the next, too, and the subnet is not this
    // node's alone.
    const std::uint64_t others = std::uint64_t{counts.conflicting} + counts.claimed;
    if (others >= others_max(marks)) {
      wish.why = too_many_of_others(counts);
      wish.is_at_limit = true;
      return wish;
    }
    more = std::min(more, others_max(marks) - others);
    if (memory.is_short()) more = 1;
    // A few addresses of a subnet may be somebody's, and whoever waits does not wait for all of the rest.
    const auto not_before = coming < waiting ? memory.one_not_before : memory.grow_not_before;
    if (now.since_boot < not_before) {
      wish.look_again = std::min(wish.look_again, not_before);
      wish.why = memory.last == Outcome::exhausted  ? "the subnet has no addresses left: resting"
                 : memory.last == Outcome::conflict ? "what the cloud gave last is somebody else's: resting"
                                                    : "the cloud is in trouble: resting";
      return wish;
    }
    wish.grow = static_cast<std::uint32_t>(std::min<std::uint64_t>(more, marks.batch_max));
    wish.why = fmt::format("{} free or on their way, {} wanted", coming, wanted);
    return wish;
  }
  if (counts.free > marks.high && waiting == 0) {
    if (now.since_boot < memory.shrink_not_before) {
      wish.look_again = std::min(wish.look_again, memory.shrink_not_before);
      wish.why = fmt::format("{} free, {} above the high water mark: later", counts.free, counts.free - marks.high);
      return wish;
    }
    wish.shrink = std::min(counts.free - marks.high, kShrinkMax);
    wish.why = fmt::format("{} free, {} above the high water mark", counts.free, counts.free - marks.high);
    return wish;
  }
  wish.why = fmt::format("{} free", counts.free);
  return wish;
}

PlannerMemory after_growing(PlannerMemory memory, Outcome outcome, double jitter, const Instant& now) {
  memory.last = outcome;
  memory.failures = outcome == Outcome::away || outcome == Outcome::conflict ? memory.failures + 1 : 0;
  nanoseconds rest{0};
  switch (outcome) {
    case Outcome::done:
      memory.shrink_not_before = std::max(memory.shrink_not_before, now.since_boot + kKeepAfterGrowing);
      break;
    case Outcome::exhausted:
      rest = with_jitter(kExhaustedRest, jitter);
      break;
    case Outcome::away:
    case Outcome::conflict:
      rest = with_jitter(trouble_rest(memory.failures), jitter);
      break;
    case Outcome::refused:
      // Somebody has to change something first; looking again now and then finds out that it was.
      rest = with_jitter(kTroubleRestMax, jitter);
      break;
  }
  memory.grow_not_before = now.since_boot + rest;
  const nanoseconds pause = with_jitter(kWaitingPause, jitter);
  memory.one_not_before = now.since_boot + (memory.is_short() ? std::min(rest, pause) : rest);
  return memory;
}

bool may_borrow(const Counts& counts, const Marks& marks, const PlannerMemory& memory) {
  if (marks.node_max > 0 && counts.on_node() >= marks.node_max) return false;
  return memory.is_short() || std::uint64_t{counts.conflicting} + counts.claimed >= others_max(marks);
}

PlannerMemory after_shrinking(PlannerMemory memory, Outcome outcome, double jitter, const Instant& now) {
  memory.failures = outcome == Outcome::done ? 0 : memory.failures + 1;
  nanoseconds rest = kShrinkEvery;
  if (outcome != Outcome::done) rest = std::max<nanoseconds>(rest, trouble_rest(memory.failures));
  memory.shrink_not_before = now.since_boot + with_jitter(rest, jitter);
  return outcome == Outcome::done ? without_shortage(memory) : memory;
}

PlannerMemory without_shortage(PlannerMemory memory) {
  if (!memory.is_short()) return memory;
  memory.grow_not_before = memory.one_not_before = {};
  memory.last = Outcome::done;
  return memory;
}

std::string status_of(const Counts& counts, const Marks& marks) {
  if (counts.free == 0) return "dry";
  if (counts.free < marks.low) return "hungry";
  return counts.free >= marks.high ? "overflow" : "normal";
}

}  // namespace croft::core::warm
