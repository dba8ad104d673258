#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "store/cached/cached_store.h"

namespace croft::store {
namespace {

/// The part of the register that one node looks at again and again (core::Followed).
struct NodesPart {
  std::vector<Key> records;               ///< single ones
  std::vector<core::Listing> lists;       ///< whole
  std::vector<core::Listing> claims;      ///< of which the names of all count
  std::vector<core::Listing> own_claims;  ///< and the node's own whole
};

NodesPart part_of(const core::AffinityOwner& node) {
  NodesPart part;
  const std::string own_names = core::owned_names_of(node);
  for (const core::KindTraits& row : core::kKinds) {
    switch (row.followed) {
      case core::Followed::all:
        if (row.kind == Kind::ipam_config) {
          part.records.push_back(core::ipam_config_key());  // the only one of its kind
        } else {
          part.lists.push_back({row.kind, ""});
        }
        break;
      case core::Followed::own_node:
        part.records.push_back(core::node_key(node.name));
        break;
      case core::Followed::own_names:
        part.lists.push_back({row.kind, own_names});
        break;
      case core::Followed::claims:
        part.claims.push_back({row.kind, ""});
        part.own_claims.push_back({row.kind, own_names, true});
        break;
      case core::Followed::own_blocks:  // what the claims say
      case core::Followed::own_handles:
      case core::Followed::nothing:
        break;
    }
  }
  return part;
}

/// The handles that hold addresses of a record, if it is a block's: each once, in order. Those of the past holders of
/// cooling addresses do not.
std::vector<std::string_view> handles_in(const Record& record) {
  std::vector<std::string_view> ids;
  const auto* block = record.get_if<core::Block>();
  if (block == nullptr) return ids;
  for (const core::Attribute& attribute : block->attributes) {
    if (attribute.handle_id && !attribute.cooling) ids.emplace_back(*attribute.handle_id);
  }
  std::ranges::sort(ids);
  const auto doubles = std::ranges::unique(ids);
  ids.erase(doubles.begin(), doubles.end());
  return ids;
}

/// Whether a claim of this block has a condition on it as far as this pool goes: the pool is elsewhere, or has blocks
/// of this length. Nothing may be guessed of others; they may be anybody's, or nobody's, from before the pool was
/// changed.
bool may_be_block_of(const core::Pool& pool, const net::Prefix& block) {
  return !pool.cidr.overlaps(block) || pool.block_length == block.length();
}

/// Handles whose blocks are not written yet: more than one commit makes.
constexpr std::size_t kAheadMax = 1024;

/// The entries of one list that are not in the other.
std::vector<std::string> without(const std::vector<std::string_view>& ids,
                                 const std::vector<std::string_view>& others) {
  std::vector<std::string_view> rest;
  std::set_difference(ids.begin(), ids.end(), others.begin(), others.end(), std::back_inserter(rest));
  return {rest.begin(), rest.end()};
}

}  // namespace

Cache::Cache(core::AffinityOwner node) : node_(std::move(node)), own_names_(core::owned_names_of(node_)) {}

core::Missing Cache::first_read() const {
  const NodesPart part = part_of(node_);
  core::Missing wanted;
  wanted.records.insert(part.records.begin(), part.records.end());
  wanted.lists.insert(part.lists.begin(), part.lists.end());
  wanted.lists.insert(part.own_claims.begin(), part.own_claims.end());
  wanted.keys.insert(part.claims.begin(), part.claims.end());
  return wanted;
}

WatchScope Cache::scope() const {
  NodesPart part = part_of(node_);
  WatchScope scope{std::move(part.records), std::move(part.lists)};
  scope.lists.insert(scope.lists.end(), part.claims.begin(), part.claims.end());
  return scope;
}

bool Cache::is_watched(const Key& key) const {
  switch (core::traits_of(key.kind).followed) {
    case core::Followed::all:
    case core::Followed::claims:
      return true;
    case core::Followed::own_names:
      return is_own_name(key.name);
    case core::Followed::own_node:
      return key == core::node_key(node_.name);
    case core::Followed::own_blocks: {
      const auto cidr = core::cidr_of(key);
      return cidr && own_.contains(*cidr);
    }
    case core::Followed::own_handles:
    case core::Followed::nothing:
      return false;
  }
  return false;
}

// ---------------------------------------------------------------- coming in

bool Cache::is_older_than_known(const Key& key, Revision revision) const {
  const auto deleted = deleted_.find(key);
  if (deleted != deleted_.end() && deleted->second > revision) return true;
  const auto known = records_.find(key);
  return known != records_.end() && known->second.revision > revision;
}

/// It is read anew each time: what is beside a block changes without the block's revision, and without news when an
/// operator mends it.
bool Cache::is_unreadable_block(const Key& key) const {
  const auto known = records_.find(key);
  return key.kind == Kind::block && known != records_.end() && !known->second.value;
}

bool Cache::is_newer_than_known(const Record& record) const {
  const auto known = records_.find(record.key);
  const bool is_same =
      known != records_.end() && known->second.revision == record.revision && !is_unreadable_block(record.key);
  return !is_same && !is_older_than_known(record.key, record.revision);
}

bool Cache::is_there(const Key& key) const {
  return records_.contains(key) || (key.kind == Kind::affinity && affinity_names_.contains(key.name));
}

void Cache::learn_all(const core::Missing& wanted, const ReadAnswer& answer) {
  // Claims first: they say which blocks are the node's own.
  auto keys = answer.keys.begin();
  for (const core::Listing& listing : wanted.keys) {
    for (const Key& key : **keys) {
      if (listing.kind == Kind::affinity) put_affinity(key, std::nullopt);
    }
    ++keys;
  }
  for (const auto& list : answer.lists) {
    for (const Record& record : list) {
      if (is_newer_than_known(record)) put(record.key, record);
    }
  }
  for (const auto& record : answer.records) {
    if (record && is_newer_than_known(*record)) put(record->key, *record);
  }
}

bool Cache::wants(const Key& key) const {
  if (records_.contains(key) && !touched_.contains(key) && !is_unreadable_block(key)) return false;
  if (key.kind == Kind::handle) return mentions_.contains(key.name);
  return key.kind == Kind::block && is_watched(key);
}

void Cache::learn(const ReadAnswer& answer) {
  for (const auto& record : answer.records) {
    if (record && wants(record->key) && is_newer_than_known(*record)) put(record->key, *record);
  }
}

core::Missing Cache::unknown(std::size_t most) const {
  core::Missing wanted;
  if (touched_.empty() && blocks_held_ == own_.size() && handles_held_ == mentions_.size()) return wanted;
  for (const auto& [cidr, since] : own_) {
    if (wanted.records.size() == most) return wanted;
    const Key key = core::block_key(cidr);
    if (!records_.contains(key) || touched_.contains(key)) wanted.records.insert(key);
  }
  for (const auto& [id, count] : mentions_) {
    if (wanted.records.size() == most) return wanted;
    const Key key = core::handle_key(id);
    if (!records_.contains(key)) wanted.records.insert(key);
  }
  return wanted;
}

bool Cache::apply(const std::vector<Change>& changes) {
  std::map<Key, const Change*> last;  // of several changes of one record only the last matters
  for (const Change& change : changes) last[change.key] = &change;
  // Claims first: they say which blocks are the node's own.
  bool is_news = false;
  for (const bool is_claims_turn : {true, false}) {
    for (const auto& [key, change] : last) {
      if ((key.kind == Kind::affinity) == is_claims_turn) is_news |= apply_one(*change);
    }
  }
  return is_news;
}

/// Whether of two forms of one revision the watch's is the later one. The data beside a pool has no revision of its own
/// either, and each change of it is read and comes in its order (Watch).
bool Cache::tells_anew(const Record& known, const Record& seen) const {
  return (known.key.kind == Kind::pool || is_unreadable_block(known.key)) && known.value != seen.value;
}

/// False for what is known, be it from a write of our own that the watch comes to only now.
bool Cache::apply_one(const Change& change) {
  const Key& key = change.key;
  const bool is_older = is_older_than_known(key, change.revision);
  const auto deleted = deleted_.find(key);
  if (deleted != deleted_.end() && deleted->second <= change.revision) deleted_.erase(deleted);
  if (is_older) return false;
  const auto known = records_.find(key);
  const bool is_same = known != records_.end() && known->second.revision == change.revision &&
                       !(change.record && tells_anew(known->second, *change.record));
  switch (change.what) {
    case Change::What::put:
      if (!is_same) put(key, change.record);
      return !is_same;
    case Change::What::deleted:
      put(key, std::nullopt);
      return true;
    case Change::What::touched:
      if (!is_same && is_watched(key)) touched_[key] = std::max(touched_[key], change.revision);
      return !is_same;
  }
  return false;
}

void Cache::committed(std::span<const Write> writes, const WriteToken& token, Revision revision) {
  const auto take = [&](const auto& is_turn) {
    for (const Write& write : writes) {
      if (write.only_check || !is_turn(write.key.kind)) continue;
      if (is_older_than_known(write.key, revision)) continue;  // no: the watch was faster
      std::optional<Record> record;
      if (write.value) record = Record{write.key, *write.value, revision, token};
      // A put is safe from older news by its revision; what is gone has none.
      if (!record && is_there(write.key) && is_watched(write.key)) deleted_[write.key] = revision;
      put(write.key, std::move(record));
    }
  };
  // Claims say which blocks are kept, blocks which handles are.
  take([](Kind kind) { return kind == Kind::affinity; });
  take([](Kind kind) { return kind != Kind::affinity && kind != Kind::handle; });
  take([](Kind kind) { return kind == Kind::handle; });
}

void Cache::doubt(std::span<const Write> writes) {
  for (const Write& write : writes) {
    if (write.key.kind == Kind::handle) {
      set(write.key, std::nullopt);
      ahead_.erase(write.key.name);
      if (doubted_.size() >= kAheadMax) doubted_.clear();
      doubted_.insert(write.key.name);
    }
    if (write.key.kind == Kind::block) put_block(write.key, std::nullopt);
  }
}

// ---------------------------------------------------------------- keeping

void Cache::put(const Key& key, std::optional<Record> record) {
  switch (core::traits_of(key.kind).followed) {
    case core::Followed::all:
    case core::Followed::own_names:
    case core::Followed::own_node:
      if (is_watched(key)) set(key, std::move(record));
      return;
    case core::Followed::claims:
      return record ? put_affinity(key, std::move(record)) : drop_affinity(key);
    case core::Followed::own_blocks:
      return put_block(key, std::move(record));
    case core::Followed::own_handles:
      ahead_.erase(key.name);
      doubted_.erase(key.name);
      if (record && !mentions_.contains(key.name)) {
        // Written before the block that mentions it, where each record is a commit of its own.
        if (ahead_.size() >= kAheadMax) ahead_.clear();
        ahead_.emplace(key.name, *std::move(record));
        return;
      }
      return set(key, std::move(record));
    case core::Followed::nothing:
      return;
  }
}

void Cache::set(const Key& key, std::optional<Record> record) {
  std::size_t one_more = 0, one_less = 0;
  if (record) {
    if (records_.insert_or_assign(key, *std::move(record)).second) one_more = 1;
  } else {
    one_less = records_.erase(key);
  }
  if (key.kind == Kind::block) blocks_held_ += one_more - one_less;
  if (key.kind == Kind::handle) handles_held_ += one_more - one_less;
}

/// A claim that is there; of others' the content is not kept.
void Cache::put_affinity(const Key& key, std::optional<Record> record) {
  const bool is_own = is_own_name(key.name);
  const Revision since = record ? record->revision : Revision();
  if (record && is_own) set(key, std::move(record));
  if (!affinity_names_.insert(key.name).second) return;
  const auto cidr = core::cidr_of(key);
  if (!cidr) return;
  Key block = core::block_key(*cidr);
  if (++claimed_[block.name] == 1) claimed_blocks_[cidr->family()].insert(std::move(block));
  if (is_own && own_.try_emplace(*cidr, since).second) ++generation_;
}

void Cache::drop_affinity(const Key& key) {
  if (affinity_names_.erase(key.name) == 0) return;
  set(key, std::nullopt);
  const auto cidr = core::cidr_of(key);
  if (!cidr) return;
  const Key block = core::block_key(*cidr);
  const auto claims = claimed_.find(block.name);
  if (claims != claimed_.end() && --claims->second == 0) {
    claimed_.erase(claims);
    claimed_blocks_[cidr->family()].erase(block);
  }
  if (!is_own_name(key.name)) return;
  put_block(block, std::nullopt);
  deleted_.erase(block);
  own_.erase(*cidr);
  ++generation_;
}

void Cache::put_block(const Key& key, std::optional<Record> record) {
  const auto cidr = core::cidr_of(key);
  if (!cidr || !own_.contains(*cidr)) return;
  const auto touched = touched_.find(key);
  if (touched != touched_.end() && (!record || record->revision >= touched->second)) touched_.erase(touched);
  const auto known = records_.find(key);
  std::vector<std::string_view> before, after;
  if (known != records_.end()) before = handles_in(known->second);
  if (record) after = handles_in(*record);
  const std::vector<std::string> gone = without(before, after);
  for (const std::string& id : without(after, before)) {
    const auto made = ++mentions_[id] == 1 ? ahead_.extract(id) : decltype(ahead_)::node_type();
    if (made) set(core::handle_key(id), std::move(made.mapped()));
  }
  set(key, std::move(record));
  for (const std::string& id : gone) {
    const auto mention = mentions_.find(id);
    if (mention == mentions_.end() || --mention->second > 0) continue;
    mentions_.erase(mention);
    set(core::handle_key(id), std::nullopt);
  }
}

// ---------------------------------------------------------------- answering

std::optional<Record> Cache::find(const Key& key) const {
  const auto it = records_.find(key);
  return it == records_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<std::optional<Record>> Cache::record(const Key& key) const {
  const bool is_held = records_.contains(key);
  switch (core::traits_of(key.kind).followed) {
    case core::Followed::all:
    case core::Followed::own_names:
    case core::Followed::own_node:
      if (!is_watched(key)) return {};
      return find(key);
    case core::Followed::claims:
      if (!is_held && affinity_names_.contains(key.name)) return {};
      return find(key);
    case core::Followed::own_blocks: {
      if (touched_.contains(key) || is_unreadable_block(key)) return {};
      const auto cidr = core::cidr_of(key);
      if (is_held) return find(key);
      if (!cidr || claimed_.contains(core::block_key(*cidr).name) || !is_of_pools_length(*cidr)) return {};
      if (is_named_by_a_handle(*cidr)) return {};
      return std::optional<Record>();
    }
    case core::Followed::own_handles:
      if (const auto made = ahead_.find(key.name); made != ahead_.end()) return made->second;
      if (!is_held && (mentions_.contains(key.name) || doubted_.contains(key.name))) return {};
      return find(key);
    case core::Followed::nothing:
      return {};
  }
  return {};
}

/// Then it is likely to be there although nobody claims it: its claim was released with the addresses that it has.
bool Cache::is_named_by_a_handle(const net::Prefix& block) const {
  const std::string name = block.to_string();
  for (auto it = records_.lower_bound({Kind::handle, ""}); it != records_.end() && it->first.kind == Kind::handle;
       ++it) {
    const auto* handle = it->second.get_if<core::Handle>();
    if (handle != nullptr && handle->blocks.contains(name)) return true;
  }
  return false;
}

bool Cache::is_of_pools_length(const net::Prefix& block) const {
  for (auto it = records_.lower_bound({Kind::pool, ""}); it != records_.end() && it->first.kind == Kind::pool; ++it) {
    const auto* pool = it->second.get_if<core::Pool>();
    if (pool != nullptr && !may_be_block_of(*pool, block)) return false;
  }
  return true;
}

bool Cache::holds_all_of(const core::Listing& listing) const {
  switch (core::traits_of(listing.kind).followed) {
    case core::Followed::all:
      return true;
    case core::Followed::claims:
    case core::Followed::own_names:
      return is_own_name(listing.name_prefix);
    default:
      return false;
  }
}

core::KeyList Cache::keys(const core::Listing& listing) {
  if (listing.as_stored) return nullptr;
  if (listing.kind == Kind::block) {
    for (auto& [family, blocks] : claimed_blocks_) {
      if (core::block_names_of(family) == listing.name_prefix) return blocks.list();
    }
  }
  auto found = names(listing);
  return found ? std::make_shared<const std::vector<Key>>(*std::move(found)) : nullptr;
}

std::optional<std::vector<Key>> Cache::names(const core::Listing& listing) const {
  std::vector<Key> found;
  if (listing.kind == Kind::block) {
    for (auto it = claimed_.lower_bound(listing.name_prefix);
         it != claimed_.end() && it->first.starts_with(listing.name_prefix); ++it) {
      found.push_back({Kind::block, it->first});
    }
    return found;
  }
  if (listing.kind == Kind::affinity) {
    for (auto it = affinity_names_.lower_bound(listing.name_prefix);
         it != affinity_names_.end() && it->starts_with(listing.name_prefix); ++it) {
      found.push_back({Kind::affinity, *it});
    }
    return found;
  }
  if (!holds_all_of(listing)) return {};
  for (auto it = records_.lower_bound({listing.kind, listing.name_prefix});
       it != records_.end() && it->first.kind == listing.kind && it->first.name.starts_with(listing.name_prefix);
       ++it) {
    found.push_back(it->first);
  }
  return found;
}

std::optional<std::vector<Record>> Cache::list(const core::Listing& listing) const {
  if (!holds_all_of(listing)) return {};
  std::vector<Record> list;
  for (auto it = records_.lower_bound({listing.kind, listing.name_prefix});
       it != records_.end() && it->first.kind == listing.kind && it->first.name.starts_with(listing.name_prefix);
       ++it) {
    list.push_back(it->second);
  }
  return list;
}

ReadAnswer Cache::answer(const core::Missing& wanted, core::Missing& rest) {
  if (wanted.to_keep) {  // as new as the store has it
    rest = wanted;
    return {};
  }
  ReadAnswer known;
  for (const Key& key : wanted.records) {
    auto found = record(key);
    found ? known.records.push_back(*std::move(found)) : void(rest.records.insert(key));
  }
  for (const core::Listing& listing : wanted.lists) {
    auto found = list(listing);
    found ? known.lists.push_back(*std::move(found)) : void(rest.lists.insert(listing));
  }
  for (const core::Listing& listing : wanted.keys) {
    auto found = keys(listing);
    found ? known.keys.push_back(std::move(found)) : void(rest.keys.insert(listing));
  }
  for (const core::FreeBlock& block : wanted.free_blocks) {
    const auto claimed = keys({Kind::block, core::block_names_of(block.pool.family()), block.as_stored});
    if (!claimed) {
      rest.free_blocks.insert(block);
      continue;
    }
    known.free_blocks.push_back(core::find_free_block(block, *claimed));
    known.free_blocks.back().is_from_memory = true;
  }
  return known;
}

}  // namespace croft::store
