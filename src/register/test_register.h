#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/net/test_values.h"
#include "base/result.h"
#include "register/records.h"
#include "register/snapshot.h"

namespace croft::core {

// For tests.

[[nodiscard]] inline AffinityOwner node(const std::string& name) { return {AffinityOwner::Type::host, name}; }
inline const AffinityOwner kNode = node("node-a");

/// For tests and fuzzers: a register that answers what a decision asks for and applies what it plans.
class TestRegister {
 public:
  void put(const Key& key, Value value) { records_.insert_or_assign(key, std::move(value)); }
  /// From now on the record of a key is there and cannot be read.
  void damage(const Key& key, ErrorCode code = ErrorCode::corrupt) {
    records_.erase(key);
    unreadable_.insert_or_assign(key, Error{code, key.name + " is damaged", {}});
  }
  [[nodiscard]] const std::map<Key, Error>& unreadable() const { return unreadable_; }
  [[nodiscard]] const std::map<Key, Value>& records() const { return records_; }
  template <class T>
  [[nodiscard]] const T* get(const KeyOf<T>& key) const {
    const auto it = records_.find(key);
    return it == records_.end() ? nullptr : std::get_if<T>(&it->second);
  }

  /// `knows_claimed`: keys of blocks are as a cache has them, of those that somebody claims (store/cached).
  bool foreign_writers = false, knows_claimed = false, atomic_commit = true;
  std::uint64_t steps_max = kDecisionStepsMax;
  /// The steps of the longest look of all decisions so far, and the rounds of reading of the last.
  std::uint64_t steps = 0;
  int rounds = 0;

  /// Decides on what is there now, reading what is asked for. `decide(const Snapshot&)` returns a Step<Answer>.
  template <class Answer, class Decide>
  [[nodiscard]] Result<Plan<Answer>> plan(Decide decide) {
    Snapshot fresh;
    Snapshot& snapshot = batch_ ? batch_->snapshot : fresh;
    snapshot.foreign_writers = foreign_writers;
    snapshot.atomic_commit = atomic_commit;
    snapshot.steps_max = steps_max;
    for (rounds = 0;; ++rounds) {
      Step<Answer> step = decide(static_cast<const Snapshot&>(snapshot));
      steps = std::max(steps, snapshot.steps);
      if (auto* error = std::get_if<Error>(&step)) return fail(std::move(*error));
      if (auto* plan = std::get_if<Plan<Answer>>(&step)) return std::move(*plan);
      if (const auto& missing = std::get<Missing>(step); missing.damaged) return fail(*missing.damaged);
      read(std::get<Missing>(step), snapshot);
      if (!batch_) continue;
      for (const auto& [key, value] : batch_->planned) snapshot.set_planned(key, value);
    }
  }
  /// The same, and writes it.
  template <class Answer, class Decide>
  [[nodiscard]] Result<Answer> decide(Decide decide) {
    TRY(Plan<Answer> plan, (this->plan<Answer>(decide)));
    if (!batch_) apply(plan.writes);
    for (const PlannedWrite& write : plan.writes) {
      if (!batch_ || write.only_check) continue;
      batch_->planned[write.key] = write.value;
      batch_->snapshot.set_planned(write.key, write.value);
    }
    return std::move(plan.answer);
  }
  /// The same of a decision by these arguments.
  template <class Answer, class... Parameters>
  [[nodiscard]] Result<Answer> decided(Step<Answer> (*by)(const Snapshot&, Parameters...),
                                       std::type_identity_t<Parameters>... arguments) {
    return decide<Answer>([&](const Snapshot& snapshot) { return by(snapshot, arguments...); });
  }

  /// From now on all is decided on one snapshot, each as the ones before it leave it; nothing is written.
  void begin_batch() { batch_.emplace(); }
  /// Writes what came of that, at once; how many records that is.
  std::size_t end_batch() {
    std::vector<PlannedWrite> writes;
    for (auto& [key, value] : batch_->planned) writes.push_back({key, std::move(value)});
    batch_.reset();
    apply(writes);
    return writes.size();
  }

  void apply(const std::vector<PlannedWrite>& writes) {
    for (const PlannedWrite& write : writes) {
      if (write.only_check) continue;
      unreadable_.erase(write.key);
      if (write.value) {
        records_.insert_or_assign(write.key, *write.value);
      } else {
        records_.erase(write.key);
      }
    }
  }

 private:
  [[nodiscard]] auto first_of(const Listing& listing) const {
    return records_.lower_bound(Key{listing.kind, listing.name_prefix});
  }
  [[nodiscard]] std::vector<Key> keys_of(const Listing& listing) const {
    std::vector<Key> keys;
    for (auto it = first_of(listing); it != records_.end() && listing.contains(it->first); ++it) {
      keys.push_back(it->first);
    }
    for (const auto& [key, why] : unreadable_) {
      if (listing.contains(key)) keys.insert(std::ranges::lower_bound(keys, key), key);
    }
    if (knows_claimed && !listing.as_stored && listing.kind == Kind::block) keep_claimed(keys);
    return keys;
  }

  void keep_claimed(std::vector<Key>& blocks) const {
    std::set<Key> claimed;
    for (auto it = first_of({Kind::affinity, ""}); it != records_.end() && it->first.kind == Kind::affinity; ++it) {
      if (const auto cidr = cidr_of(it->first)) claimed.insert(block_key(*cidr));
    }
    std::erase_if(blocks, [&](const Key& key) { return !claimed.contains(key); });
  }

  void read(const Missing& missing, Snapshot& snapshot) const {
    for (const Key& key : missing.records) {
      const auto it = records_.find(key);
      snapshot.set(key, it == records_.end() ? std::nullopt : std::optional<Value>(it->second));
      if (const auto why = unreadable_.find(key); why != unreadable_.end()) snapshot.set_unreadable(key, why->second);
    }
    for (const Listing& listing : missing.lists) {
      std::vector<KeyedValue> values;
      for (auto it = first_of(listing); it != records_.end() && listing.contains(it->first); ++it)
        values.push_back(*it);
      for (const auto& [key, value] : values) snapshot.set(key, value);
      for (const auto& [key, why] : unreadable_) {
        if (listing.contains(key)) snapshot.set_unreadable(key, why);
      }
      snapshot.set_list(listing, std::move(values));
    }
    for (const Listing& listing : missing.keys) snapshot.set_keys(listing, keys_of(listing));
    for (const FreeBlock& block : missing.free_blocks) {
      const auto keys = keys_of({Kind::block, block_names_of(block.pool.family()), block.as_stored});
      FoundBlock found = find_free_block(block, keys);
      found.is_from_memory = knows_claimed && !block.as_stored;
      snapshot.set_free_block(block, std::move(found));
    }
  }

  struct Batch {
    Snapshot snapshot;
    std::map<Key, std::optional<Value>> planned;
  };

  std::map<Key, Value> records_;
  std::map<Key, Error> unreadable_;
  std::optional<Batch> batch_;
};

}  // namespace croft::core
