#include "ipam/decide/family_search.h"

#include <algorithm>
#include <tuple>

#include "base/time_text.h"

namespace croft::core {
namespace {

using net::Address;
using net::Prefix;
/// In how many blocks one refusal marks what cools.
constexpr std::size_t kMarkedMax = 12;

/// The place of the pool that contains a block among the usable ones; nothing when none does.
std::optional<std::size_t> place_of(const Prefix& block, const std::vector<const Pool*>& usable) {
  const auto it = std::find_if(usable.begin(), usable.end(), [&](const Pool* p) { return p->cidr.contains(block); });
  if (it == usable.end()) return {};
  return static_cast<std::size_t>(it - usable.begin());
}

std::vector<Prefix> names_of_owned(Reader& reader, const AffinityOwner& node, net::Family family,
                                   const std::vector<const Pool*>& usable) {
  std::vector<Prefix> result;
  for (const Key& key : reader.keys({Kind::affinity, owned_names_of(node, family)})) {
    if (const auto cidr = cidr_of(key); cidr && place_of(*cidr, usable)) result.push_back(*cidr);
  }
  return result;
}

}  // namespace

Labels Assignment::node_labels() {
  const Node* node = reader.sound(node_key(request.node.name));
  return node != nullptr && request.node.type == AffinityOwner::Type::host ? node->labels : Labels();
}

Flow<Block> Assignment::make_block(const Prefix& cidr) {
  static_cast<void>(reader.get(high_water_mark_key(cidr)));
  TRY_VOID(reader.ready());
  return new_block(cidr, request.node, draft.now(), number_before(reader, cidr));
}

void Assignment::accept(Taken taken, const Pool* claimed_in) {
  answer.addresses.push_back(described(taken.block, taken.address, false));
  if (claimed_in != nullptr) {
    draft.put_claimed(std::move(taken.block), *claimed_in, {handle_id});
  } else {
    draft.put(std::move(taken.block), {handle_id});
  }
  fresh = true;
}

AssignedAddress Assignment::described(const Block& block, const Address& address, bool held_before) const {
  const Pool* pool = pools.containing(address);
  AssignedAddress result;
  result.address = address;
  result.pool = pool != nullptr ? pool->name : "";
  result.pool_cidr = pool != nullptr ? pool->cidr : block.cidr;
  result.gateway = pool != nullptr ? pool->gateway : std::nullopt;
  result.block = block.cidr;
  result.sequence_number = sequence_of(block, *net::ordinal_of(block.cidr, address));
  result.held_before = held_before;
  result.borrowed = block.affinity != request.node;
  return result;
}

Attribute Assignment::attribute() const {
  Attribute result;
  result.handle_id = handle_id;
  result.secondary[kNodeKey] = request.node.name;
  result.secondary[kTimestampKey] = go_utc_text(draft.now().wall);
  result.secondary[kInterfaceKey] = request.owner.interface_name;
  if (!request.pod.name.empty()) result.secondary[kPodKey] = request.pod.name;
  if (!request.pod.namespace_name.empty()) result.secondary[kNamespaceKey] = request.pod.namespace_name;
  if (!request.pod.uid.empty()) result.secondary[kPodUidKey] = request.pod.uid;
  if (request.owner.network.find('.') != std::string::npos) result.secondary[kNetworkKey] = request.owner.network;
  return result;
}

std::vector<PlannedWrite> Assignment::marks() {
  Draft marked(reader, pools, draft.now());
  for (const Prefix& cidr : cooling) {
    if (marked.size() == kMarkedMax) break;
    const Block* stored = reader.find(block_key(cidr));
    if (stored == nullptr || stored->deleted) continue;
    auto block = marked.block(cidr);
    if (!block || !*block) continue;
    if (with_clock_marks(*stored, draft.now()) != *stored) marked.put(*std::move(*block), {});
  }
  return marked.writes();
}

const Affinity* OwnBlocks::row(const Prefix& cidr) const {
  const auto it = rows.find(cidr);
  return it == rows.end() ? nullptr : it->second;
}

std::size_t FamilyPools::owned_in(const std::vector<const Pool*>& pools) const {
  Reader& reader = in_.reader;
  if (!reader.foreign_writers()) return names_of_owned(reader, in_.request.node, family_, pools).size();
  return static_cast<std::size_t>(std::count_if(own_.rows.begin(), own_.rows.end(), [&](const auto& row) {
    if (!place_of(row.first, pools)) return false;
    const auto key = block_key(row.first);
    if (reader.snapshot().find(key) == nullptr || reader.damage(key) != nullptr) return true;
    const Block* block = reader.find(key);
    return block != nullptr && !block->deleted && block->affinity == in_.request.node;
  }));
}

Flow<bool> FamilyPools::owns_any() const {
  for (const Prefix& cidr : names_of_owned(in_.reader, in_.request.node, family_, usable_)) {
    const Block* block = in_.reader.sound(block_key(cidr));
    TRY_VOID(in_.reader.ready());
    if (block != nullptr && block->affinity == in_.request.node) return true;
  }
  TRY_VOID(in_.reader.ready());
  return false;
}

void prefetch_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family) {
  if (!reader.lacks(Kind::vacancy)) static_cast<void>(reader.list({Kind::vacancy, owned_names_of(node, family)}));
  if (!reader.foreign_writers()) return;
  static_cast<void>(reader.sound({Kind::affinity, owned_names_of(node, family)}));
}

void FamilyPools::find_own_blocks() {
  Reader& reader = in_.reader;
  const AffinityOwner& node = in_.request.node;
  const WallTime now = in_.draft.now().wall;
  if (reader.foreign_writers()) {
    for (const auto& [key, value] : reader.sound({Kind::affinity, owned_names_of(node, family_)})) {
      const auto* row = std::get_if<Affinity>(&value);
      if (row != nullptr && !row->deleted) own_.rows[row->cidr] = row;
    }
  }
  // Without a vacancy last: then most likely there is nothing to find.
  std::set<std::tuple<bool, std::size_t, WallTime, Prefix>> ready, waiting;
  std::set<Prefix> outside, hinted;
  if (!reader.lacks(Kind::vacancy)) {
    for (const auto& [key, value] : reader.list({Kind::vacancy, owned_names_of(node, family_)})) {
      const auto cidr = cidr_of(key);
      const auto* vacancy = std::get_if<Vacancy>(&value);
      if (!cidr || vacancy == nullptr) continue;  // a hint that can't be read is no hint
      if (reader.foreign_writers() && own_.row(*cidr) == nullptr) continue;
      hinted.insert(*cidr);
      if (const auto place = place_of(*cidr, usable_)) {
        (vacancy->ready_at <= now ? ready : waiting).emplace(false, *place, vacancy->ready_at, *cidr);
      } else {
        outside.insert(*cidr);
      }
    }
    // Only the name of an unreadable one is known, and without foreign writers nothing else names its block.
    for (const auto& [key, why] : reader.damaged({Kind::vacancy, owned_names_of(node, family_)})) {
      const auto cidr = cidr_of(key);
      const auto place = cidr ? place_of(*cidr, usable_) : std::nullopt;
      if (place && hinted.insert(*cidr).second) ready.emplace(true, *place, WallTime{}, *cidr);
    }
  }
  for (const auto& [cidr, row] : own_.rows) {
    if (hinted.contains(cidr)) continue;
    if (const auto place = place_of(cidr, usable_)) {
      ready.emplace(true, *place, WallTime{}, cidr);
    } else {
      outside.insert(cidr);
    }
  }
  for (const auto& entry : ready) own_.ready.push_back(std::get<3>(entry));
  for (const auto& entry : waiting) own_.waiting.push_back(std::get<3>(entry));
  own_.outside.assign(outside.begin(), outside.end());
}

Flow<std::vector<Prefix>> FamilyPools::add_unlabelled() {
  std::vector<Prefix> more;
  if (in_.reader.atomic_commit()) return more;
  for (const auto& [key, value] : in_.reader.sound({Kind::affinity, owned_names_of(in_.request.node, family_), true})) {
    const auto* row = std::get_if<Affinity>(&value);
    const bool is_usable = row != nullptr && !row->deleted && place_of(row->cidr, usable_);
    if (is_usable && own_.rows.emplace(row->cidr, row).second) more.push_back(row->cidr);
  }
  TRY_VOID(in_.reader.ready());
  return more;
}

AssignFlow<void> FamilyPools::choose() {
  const AssignRequest& request = in_.request;
  const auto& pools = in_.pools.pools();
  const bool asks_for_labels =
      std::any_of(pools.begin(), pools.end(), [](const Pool* pool) { return !is_for_all_nodes(*pool); });
  const PoolRequest wanted{request, family_, asks_for_labels ? in_.node_labels() : Labels(),
                           namespace_labels_of(in_.reader, in_.pools, request.pod, request.namespace_labels),
                           in_.reader.damage(node_key(request.node.name))};
  PoolChoice choice = choose_pools(in_.pools, wanted);
  TRY_VOID(in_.reader.ready());
  considered_ = std::move(choice.rejected);
  if (choice.refusal) return refuse(*std::move(choice.refusal));
  usable_ = std::move(choice.usable);
  find_own_blocks();
  TRY_VOID(in_.reader.ready());
  return {};
}

}  // namespace croft::core
