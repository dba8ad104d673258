#include "register/snapshot.h"

namespace croft::core {
namespace {

bool is_in(const Listing& listing, const Key& key) {
  return listing.kind == key.kind && key.name.starts_with(listing.name_prefix);
}

bool is_in(const KeyWindow& window, const Key& key) {
  return is_in(window.listing, key) && key.name >= window.from && key.name < window.before;
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

/// False when the list has, or lacks, the key already.
bool put_in(std::vector<Key>& list, const Key& key, bool is_to_be_there) {
  const auto at = place_of(list, key, key_itself);
  const bool is_there = at != list.end() && *at == key;
  if (is_there == is_to_be_there) return false;
  if (is_there) {
    list.erase(at);
  } else {
    list.insert(at, key);
  }
  return true;
}

}  // namespace

void Snapshot::set_planned(const Key& key, std::optional<Value> value) {
  const std::optional<Value>* before = find(key);
  const bool count_follows = before != nullptr && before->has_value() != value.has_value();
  for (auto& [listing, list] : lists_) {
    if (is_in(listing, key)) put_in(list, key, value);
  }
  for (auto& [listing, damaged] : damaged_) {
    if (is_in(listing, key)) put_in(damaged, key, std::nullopt);
  }
  for (auto& [listing, keys] : keys_) {
    if (!is_in(listing, key) || std::binary_search(keys->begin(), keys->end(), key) == value.has_value()) continue;
    auto changed = std::make_shared<std::vector<Key>>(*keys);  // others hold the list too
    put_in(*changed, key, value.has_value());
    keys = std::move(changed);
  }
  for (auto& [window, shown] : windows_) {
    // Past the last key of a window that has more nothing is shown.
    const bool is_shown = !shown.more || (!shown.keys.empty() && key <= shown.keys.back());
    if (is_in(window, key) && is_shown) put_in(shown.keys, key, value.has_value());
  }
  for (auto& [window, count] : counts_) {
    if (!count_follows || !is_in(window, key)) continue;
    count = value ? count + 1 : count - std::min<std::uint64_t>(count, 1);
  }
  if (key.kind == Kind::reservation) reserved_.reset();
  set(key, std::move(value));
}

}  // namespace croft::core
