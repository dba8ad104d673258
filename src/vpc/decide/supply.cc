#include "vpc/decide/supply.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/promised.h"

namespace croft::core::warm {
namespace {

/// A plan that grows by one changed record after the other.
void add(Plan<Changed>& plan, StockAddress after) {
  plan.answer.addresses.push_back(after);
  plan.writes.push_back(put_of(std::move(after)));
}

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

const StockAddress* in_state(const Stock& stock, const net::Address& address, StockAddressState state) {
  const StockAddress* found = stock.find(address);
  return found != nullptr && found->state == state ? found : nullptr;
}

/// The node that borrows or borrowed it; null: not lent, or that is not known.
const std::string* lent_to(const StockAddress& address) {
  if (address.state != StockAddressState::lending && address.state != StockAddressState::lent) return nullptr;
  const auto node = address.extra.find(kLentToKey);
  return node == address.extra.end() ? nullptr : &node->second;
}

/// The end of a loan under this request: `after` says what becomes of the address. Where that is over already, nothing.
template <class After>
Step<Changed> end_lending(const Snapshot& snapshot, const net::Address& address, const std::string& request,
                          After after) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Changed>> {
    TRY(const Stock stock, Stock::read(reader));
    Plan<Changed> plan;
    const StockAddress* lending = in_state(stock, address, StockAddressState::lending);
    if (lending == nullptr || lending->request != request) return plan;
    add(plan, after(*lending));
    return plan;
  });
}

}  // namespace

StockAddress record_of(const cloud::CloudAddress& given) {
  StockAddress address;
  address.address = given.address;
  address.prefix_length = given.prefix_length;
  address.gateway = given.gateway;
  address.mac = given.mac;
  address.vpc = given.vpc;
  address.subnet = given.subnet;
  address.object = given.object;
  return address;
}

StockAddress taken_in(const Given& given, const Instant& now) {
  StockAddress address = record_of(given);
  address.created = now.wall;
  address.peer = given.from;
  if (!given.unfit.empty()) {
    address = entered(std::move(address), StockAddressState::quarantined, now);
    address.why = given.unfit;
    return address;
  }
  if (given.verified) address.verified = now.wall;
  address.doubts = given.doubts;
  return entered(std::move(address), given.verified ? StockAddressState::free : StockAddressState::probing, now);
}

Step<bool> plan_begin(const Snapshot& snapshot, const StockIntent& intent, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    reader.ask(warm_intent_key(intent.id));
    TRY(const Stock stock, Stock::read(reader));
    const bool is_for_stock = intent.what == StockIntent::What::allocate && promised_pod_name(intent).empty();
    const std::uint32_t most = stock.node() != nullptr ? stock.node()->node_max.value_or(0) : 0;
    Counts counts;
    for (const StockAddress* address : stock.addresses()) count(counts, *address, now);
    for (const StockIntent* other : stock.intents()) counts.asked += other->count;
    counts.asked += intent.count;
    if (is_for_stock && most > 0 && counts.on_node() > most) {
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

Step<bool> plan_drop_intent(const Snapshot& snapshot, const std::string& intent_id) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    const auto key = warm_intent_key(intent_id);
    const bool is_there = reader.get(key) != nullptr;
    TRY_VOID(reader.ready());
    if (!is_there) return Plan<bool>{false, {}};
    return Plan<bool>{true, {to_delete(key)}};
  });
}

Step<Changed> plan_probed(const Snapshot& snapshot, const std::vector<Probed>& probed, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Changed>> {
    TRY(const Stock stock, Stock::read(reader));
    Plan<Changed> plan;
    for (const Probed& one : probed) {
      const StockAddress* known = in_state(stock, one.address, StockAddressState::probing);
      if (known == nullptr || plan.writes.size() == kChangesMax) continue;
      StockAddress after = entered(*known, one.other ? StockAddressState::quarantined : StockAddressState::free, now);
      after.other_mac = one.other;
      if (one.other) {
        after.why = fmt::format("{} answers for it on the wire", one.other->to_string());
      } else {
        after.verified = now.wall;
      }
      add(plan, std::move(after));
    }
    return plan;
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
    const std::size_t most = is_named ? kChangesMax : std::min<std::size_t>(what.count, kChangesMax);
    if (chosen.size() > most) chosen.resize(most);
    Plan<Changed> plan;
    for (const StockAddress* address : chosen) add(plan, entered(*address, StockAddressState::releasing, now));
    return plan;
  });
}

Step<Changed> plan_returned(const Snapshot& snapshot, const std::vector<net::Address>& addresses) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Changed>> {
    TRY(const Stock stock, Stock::read(reader));
    Plan<Changed> plan;
    for (const net::Address& address : addresses) {
      const StockAddress* known = in_state(stock, address, StockAddressState::releasing);
      if (known == nullptr) continue;
      plan.answer.addresses.push_back(*known);
      plan.writes.push_back(to_delete(warm_address_key(address)));
    }
    return plan;
  });
}

Step<Changed> plan_not_returned(const Snapshot& snapshot, const std::vector<net::Address>& addresses,
                                const std::vector<StockDoubt>& doubts, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Changed>> {
    TRY(const Stock stock, Stock::read(reader));
    Plan<Changed> plan;
    for (const net::Address& address : addresses) {
      const StockAddress* known = in_state(stock, address, StockAddressState::releasing);
      if (known == nullptr) continue;
      // An address that somebody else answers for is given to no pod, whatever else is known of it.
      const bool is_good = known->verified.has_value() && !known->other_mac;
      StockAddress after = entered(*known, is_good ? StockAddressState::free : StockAddressState::quarantined, now);
      if (is_good) after.doubts = doubts;
      if (!is_good) after.why = "it was to go back to the cloud, and is still here";
      add(plan, std::move(after));
    }
    return plan;
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
    StockAddress after = entered(*chosen, StockAddressState::lending, now);
    if (!lend.node.empty()) after.extra[kLentToKey] = lend.node;
    after.request = lend.request;
    after.peer = lend.to.to_string();
    return Plan<std::optional<StockAddress>>{after, {put_of(after)}};
  });
}

Step<Changed> plan_lent(const Snapshot& snapshot, const net::Address& address, const std::string& request,
                        const Instant& now) {
  return end_lending(snapshot, address, request, [&](const StockAddress& lending) {
    StockAddress after = entered(lending, StockAddressState::lent, now);
    if (const std::string* node = lent_to(lending)) after.extra[kLentToKey] = *node;
    after.mac = net::Mac::parse(lending.peer).value_or(lending.mac);
    return after;
  });
}

Step<Changed> plan_not_lent(const Snapshot& snapshot, const net::Address& address, const std::string& request,
                            const Instant& now) {
  return end_lending(snapshot, address, request, [&](const StockAddress& lending) {
    StockAddress after = entered(lending, StockAddressState::free, now);
    after.peer.clear();
    return after;
  });
}

bool lies_elsewhere(const StockAddress& record, const cloud::CloudAddress& given) {
  const bool is_leaving = record.state == StockAddressState::releasing || record.state == StockAddressState::lending ||
                          record.state == StockAddressState::lent;
  if (is_leaving || record.address != given.address) return false;
  return record.mac != given.mac || (!given.object.empty() && record.object != given.object);
}

}  // namespace croft::core::warm
