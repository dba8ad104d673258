#include "core/warm/planner.h"

#include <algorithm>

#include <fmt/format.h>

namespace croft::core::warm {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kLookEvery = std::chrono::seconds{10};
/// What was just bought is not sold at once, whatever the marks were set to meanwhile.
constexpr nanoseconds kKeepAfterGrowing = std::chrono::seconds{60};

nanoseconds with_jitter(nanoseconds span, double jitter) {
  const double part = std::clamp(jitter, 0.0, 1.0) / 5;  // up to a fifth longer, never shorter
  return span + nanoseconds{static_cast<std::int64_t>(static_cast<double>(span.count()) * part)};
}

nanoseconds trouble_rest(std::uint32_t failures, const Marks& marks) {
  const std::uint32_t doublings = std::min<std::uint32_t>(failures == 0 ? 0 : failures - 1, 16);
  const auto rest = std::chrono::duration_cast<nanoseconds>(marks.trouble_rest_first) * (std::int64_t{1} << doublings);
  return std::min<nanoseconds>(rest, marks.trouble_rest_max);
}

}  // namespace

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
        wish.why = fmt::format("the node has {} addresses, as many as it may", counts.on_node());
        return wish;
      }
      more = std::min(more, room);
    }
    if (now.since_boot < memory.grow_not_before) {
      wish.look_again = std::min(wish.look_again, memory.grow_not_before);
      wish.why = memory.is_exhausted ? "the subnet has no addresses left: resting" : "the cloud is in trouble: resting";
      return wish;
    }
    wish.grow = static_cast<std::uint32_t>(std::min<std::uint64_t>(more, std::max<std::uint32_t>(marks.batch_max, 1)));
    wish.why = fmt::format("{} free or on their way, {} wanted", coming, wanted);
    return wish;
  }
  if (counts.free > marks.high && waiting == 0) {
    if (now.since_boot < memory.shrink_not_before) {
      wish.look_again = std::min(wish.look_again, memory.shrink_not_before);
      wish.why = fmt::format("{} free, {} above the high water mark: later", counts.free, counts.free - marks.high);
      return wish;
    }
    wish.shrink = std::min(counts.free - marks.high, std::max<std::uint32_t>(marks.shrink_max, 1));
    wish.why = fmt::format("{} free, {} above the high water mark", counts.free, counts.free - marks.high);
    return wish;
  }
  wish.why = fmt::format("{} free", counts.free);
  return wish;
}

PlannerMemory after_growing(PlannerMemory memory, Outcome outcome, const Marks& marks, double jitter,
                            const Instant& now) {
  memory.last = outcome;
  memory.is_exhausted = outcome == Outcome::exhausted;
  memory.failures = outcome == Outcome::done ? 0 : memory.failures + 1;
  nanoseconds rest{0};
  switch (outcome) {
    case Outcome::done:
      memory.shrink_not_before = std::max(memory.shrink_not_before, now.since_boot + kKeepAfterGrowing);
      break;
    case Outcome::exhausted:
      rest = with_jitter(marks.exhausted_rest, jitter);
      break;
    case Outcome::throttled:
    case Outcome::away:
      rest = with_jitter(trouble_rest(memory.failures, marks), jitter);
      break;
    case Outcome::refused:
      // Somebody has to change something first; looking again now and then finds out that it was.
      rest = with_jitter(marks.trouble_rest_max, jitter);
      break;
  }
  memory.grow_not_before = now.since_boot + rest;
  return memory;
}

PlannerMemory after_shrinking(PlannerMemory memory, Outcome outcome, const Marks& marks, double jitter,
                              const Instant& now) {
  memory.last = outcome;
  memory.failures = outcome == Outcome::done ? 0 : memory.failures + 1;
  nanoseconds rest = marks.shrink_every;
  if (outcome != Outcome::done) rest = std::max<nanoseconds>(rest, trouble_rest(memory.failures, marks));
  memory.shrink_not_before = now.since_boot + with_jitter(rest, jitter);
  if (outcome == Outcome::done) memory = without_exhaustion(memory);
  return memory;
}

PlannerMemory without_exhaustion(PlannerMemory memory) {
  if (memory.is_exhausted) memory.grow_not_before = {};
  memory.is_exhausted = false;
  return memory;
}

std::string status_of(const Counts& counts, const Marks& marks) {
  if (counts.free == 0) return "dry";
  if (counts.free < marks.low) return "hungry";
  return counts.free >= marks.high ? "overflow" : "normal";
}

}  // namespace croft::core::warm
