#include "vpc/decide/supply.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/assign.h"

namespace croft::core::warm {
namespace {

/// Whether what the cloud gives may take the place of a record: of one that said the address is not ours any more, or
/// of one that is nobody's and that the cloud itself seemed to have taken away. Not of one that is being released: that
/// call, or its repetition, would take it from under a pod.
bool may_come_back(const StockAddress& known) {
  const bool was_missing = known.doubts.size() == 1 && known.doubts.front() == StockDoubt::not_in_cloud;
  // The cloud's answer to our own request counts more than what was put aside before it.
  const bool is_set_aside = known.state == StockAddressState::quarantined && !known.other_mac && !is_kept(known);
  return known.state == StockAddressState::lent || (known.state == StockAddressState::free && was_missing) ||
         is_set_aside;
}

/// The node that borrows or borrowed it; null: not lent, or that is not known.
const std::string* lent_to(const StockAddress& address) {
  if (address.state != StockAddressState::lending && address.state != StockAddressState::lent) return nullptr;
  const auto node = address.extra.find(kLentToKey);
  return node == address.extra.end() ? nullptr : &node->second;
}

/// Whether it is one of these, and on its way back to the cloud.
bool is_releasing(const StockAddress& known, const std::vector<net::Address>& addresses) {
  return known.state == StockAddressState::releasing && std::ranges::find(addresses, known.address) != addresses.end();
}

/// Whether it is on its way to another node under this request.
bool is_lending(const StockAddress& known, const net::Address& address, const std::string& request) {
  return known.state == StockAddressState::lending && known.address == address && known.request == request;
}

}  // namespace

StockAddress record_of(const cloud::CloudAddress& given) {
  return {given.address, given.prefix_length, given.gateway, given.mac, given.vpc, given.subnet, given.object};
}

cloud::CloudAddress cloud_address_of(const StockAddress& address) {
  return {address.address, address.prefix_length, address.gateway, address.mac,
          address.vpc,     address.subnet,        address.object};
}

StockAddress taken_in(const Given& given, const Instant& now) {
  StockAddress address = record_of(given);
  address.created = now.wall;
  address.peer = given.from;
  if (!given.unfit.empty()) {
    address = with_state(std::move(address), StockAddressState::quarantined, now);
    address.why = given.unfit;
    return address;
  }
  if (given.verified) address.verified = now.wall;
  address.doubts = given.doubts;
  return with_state(std::move(address), given.verified ? StockAddressState::free : StockAddressState::probing, now);
}

Step<bool> plan_begin(const Snapshot& snapshot, const StockIntent& intent) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    reader.ask(warm_intent_key(intent.id));
    TRY(const Stock stock, Stock::read(reader));
    const bool is_for_stock = intent.what == StockIntent::What::allocate && promised_pod_name(intent).empty();
    const std::uint32_t most = stock.node() != nullptr ? stock.node()->node_max.value_or(0) : 0;
    std::uint32_t count = intent.count;  // on this node, or on their way here
    for (const StockIntent* other : stock.intents()) count += other->count;
    for (const StockAddress* known : stock.addresses()) count += known->state != StockAddressState::lent ? 1U : 0U;
    if (is_for_stock && most > 0 && count > most) {
      return fail(ErrorCode::exhausted,
                  fmt::format("the node may have {} addresses (--max-addresses), and no more are asked for", most));
    }
    return Plan<bool>{true, {to_put(warm_intent_key(intent.id), intent)}};
  });
}

Step<Changed> plan_take(const Snapshot& snapshot, const std::string& intent_id, const std::vector<Given>& given,
                        const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Changed>> {
    TRY(const Stock stock, Stock::read(reader));
    for (const Given& one : given) reader.ask(warm_address_key(one.address));
    TRY_VOID(reader.ready());
    Plan<Changed> plan;
    std::set<net::Address> seen;
    for (const Given& one : given) {
      const StockAddress* known = stock.find(one.address);
      if (!seen.insert(one.address).second) continue;  // said twice
      if (stock.is_damaged(one.address) || (known != nullptr && !may_come_back(*known))) continue;
      add(plan, taken_in(one, now));
    }
    if (stock.intent(intent_id) != nullptr) plan.writes.push_back(to_delete(warm_intent_key(intent_id)));
    return plan;
  });
}

Step<Changed> plan_probed(const Snapshot& snapshot, const std::vector<Probed>& probed, const Instant& now) {
  return change_each(snapshot, [&](Plan<Changed>& plan, const StockAddress& known) {
    const auto one = std::ranges::find(probed, known.address, &Probed::address);
    if (known.state != StockAddressState::probing || one == probed.end()) return;
    StockAddress after = with_state(known, one->other ? StockAddressState::quarantined : StockAddressState::free, now);
    after.other_mac = one->other;
    if (one->other) {
      after.why = fmt::format("{} answers for it on the wire", one->other->to_string());
    } else {
      after.verified = now.wall;
    }
    add(plan, std::move(after));
  });
}

Step<Changed> plan_return_to_cloud(const Snapshot& snapshot, const ReturnToCloud& what, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Changed>> {
    TRY(const Stock stock, Stock::read(reader));
    const bool is_named = !what.addresses.empty();
    std::vector<const StockAddress*> chosen;
    for (const StockAddress* address : stock.addresses()) {
      const bool is_wanted = !is_named || std::ranges::find(what.addresses, address->address) != what.addresses.end();
      const bool may_go = is_free_at(*address, now) || (is_named && address->state == StockAddressState::probing) ||
                          (what.unused && (address->state == StockAddressState::quarantined || is_unsure(*address)));
      if (is_wanted && may_go) chosen.push_back(address);
    }
    std::ranges::stable_sort(chosen, std::greater{}, [](const StockAddress* address) { return address->since; });
    if (!is_named && chosen.size() > what.count) chosen.resize(what.count);
    Plan<Changed> plan;
    for (const StockAddress* address : chosen) add(plan, with_state(*address, StockAddressState::releasing, now));
    return plan;
  });
}

Step<Changed> plan_returned(const Snapshot& snapshot, const std::vector<net::Address>& addresses) {
  return change_each(snapshot, [&](Plan<Changed>& plan, const StockAddress& known) {
    if (is_releasing(known, addresses)) add_gone(plan, known);
  });
}

Step<Changed> plan_not_returned(const Snapshot& snapshot, const std::vector<net::Address>& addresses,
                                const std::vector<StockDoubt>& doubts, const Instant& now) {
  return change_each(snapshot, [&](Plan<Changed>& plan, const StockAddress& known) {
    if (!is_releasing(known, addresses)) return;
    // An address that somebody else answers for is given to no pod, whatever else is known of it.
    const bool is_good = known.verified.has_value() && !known.other_mac;
    StockAddress after = with_state(known, is_good ? StockAddressState::free : StockAddressState::quarantined, now);
    if (is_good) after.doubts = doubts;
    if (!is_good) after.why = "it was to go back to the cloud, and is still here";
    add(plan, std::move(after));
  });
}

Step<std::optional<StockAddress>> plan_lend(const Snapshot& snapshot, const Lend& lend, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<std::optional<StockAddress>>> {
    TRY(const Stock stock, Stock::read(reader));
    const StockAddress* chosen = nullptr;
    std::size_t free = 0, loans = 0;
    for (const StockAddress* address : stock.addresses()) {
      const bool is_same_request =
          !lend.request.empty() && address->request == lend.request && address->peer == lend.to.to_string();
      if (is_same_request && address->state == StockAddressState::lending) {
        // It is to be moved again, and what came of that is not known before a time that begins now.
        StockAddress again = *address;
        again.since = now.wall;
        return Plan<std::optional<StockAddress>>{again, {put_of(again)}};
      }
      if (is_same_request) return Plan<std::optional<StockAddress>>{*address, {}};
      const std::string* const node = lent_to(*address);
      loans += node != nullptr && *node == lend.node && now.wall - address->since < std::chrono::minutes{1} ? 1U : 0U;
      if (!is_free_at(*address, now) || !address->verified || !is_of_subnet(*address, lend.subnet)) continue;
      ++free;
      if (chosen == nullptr || address->since < chosen->since) chosen = address;
    }
    if (!lend.node.empty() && loans >= kLoansAMinute) {
      return fail(ErrorCode::exhausted,
                  fmt::format("node {} has borrowed {} addresses here within a minute: it gets more after that",
                              lend.node, loans));
    }
    if (free <= lend.keeps) return Plan<std::optional<StockAddress>>{std::nullopt, {}};
    StockAddress after = with_state(*chosen, StockAddressState::lending, now);
    if (!lend.node.empty()) after.extra[kLentToKey] = lend.node;
    after.request = lend.request;
    after.peer = lend.to.to_string();
    return Plan<std::optional<StockAddress>>{after, {put_of(after)}};
  });
}

Step<Changed> plan_lent(const Snapshot& snapshot, const net::Address& address, const std::string& request,
                        const Instant& now) {
  return change_each(snapshot, [&](Plan<Changed>& plan, const StockAddress& known) {
    if (!is_lending(known, address, request)) return;
    StockAddress after = with_state(known, StockAddressState::lent, now);
    if (const std::string* node = lent_to(known)) after.extra[kLentToKey] = *node;
    after.mac = net::Mac::parse(known.peer).value_or(known.mac);
    add(plan, std::move(after));
  });
}

Step<Changed> plan_not_lent(const Snapshot& snapshot, const net::Address& address, const std::string& request,
                            const Instant& now) {
  return change_each(snapshot, [&](Plan<Changed>& plan, const StockAddress& known) {
    if (!is_lending(known, address, request)) return;
    StockAddress after = with_state(known, StockAddressState::free, now);
    after.peer.clear();
    add(plan, std::move(after));
  });
}

bool lies_elsewhere(const StockAddress& record, const cloud::CloudAddress& given) {
  const bool is_leaving = record.state == StockAddressState::releasing || record.state == StockAddressState::lending ||
                          record.state == StockAddressState::lent;
  if (is_leaving || record.address != given.address) return false;
  return record.mac != given.mac || (!given.object.empty() && record.object != given.object);
}

// ---------------------------------------------------------------- how many

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
  if (counts.used_by_host > counts.conflicting) {
    return fmt::format(
        "network namespaces or interfaces of this node have {} addresses of the stock that no pod was given: find "
        "whose they are (a pod with NET_ADMIN?); until they let go no more are asked for",
        counts.used_by_host);
  }
  return fmt::format(
      "others answer on the wire for {} addresses that are quarantined: find who does (proxy ARP?), and release "
      "them with `croft vpc release`; until then no more are asked for",
      counts.conflicting);
}

}  // namespace

std::optional<std::string> why_not_more(const std::vector<StockAddress>& records, const Marks& marks,
                                        const Instant& now) {
  const Counts counts = counts_of(records, now);
  if (std::uint64_t{counts.conflicting} + counts.used_by_host < others_max(marks)) return std::nullopt;
  return too_many_of_others(counts);
}

Outcome judge_fill(std::size_t came, std::size_t usable) {
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
    const std::uint64_t others = std::uint64_t{counts.conflicting} + counts.used_by_host;
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
  return memory.is_short() || std::uint64_t{counts.conflicting} + counts.used_by_host >= others_max(marks);
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
