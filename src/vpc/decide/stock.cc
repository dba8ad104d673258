#include "vpc/decide/stock.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/promised.h"

namespace croft::core::warm {
namespace {

const Listing kAddresses{Kind::warm_address, ""};
const Listing kIntents{Kind::warm_intent, ""};

constexpr const char* kTermIsOver =
    "a plugin of this node wrote to the stock meanwhile, because the agent gave no sign of life; ask again";

bool may_be_same(const std::string& a, const std::string& b) { return a.empty() || b.empty() || a == b; }

}  // namespace

std::vector<Listing> stock_listings() { return {kAddresses, kIntents}; }

Flow<Stock> Stock::read(Reader& reader) {
  const auto& addresses = reader.sound(kAddresses);
  const auto& intents = reader.sound(kIntents);
  const auto* node = reader.sound(warm_node_key());
  TRY_VOID(reader.ready());
  Stock stock;
  stock.node_ = node;
  for (const auto& [key, why] : reader.damaged(kAddresses)) stock.damaged_.push_back(key.name);
  if (addresses.size() + stock.damaged_.size() > kStockMax) {
    return fail(ErrorCode::corrupt, fmt::format("the stock has more than {} addresses: this is no node's", kStockMax));
  }
  stock.addresses_.reserve(addresses.size());
  for (const auto& [key, value] : addresses) stock.addresses_.push_back(&std::get<WarmAddress>(value));
  for (const auto& [key, value] : intents) stock.intents_.push_back(&std::get<WarmIntent>(value));
  return stock;
}

const WarmAddress* Stock::find(const net::Address& address) const {
  // Keys order as text; a stock is small.
  const auto found = std::ranges::find_if(addresses_, [&](const auto* one) { return one->address == address; });
  return found == addresses_.end() ? nullptr : *found;
}

bool Stock::is_damaged(const net::Address& address) const {
  return !damaged_.empty() && std::ranges::find(damaged_, warm_address_key(address).name) != damaged_.end();
}

const WarmIntent* Stock::intent(const std::string& id) const {
  const auto found = std::ranges::find_if(intents_, [&](const auto* one) { return one->id == id; });
  return found == intents_.end() ? nullptr : *found;
}

void count(Counts& counts, const WarmAddress& address, const Instant& now) {
  switch (address.state) {
    case WarmState::free:
    case WarmState::cooling:
      if (std::ranges::find(address.doubts, WarmDoubt::used_by_host) != address.doubts.end()) ++counts.claimed;
      ++(!address.doubts.empty() ? counts.doubted : is_free_at(address, now) ? counts.free : counts.cooling);
      break;
    case WarmState::held:
      ++counts.held;
      break;
    case WarmState::probing:
      ++counts.probing;
      break;
    case WarmState::releasing:
    case WarmState::lending:
      ++counts.leaving;
      break;
    case WarmState::quarantined:
      ++counts.quarantined;
      if (address.other_mac) ++counts.conflicting;
      break;
    case WarmState::lent:
      break;
  }
}

bool is_holder(const WarmAddress& address, const Owner& owner) {
  return address.state == WarmState::held && !owner.container_id.empty() &&
         address.owner.container_id == owner.container_id && may_be_same(address.owner.network, owner.network) &&
         may_be_same(address.owner.interface_name, owner.interface_name);
}

bool is_of_subnet(const WarmAddress& address, const std::string& subnet) { return may_be_same(address.subnet, subnet); }

bool is_unsure(const WarmAddress& address) {
  const WarmState state = address.state;
  const bool is_nobodys = state == WarmState::free || state == WarmState::cooling || state == WarmState::probing;
  return is_nobodys && !address.doubts.empty();
}

PlannedWrite put_of(WarmAddress address) {
  const auto key = warm_address_key(address.address);
  return to_put(key, std::move(address));
}

std::uint64_t term_of(const WarmNode* node) { return node == nullptr ? 0 : node->term; }

Error term_is_over() { return {ErrorCode::unavailable, kTermIsOver, {}}; }
bool is_term_over(const Error& error) { return error.code == ErrorCode::unavailable && error.message == kTermIsOver; }

Result<void> put_under_term(std::vector<PlannedWrite>& writes, const WarmNode* node, std::uint64_t own) {
  if (own != 0 && term_of(node) != own) return fail(term_is_over());
  const Key key = warm_node_key();
  const auto known = std::ranges::find_if(writes, [&](const PlannedWrite& write) { return write.key == key; });
  if (own != 0) {
    if (known == writes.end()) writes.push_back(to_check(key));
    return {};
  }
  WarmNode next = node != nullptr ? *node : WarmNode{};
  if (known != writes.end()) next = std::get<WarmNode>(known->value.value());
  next.term = term_of(node) + 1;
  if (known == writes.end()) {
    writes.push_back(to_put(warm_node_key(), std::move(next)));
  } else {
    known->value = std::move(next);
  }
  return {};
}

Step<std::uint64_t> plan_term(const Snapshot& snapshot, std::uint64_t own) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<std::uint64_t>> {
    const WarmNode* known = reader.sound(warm_node_key());
    TRY_VOID(reader.ready());
    if (own != 0 && term_of(known) == own) return Plan<std::uint64_t>{own, {}};
    WarmNode node = known != nullptr ? *known : WarmNode{};
    node.term = std::max(own, term_of(known)) + 1;
    return Plan<std::uint64_t>{node.term, {to_put(warm_node_key(), node)}};
  });
}

WarmAddress entered(WarmAddress address, WarmState state, const Instant& now) {
  const bool is_elsewhere = state == WarmState::lending || state == WarmState::lent;
  address.state = state;
  address.since = now.wall;
  if (state != WarmState::held) {
    address.owner = {};
    address.pod = {};
    address.netns.clear();
    address.extra.clear();
  }
  if (state != WarmState::cooling) address.cooling.reset();
  if (state == WarmState::releasing || state == WarmState::quarantined || is_elsewhere) address.doubts.clear();
  if (state != WarmState::quarantined) address.why.clear();
  if (!is_elsewhere) address.request.clear();
  return address;
}

WarmAddress let_go(WarmAddress address, std::chrono::seconds cooldown, const Instant& now) {
  if (const auto promise = address.extra.find(kPromisedKey); promise != address.extra.end()) {
    std::string why = waits_for(promise->second);
    address = entered(std::move(address), WarmState::quarantined, now);
    address.why = std::move(why);
    address.recycled = true;
    address.recycled_at = now.wall;
    return address;
  }
  Cooling cooling;
  cooling.released_at = now;
  cooling.cooldown = cooldown;
  cooling.previous_handle = handle_of(address.owner);
  if (!address.pod.name.empty()) {
    cooling.previous_secondary = {{kNamespaceKey, address.pod.namespace_name}, {kPodKey, address.pod.name}};
  }
  address = entered(std::move(address), cooldown.count() > 0 ? WarmState::cooling : WarmState::free, now);
  address.recycled = true;
  address.recycled_at = now.wall;
  if (cooldown.count() > 0) address.cooling = std::move(cooling);
  return address;
}

}  // namespace croft::core::warm
