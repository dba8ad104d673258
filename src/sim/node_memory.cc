#include "sim/node_memory.h"

#include <algorithm>

namespace croft::sim {
namespace {

/// News come in bundles.
constexpr Span kBundle = std::chrono::milliseconds(10);

/// The name of the block that a claim, a vacancy or a mark is of: "ipv4/10.0.0.64/26".
std::string_view block_in(std::string_view name) {
  const std::size_t at = name.rfind("/ipv");
  return at == name.npos ? name : name.substr(at + 1);
}

}  // namespace

void ClaimedKeys::committed(const std::vector<Changed>& changes) {
  const bool is_first = waiting_.empty();
  for (const Changed& changed : changes) {
    if (changed.key.kind == core::Kind::affinity) waiting_.emplace_back(changed.key, changed.after.has_value());
  }
  if (!is_first || waiting_.empty()) return;
  schedule_.after(lag_ + kBundle, [this] {
    for (const auto& [key, is_there] : std::exchange(waiting_, {})) apply(key, is_there);
  });
}

void ClaimedKeys::apply(const core::Key& affinity, bool is_there) {
  if (is_there ? !affinities_.insert(affinity.name).second : affinities_.erase(affinity.name) == 0) return;
  const core::Key block{core::Kind::block, std::string(block_in(affinity.name))};
  store::SharedKeys& keys = keys_[block.name.starts_with("ipv4") ? 0 : 1];
  std::size_t& count = claims_[block.name];
  count = is_there ? count + 1 : count - 1;
  if (is_there && count == 1) keys.insert(block);
  if (count > 0) return;
  keys.erase(block);
  claims_.erase(block.name);
}

Result<store::ReadAnswer> NodeStore::read(const core::Missing& wanted, Deadline deadline) {
  if (server_.manners().can.atomic_commit) return beneath().read(wanted, deadline);
  const auto looks = std::ranges::count_if(
      wanted.lists, [](const auto& one) { return one.kind == core::Kind::affinity && one.as_stored; });
  const Manners::Work& work = server_.manners().work;
  if (claimed_ != nullptr) {
    server_.serve((2 * work.an_item + work.a_block) * looks * static_cast<std::int64_t>(claimed_->count()));
  }
  return beneath().read(wanted, deadline);
}

NodeMemory::NodeMemory(store::Store& direct, Server& server, ClaimedKeys& claimed, const core::AffinityOwner& node)
    : ForwardingStore(direct), server_(server), claimed_(claimed), own_names_(core::owned_names_of(node)) {}

NodeMemory::Known NodeMemory::knows(const core::Key& key) {
  switch (key.kind) {
    case core::Kind::block: {
      if (server_.records().contains({core::Kind::affinity, own_names_ + key.name})) return Known::yes;
      return claimed_.contains(key) ? Known::no : Known::absent;
    }
    case core::Kind::high_water_mark:
      return claimed_.contains({core::Kind::block, key.name}) ? Known::no : Known::absent;
    case core::Kind::vacancy:
    case core::Kind::affinity:
      return key.name.starts_with(own_names_) ? Known::yes : Known::no;
    case core::Kind::pool:
    case core::Kind::reservation:
    case core::Kind::ipam_config:
    case core::Kind::node:
    case core::Kind::handle:
      return Known::yes;
    default:
      return Known::no;
  }
}

bool NodeMemory::knows_lists(const core::Missing& wanted) const {
  if (std::ranges::any_of(wanted.free_blocks, &core::FreeBlock::as_stored)) return false;
  for (const core::Listing& listing : wanted.lists) {
    const bool is_small = listing.kind == core::Kind::pool || listing.kind == core::Kind::reservation;
    if (!is_small && !listing.name_prefix.starts_with(own_names_)) return false;
  }
  return std::ranges::all_of(wanted.keys, [&](const core::Listing& listing) {
    return !listing.as_stored && (listing.kind == core::Kind::block || listing.name_prefix.starts_with(own_names_));
  });
}

Result<store::ReadAnswer> NodeMemory::read(const core::Missing& wanted, Deadline deadline) {
  if (!knows_lists(wanted)) return beneath().read(wanted, deadline);
  core::Missing truth;
  for (const core::Key& key : wanted.records) {
    const Known known = knows(key);
    if (known == Known::no) return beneath().read(wanted, deadline);
    if (known == Known::yes) truth.records.insert(key);
  }
  truth.lists = wanted.lists;
  for (const core::Listing& listing : wanted.keys) {
    if (listing.kind != core::Kind::block) truth.keys.insert(listing);
  }
  TRY(store::ReadAnswer found, server_.records().read(truth, deadline));
  store::ReadAnswer answer;
  answer.lists = std::move(found.lists);
  auto next = found.records.begin();
  for (const core::Key& key : wanted.records) {
    answer.records.push_back(truth.records.contains(key) ? std::move(*next++) : std::nullopt);
  }
  for (const core::FreeBlock& block : wanted.free_blocks) {
    answer.free_blocks.push_back(core::find_free_block(block, *claimed_.list(block.pool.family())));
    answer.free_blocks.back().is_from_memory = true;
  }
  auto next_keys = found.keys.begin();
  for (const core::Listing& listing : wanted.keys) {
    if (listing.kind != core::Kind::block) {
      answer.keys.push_back(std::move(*next_keys++));
    } else {
      answer.keys.push_back(claimed_.list(listing.name_prefix.starts_with("ipv4") ? net::Family::v4 : net::Family::v6));
    }
  }
  return answer;
}

}  // namespace croft::sim
