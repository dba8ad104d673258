#include "vpc/decide/stock.h"

#include <algorithm>
#include <utility>

#include "vpc/decide/assign.h"

namespace croft::core::warm {
namespace {

const Listing kAddresses{Kind::warm_address, ""};
const Listing kIntents{Kind::warm_intent, ""};

constexpr const char* kTermIsOver =
    "a plugin of this node wrote to the stock meanwhile, because the agent gave no sign of life; ask again";

bool may_be_same(const std::string& a, const std::string& b) { return a.empty() || b.empty() || a == b; }

}  // namespace

Flow<Stock> Stock::read(Reader& reader) {
  const auto& addresses = reader.sound(kAddresses);
  const auto& intents = reader.sound(kIntents);
  const auto* node = reader.sound(warm_node_key());
  TRY_VOID(reader.ready());
  Stock stock;
  stock.node_ = node;
  for (const Listing& listing : {kAddresses, kIntents}) {
    for (const auto& [key, why] : reader.damaged(listing)) stock.damaged_.emplace(key.name, why);
  }
  stock.addresses_.reserve(addresses.size());
  for (const auto& [key, value] : addresses) stock.addresses_.push_back(&std::get<StockAddress>(value));
  for (const auto& [key, value] : intents) stock.intents_.push_back(&std::get<StockIntent>(value));
  return stock;
}

const StockAddress* Stock::find(const net::Address& address) const {
  // Keys order as text; a stock is small.
  const auto found = std::ranges::find_if(addresses_, [&](const auto* one) { return one->address == address; });
  return found == addresses_.end() ? nullptr : *found;
}

bool Stock::is_damaged(const net::Address& address) const {
  return !damaged_.empty() && damaged_.contains(warm_address_key(address).name);
}

const StockIntent* Stock::intent(const std::string& id) const {
  const auto found = std::ranges::find_if(intents_, [&](const auto* one) { return one->id == id; });
  return found == intents_.end() ? nullptr : *found;
}

Counts counts_of(const std::vector<StockAddress>& records, const Instant& now) {
  Counts counts;
  for (const StockAddress& address : records) {
    switch (address.state) {
      case StockAddressState::free:
      case StockAddressState::cooling:
        if (std::ranges::find(address.doubts, StockDoubt::used_by_host) != address.doubts.end()) ++counts.used_by_host;
        ++(!address.doubts.empty() ? counts.doubted : is_free_at(address, now) ? counts.free : counts.cooling);
        break;
      case StockAddressState::held:
        ++counts.held;
        break;
      case StockAddressState::probing:
        ++counts.probing;
        break;
      case StockAddressState::releasing:
      case StockAddressState::lending:
        ++counts.leaving;
        break;
      case StockAddressState::quarantined:
        ++counts.quarantined;
        if (address.other_mac) ++counts.conflicting;
        break;
      case StockAddressState::lent:
        break;
    }
  }
  return counts;
}

bool is_holder(const StockAddress& address, const Owner& owner) {
  return address.state == StockAddressState::held && !owner.container_id.empty() &&
         address.owner.container_id == owner.container_id && may_be_same(address.owner.network, owner.network) &&
         may_be_same(address.owner.interface_name, owner.interface_name);
}

bool is_of_subnet(const StockAddress& address, const std::string& subnet) {
  return may_be_same(address.subnet, subnet);
}

bool has_no_holder(StockAddressState state) {
  return state == StockAddressState::free || state == StockAddressState::cooling || state == StockAddressState::probing;
}

bool is_unsure(const StockAddress& address) { return has_no_holder(address.state) && !address.doubts.empty(); }

PlannedWrite put_of(StockAddress address) {
  const auto key = warm_address_key(address.address);
  return to_put(key, std::move(address));
}

void add(Plan<Changed>& plan, StockAddress after) {
  plan.answer.push_back(after);
  plan.writes.push_back(put_of(std::move(after)));
}

void add_gone(Plan<Changed>& plan, const StockAddress& before) {
  plan.answer.push_back(before);
  plan.writes.push_back(to_delete(warm_address_key(before.address)));
}

std::uint64_t term_of(const StockNode* node) { return node == nullptr ? 0 : node->term; }

Error term_is_over() { return {ErrorCode::unavailable, kTermIsOver, {}}; }
bool is_term_over(const Error& error) { return error.code == ErrorCode::unavailable && error.message == kTermIsOver; }

Result<void> put_under_term(std::vector<PlannedWrite>& writes, const StockNode* node, std::uint64_t own) {
  if (own != 0 && term_of(node) != own) return fail(term_is_over());
  const Key key = warm_node_key();
  auto known = std::ranges::find_if(writes, [&](const PlannedWrite& write) { return write.key == key; });
  if (own != 0) {
    // The row moves with each address that is given, so that a plugin that read it before has to read anew.
    const bool gives = std::ranges::any_of(writes, [](const PlannedWrite& write) {
      const auto* address = write.value ? std::get_if<StockAddress>(&*write.value) : nullptr;
      return address != nullptr && address->state == StockAddressState::held;
    });
    if (known == writes.end()) writes.push_back(gives ? to_put(warm_node_key(), StockNode(*node)) : to_check(key));
    return {};
  }
  if (known == writes.end()) {
    known = writes.insert(known, to_put(warm_node_key(), node != nullptr ? *node : StockNode{}));
  }
  std::get<StockNode>(known->value.value()).term = term_of(node) + 1;
  return {};
}

Step<std::uint64_t> plan_term(const Snapshot& snapshot, std::uint64_t own) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<std::uint64_t>> {
    const StockNode* known = reader.sound(warm_node_key());
    TRY_VOID(reader.ready());
    if (own != 0 && term_of(known) == own) return Plan<std::uint64_t>{own, {}};
    StockNode node = known != nullptr ? *known : StockNode{};
    node.term = std::max(own, term_of(known)) + 1;
    return Plan<std::uint64_t>{node.term, {to_put(warm_node_key(), node)}};
  });
}

Step<bool> plan_describe(const Snapshot& snapshot, StockNode node) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    // A damaged one says nothing that is not said here, but for its term, which any other number will do.
    const StockNode* known = reader.sound(warm_node_key());
    TRY_VOID(reader.ready());
    node.term = term_of(known);
    if (known != nullptr && *known == node) return Plan<bool>{false, {}};
    return Plan<bool>{true, {to_put(warm_node_key(), node)}};
  });
}

StockAddress with_state(StockAddress address, StockAddressState state, const Instant& now) {
  const bool is_elsewhere = state == StockAddressState::lending || state == StockAddressState::lent;
  address.state = state;
  address.since = now.wall;
  if (state != StockAddressState::held) {
    address.owner = {};
    address.pod = {};
    address.netns.clear();
    address.extra.clear();
  }
  if (state != StockAddressState::cooling) address.cooling.reset();
  if (state == StockAddressState::releasing || state == StockAddressState::quarantined || is_elsewhere)
    address.doubts.clear();
  if (state != StockAddressState::quarantined) address.why.clear();
  if (!is_elsewhere) address.request.clear();
  return address;
}

StockAddress let_go(StockAddress address, std::chrono::seconds cooldown, const Instant& now) {
  const auto promise = address.extra.find(kPromisedKey);
  std::string why = promise != address.extra.end() ? waits_for(promise->second) : std::string();
  Cooling cooling;
  cooling.released_at = now;
  cooling.cooldown = cooldown;
  cooling.previous_handle = handle_of(address.owner);
  if (!address.pod.name.empty()) {
    cooling.previous_secondary = {{kNamespaceKey, address.pod.namespace_name}, {kPodKey, address.pod.name}};
  }
  const auto state = !why.empty()           ? StockAddressState::quarantined
                     : cooldown.count() > 0 ? StockAddressState::cooling
                                            : StockAddressState::free;
  address = with_state(std::move(address), state, now);
  address.why = std::move(why);
  address.recycled = true;
  address.recycled_at = now.wall;
  if (state == StockAddressState::cooling) address.cooling = std::move(cooling);
  return address;
}

}  // namespace croft::core::warm
