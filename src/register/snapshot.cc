#include "register/snapshot.h"

namespace croft::core {
namespace {

bool is_in(const Listing& listing, const Key& key) {
  return listing.kind == key.kind && key.name.starts_with(listing.name_prefix);
}

/// Where a key is, or belongs, in what is ascending by key.
template <class List, class KeyOfItem>
auto place_of(List& list, const Key& key, KeyOfItem key_of) {
  return std::lower_bound(list.begin(), list.end(), key,
                          [&](const auto& item, const Key& wanted) { return key_of(item) < wanted; });
}

const Key& key_of_value(const KeyedValue& item) { return item.first; }
const Key& key_itself(const Key& key) { return key; }

void put_in(std::vector<KeyedValue>& list, const Key& key, const std::optional<Value>& value) {
  const auto at = place_of(list, key, key_of_value);
  const bool is_there = at != list.end() && at->first == key;
  if (!value) {
    if (is_there) list.erase(at);
  } else if (is_there) {
    at->second = *value;
  } else {
    list.emplace(at, key, *value);
  }
}

/// `is_there` is what it was not before.
void put_in(std::vector<Key>& list, const Key& key, bool is_there) {
  const auto at = place_of(list, key, key_itself);
  if (is_there) {
    list.insert(at, key);
  } else {
    list.erase(at);
  }
}

}  // namespace

UnreadableRecords Snapshot::unreadable(const Listing& listing) const {
  const auto first = unreadable_.lower_bound({listing.kind, listing.name_prefix});
  const auto last =
      std::find_if(first, unreadable_.end(), [&](const auto& record) { return !is_in(listing, record.first); });
  return {first, last};
}

void Snapshot::set_planned(const Key& key, std::optional<Value> value) {
  for (auto& [listing, list] : lists_) {
    if (is_in(listing, key)) put_in(list, key, value);
  }
  for (auto& [listing, keys] : keys_) {
    if (!is_in(listing, key) || std::binary_search(keys->begin(), keys->end(), key) == value.has_value()) continue;
    auto changed = std::make_shared<std::vector<Key>>(*keys);  // others hold the list too
    put_in(*changed, key, value.has_value());
    keys = std::move(changed);
  }
  if (key.kind == Kind::reservation) {
    reserved_.reset();
    free_blocks_.clear();
  }
  planned_.insert(key);
  set(key, std::move(value));
}

}  // namespace croft::core
