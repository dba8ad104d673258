#include "history/decide/holding.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/net/prefix.h"
#include "base/time_text.h"
#include "register/owner.h"

namespace croft::core::history {
namespace {

/// The clock of a node that writes a time into a block is off by no more than this (docs/formats/history.md#limits).
constexpr std::chrono::minutes kClockSkew{1};

std::string text_of(const Moment& moment) {
  return fmt::format("{} and {}", rfc3339_exact(std::chrono::floor<std::chrono::seconds>(moment.after)),
                     rfc3339_rounded_up(moment.by));
}

/// It is kept in files, as a positive number.
Print print_of(const Attribute& attribute, SequenceNumber sequence) {
  std::string text = fmt::format("{}\n{}", sequence.value, attribute.handle_id.value_or(""));
  for (const char* const key : {kNodeKey, kNamespaceKey, kPodKey, kPodUidKey}) {
    text += '\n' + member_of(attribute.secondary.get(), key);
  }
  return hash_of_name(text) >> 1;
}

Holder holder_of(const Attribute& attribute) {
  const auto& recorded = attribute.secondary.get();
  const std::string handle = attribute.handle_id.value_or("");
  Holder holder;
  holder.node = member_of(recorded, kNodeKey);
  holder.namespace_name = member_of(recorded, kNamespaceKey);
  holder.pod = member_of(recorded, kPodKey);
  holder.uid = member_of(recorded, kPodUidKey);
  const auto owner = owner_of(handle, recorded);
  if (!owner) {
    holder.handle = handle;
    return holder;
  }
  holder.network = owner->network;
  holder.container = owner->container_id;
  holder.interface_name = owner->interface_name;
  return holder;
}

/// The time that a writer recorded counts only inside of what was seen, and no closer than its clock may be wrong.
Moment moment_of(const std::optional<WallTime>& recorded, const Moment& seen) {
  if (!recorded || *recorded < seen.after || *recorded > seen.by) return seen;
  // One that is older than the history stays so.
  const WallTime after = seen.after == WallTime{} ? seen.after : std::max(seen.after, *recorded - kClockSkew);
  return {after, std::min(seen.by, *recorded + kClockSkew)};
}

std::optional<WallTime> taken_at(const Attribute& attribute) {
  const auto time = parse_go_utc_text(member_of(attribute.secondary.get(), kTimestampKey));
  return time ? std::optional(*time) : std::nullopt;
}

/// How it is known that a holder held an address at most maybe, or together with another one.
std::string known_of(const Holding& one, WallTime at) {
  if (at < one.begin.by && one.begin.after == WallTime{}) {
    return fmt::format("taken before {}, when the history saw it first", rfc3339_rounded_up(one.begin.by));
  }
  if (at < one.begin.by) return "taken between two looks, " + text_of(one.begin);
  if (one.end && at >= one.end->after) return "let go between two looks, " + text_of(*one.end);
  return "two holders are recorded";
}

std::string known_of(const Gap& gap) {
  const char* const why = gap.is_twice      ? "the clock was set back, and times came twice"
                          : gap.is_of_block ? "not every change of its block was seen"
                                            : "nobody looked";
  if (gap.until == kNotOver) return fmt::format("gap: its block is not readable since {}", rfc3339_exact(gap.from));
  return fmt::format("gap: {} between {}", why, text_of({gap.from, gap.until}));
}

/// Whether what is known of a holder, who held at a moment of a gap, is not put in doubt by it. Until a gap is over
/// nobody knows whether the one from before is there still.
bool stands_in(const Gap& gap, const Holding& one, const Reach& reach) {
  if (!one.end) return gap.until <= reach.until;
  return !gap.is_of_block || (one.begin.by <= gap.from && one.end->after >= gap.until);
}

}  // namespace

std::string name_of(const Holder& holder) {
  if (!holder.pod.empty()) return holder.namespace_name + "/" + holder.pod;
  return !holder.handle.empty() ? holder.handle : holder.container;
}

Held held_at(const Holding& holding, WallTime at) {
  const Moment& begin = holding.begin;
  if (at <= begin.after && at < begin.by) return Held::no;
  if (holding.end && at >= holding.end->by) return Held::no;
  if (at < begin.by || (holding.end && at >= holding.end->after)) return Held::maybe;
  return Held::yes;
}

Answer answer_at(const std::vector<Holding>& candidates, const std::optional<Gap>& gap, const Reach& reach,
                 WallTime at) {
  Answer answer;
  const Holding* open_question = nullptr;
  for (const Holding& one : candidates) {
    const Held held = held_at(one, at);
    if (held == Held::no) continue;
    answer.holdings.push_back(one);
    if (held == Held::maybe && open_question == nullptr) open_question = &one;
  }
  const bool is_one = answer.holdings.size() == 1 && open_question == nullptr;
  const bool is_older = is_one && answer.holdings[0].begin.after == WallTime{};
  const bool is_cut_off = is_one && gap && !stands_in(*gap, answer.holdings[0], reach);
  if (at >= reach.until) {
    answer.known = fmt::format("as of {}, when the history was written last", rfc3339_exact(reach.until));
  } else if (gap && (gap->is_twice || is_cut_off)) {
    answer.known = known_of(*gap);
  } else if (at < reach.since && (answer.holdings.empty() || is_older)) {
    answer.known = fmt::format("not recorded: the history begins at {}", rfc3339_exact(reach.since));
  } else if (is_one) {
    answer.is_sure = true;
    answer.known = "seen by watch";
  } else if (!answer.holdings.empty()) {
    answer.known = known_of(open_question == nullptr ? answer.holdings.front() : *open_question, at);
  } else if (gap) {
    answer.known = known_of(*gap);
  } else {
    answer.is_sure = true;
    answer.known = "seen by watch";
  }
  return answer;
}

Changes changes_of(const Open& open, const net::Prefix& range, const Block* block, const Moment& seen) {
  Changes changes;
  auto before = open.lower_bound(range.first());
  const auto end = open.upper_bound(range.last());
  // A time of release that the block records may be that of another one, who came and went.
  const auto let_go = [&](const net::Address& address) { changes.ended.push_back({address, seen}); };
  if (block != nullptr) {
    for_each_held(*block, [&](net::Ordinal ordinal, const Attribute& attribute) {
      const net::Address address = net::address_at(block->cidr, ordinal);
      const Print print = print_of(attribute, sequence_of(*block, ordinal));
      for (; before != end && before->first < address; ++before) let_go(before->first);
      if (before != end && before->first == address) {
        const bool is_same = before->second == print;
        ++before;
        if (is_same) return;
        let_go(address);
      }
      Begun begun{{address, "", holder_of(attribute), moment_of(taken_at(attribute), seen)}, print};
      changes.begun.push_back(std::move(begun));
    });
  }
  for (; before != end; ++before) let_go(before->first);
  // One who took an address has it after the one before, whatever two clocks say.
  for (Ended& ended : changes.ended) {
    const auto address_of = [](const Begun& begun) { return begun.holding.address; };
    const auto next = std::ranges::lower_bound(changes.begun, ended.address, {}, address_of);
    if (next == changes.begun.end() || next->holding.address != ended.address) continue;
    ended.end.by = std::min(ended.end.by, std::max(ended.end.after, next->holding.begin.by));
    next->holding.begin.after = std::max(next->holding.begin.after, ended.end.after);
    next->holding.begin.by = std::max(next->holding.begin.by, next->holding.begin.after);
  }
  return changes;
}

}  // namespace croft::core::history
