#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <utility>

namespace croft {

/// A std::map that copies share until one of them is changed: a copy costs a count, however many members there are.
/// For members of values that are copied far more often than they are changed. Reads like a const std::map; changing
/// calls copy the content first where it is shared. As safe to use from several threads as std::map.
template <class K, class V>
class SharedMap {
 public:
  using Map = std::map<K, V>;
  using key_type = K;     // NOLINT(readability-identifier-naming)
  using mapped_type = V;  // NOLINT(readability-identifier-naming)
  using value_type = typename Map::value_type;
  using size_type = typename Map::size_type;  // NOLINT(readability-identifier-naming)
  using difference_type = typename Map::difference_type;
  using reference = const value_type&;
  using const_reference = const value_type&;  // NOLINT(readability-identifier-naming)
  using iterator = typename Map::const_iterator;
  using const_iterator = typename Map::const_iterator;

  SharedMap() = default;
  SharedMap(Map map) {  // NOLINT(google-explicit-constructor): stands for the map it holds
    if (!map.empty()) map_ = std::make_shared<Map>(std::move(map));
  }
  SharedMap(std::initializer_list<value_type> members) : SharedMap(Map(members)) {}

  [[nodiscard]] const Map& get() const {
    static const Map kEmpty;
    return map_ == nullptr ? kEmpty : *map_;
  }
  operator const Map&() const { return get(); }  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const_iterator begin() const { return get().begin(); }
  [[nodiscard]] const_iterator end() const { return get().end(); }
  [[nodiscard]] auto rbegin() const { return get().rbegin(); }
  [[nodiscard]] bool empty() const { return get().empty(); }
  [[nodiscard]] size_type size() const { return get().size(); }
  template <class Key>
  [[nodiscard]] const_iterator find(const Key& key) const {
    return get().find(key);
  }
  template <class Key>
  [[nodiscard]] bool contains(const Key& key) const {
    return get().contains(key);
  }
  template <class Key>
  [[nodiscard]] const V& at(const Key& key) const {
    return get().at(key);
  }

  /// The map to change, this object's alone. The reference holds until the next copy.
  [[nodiscard]] Map& own() {
    if (map_ == nullptr) {
      map_ = std::make_shared<Map>();
    } else if (const auto held = map_; held.use_count() != 2) {  // taking hold orders us after whoever let go last
      map_ = std::make_shared<Map>(*map_);
    }
    return *map_;
  }
  V& operator[](const K& key) { return own()[key]; }
  size_type erase(const K& key) { return contains(key) ? own().erase(key) : 0; }
  template <class... Arguments>
  auto emplace(Arguments&&... arguments) {
    return own().emplace(std::forward<Arguments>(arguments)...);
  }
  template <class Value>
  auto insert_or_assign(const K& key, Value&& value) {
    return own().insert_or_assign(key, std::forward<Value>(value));
  }
  void clear() { map_.reset(); }

  friend bool operator==(const SharedMap& a, const SharedMap& b) { return a.map_ == b.map_ || a.get() == b.get(); }
  friend bool operator==(const SharedMap& a, const Map& b) { return a.get() == b; }

 private:
  std::shared_ptr<Map> map_;
};

}  // namespace croft
