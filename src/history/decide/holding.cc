#include "history/decide/holding.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/net/ordinal.h"
#include "base/time_text.h"
#include "register/owner.h"

namespace croft::core::history {
namespace {

/// Wall clocks of two machines are as far apart as this, and a record's time is taken for what it is all the same.
constexpr std::chrono::minutes kClockSkew{5};

std::string text_of(const Moment& moment) {
  return fmt::format("{} and {}", rfc3339_exact(std::chrono::floor<std::chrono::seconds>(moment.after)),
                     rfc3339_rounded_up(moment.by));
}

/// It is kept in files, as a positive number.
Print print_of(const Attribute& holder, SequenceNumber sequence) {
  return hash_of_name(fmt::format("{} {}", sequence.value, holder.handle_id.value_or(""))) >> 1;
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

/// The time that a writer recorded, unless the looks contradict it.
Moment moment_of(const std::optional<WallTime>& recorded, const Moment& seen) {
  const bool is_possible = recorded && *recorded <= seen.by + kClockSkew && *recorded >= seen.after - kClockSkew;
  return is_possible ? Moment::at(*recorded) : seen;
}

std::optional<WallTime> taken_at(const Attribute& attribute) {
  const auto time = parse_go_utc_text(member_of(attribute.secondary.get(), kTimestampKey));
  return time ? std::optional(*time) : std::nullopt;
}

}  // namespace

Held held_at(const Holding& holding, WallTime at) {
  const Moment& begin = holding.begin;
  if (at < begin.after || (at == begin.after && !begin.is_exact())) return Held::no;
  if (holding.end && at >= holding.end->by) return Held::no;
  if (at < begin.by || (holding.end && at >= holding.end->after)) return Held::maybe;
  return Held::yes;
}

Answer answer_at(const std::vector<Holding>& candidates, const std::optional<Gap>& gap, const Reach& reach,
                 WallTime at) {
  Answer answer;
  std::size_t sure = 0;
  for (const Holding& one : candidates) {
    const Held held = held_at(one, at);
    if (held == Held::no) continue;
    sure += held == Held::yes ? 1 : 0;
    answer.holdings.push_back(one);
  }
  if (at >= reach.until) {
    answer.known = fmt::format("as of {}, when the history was written last", rfc3339_exact(reach.until));
  } else if (sure == 1 && answer.holdings.size() == 1) {
    answer.is_sure = true;
    answer.known = "seen by watch";
  } else if (!answer.holdings.empty()) {
    const Holding& one = answer.holdings.front();
    const bool has_begun = at >= one.begin.by;
    answer.known = fmt::format("{} between two looks, {}", has_begun ? "let go" : "taken",
                               text_of(has_begun ? *one.end : one.begin));
    if (one.begin.after == WallTime{} && !has_begun) {
      answer.known = fmt::format("taken before {}, when the history saw it first", rfc3339_rounded_up(one.begin.by));
    }
  } else if (at < reach.since) {
    answer.known = fmt::format("not recorded: the history begins at {}", rfc3339_exact(reach.since));
  } else if (gap) {
    answer.known = fmt::format("gap: nobody looked between {}", text_of({gap->from, gap->until}));
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
  const auto let_go = [&](const net::Address& address) {
    const auto ordinal = block == nullptr ? std::nullopt : net::ordinal_of(block->cidr, address);
    const Attribute* const now = ordinal ? attribute_of(*block, *ordinal) : nullptr;
    const bool is_cooling = now != nullptr && now->cooling.has_value();
    changes.ended.push_back(
        {address, moment_of(is_cooling ? std::optional(now->cooling->released_at.wall) : std::nullopt, seen)});
  };
  if (block != nullptr) {
    for_each_held(*block, [&](net::Ordinal ordinal, const Attribute& attribute) {
      const net::Address address = net::address_at(block->cidr, ordinal);
      const Print print = print_of(attribute, sequence_of(*block, ordinal));
      for (; before != end && before->first < address; ++before) let_go(before->first);
      if (before != end && before->first == address) {
        const bool is_same = before->second == print;
        ++before;
        if (is_same) return;
        changes.ended.push_back({address, seen});
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
