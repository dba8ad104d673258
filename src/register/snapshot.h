#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

#include "base/assert.h"
#include "base/net/prefix.h"
#include "base/net/ranges.h"
#include "base/result.h"
#include "register/records.h"

namespace croft::core {

/// A decision needs to see more than the snapshot has. Its reader has noted the keys; only a reader says so
/// (Reader::ready), so that nobody stops for more without having asked for it.
class NotRead {
 private:
  friend class Reader;
  NotRead() = default;
};

/// For steps that refuse nothing: there is no such value.
struct NoRefusal {
  NoRefusal() = delete;
};

/// Why a step of a decision ended before its end: more has to be read, the data is at fault, or the request is refused.
template <class Refused = NoRefusal>
class Stop {
 public:
  Stop(NotRead why) : why_(why) {}                                      // NOLINT(google-explicit-constructor)
  Stop(Error why) : why_(std::in_place_type<Error>, std::move(why)) {}  // NOLINT(google-explicit-constructor)
  Stop(Refused why)                                                     // NOLINT(google-explicit-constructor)
    requires(!std::is_same_v<Refused, NoRefusal>)
      : why_(std::in_place_type<Refused>, std::move(why)) {}
  /// The stop of a step that refuses nothing, within one that may.
  template <class Other>
    requires(std::is_same_v<Other, NoRefusal> && !std::is_same_v<Refused, NoRefusal>)
  Stop(Stop<Other> why)  // NOLINT(google-explicit-constructor)
      : why_(why.error() != nullptr ? Why(std::in_place_type<Error>, std::move(*why.error())) : Why(*why.not_read())) {}

  [[nodiscard]] const NotRead* not_read() const { return std::get_if<NotRead>(&why_); }
  [[nodiscard]] Error* error() { return std::get_if<Error>(&why_); }
  [[nodiscard]] Refused* refusal() { return std::get_if<Refused>(&why_); }

 private:
  using Why = std::variant<NotRead, Error, Refused>;
  Why why_;
};

/// The outcome of a step of a decision, or why it ended. TRY and TRY_VOID (base/result.h) hand a stop on, also that of
/// a Result, whose Error is the data's fault.
template <class T, class Refused = NoRefusal>
using Flow = tl::expected<T, Stop<Refused>>;

}  // namespace croft::core

namespace croft {

/// Ends a step: for TRY.
template <class Refused>
[[nodiscard]] tl::unexpected<core::Stop<Refused>> fail(core::Stop<Refused> stop) {
  return tl::unexpected<core::Stop<Refused>>(std::move(stop));
}

}  // namespace croft

namespace croft::core {

/// The question for a block that nobody has. The blocks of a pool have one length; a block of any other length keeps
/// its addresses out, whatever is recorded of it: a key is enough. A pool of one block asks for what is in its way.
struct FreeBlock {
  net::Prefix pool;
  int length = 0;
  net::Prefix start;  ///< a block of the pool: the search begins here
  /// Blocks that the decision can't take: it has claimed them itself, or something of them is damaged.
  std::set<net::Prefix> out;
  /// By all keys that the store has. Else those in memory will do, of blocks that somebody claims (store/cached).
  bool as_stored = false;
  /// A block of which this leaves nothing is passed over. It is of the snapshot that asks, and no part of the question.
  std::shared_ptr<const net::Intervals> reserved;
  /// How many blocks further on the search goes, odd; after many steps it goes block by block from the start, and
  /// round. In a crowded pool all who look for the next one meet at the same.
  std::uint64_t step = 1;

  friend bool operator==(const FreeBlock& a, const FreeBlock& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const FreeBlock& a, const FreeBlock& b);
};

struct FoundBlock {
  /// Has the asked length, and shares no address with the block of any key that was known.
  std::optional<net::Prefix> block;
  /// Only keys of blocks that somebody claims were known (store/cached).
  bool is_from_memory = false;
  /// Blocks that are there and were looked up by themselves, where a store does so: one of them may be the asker's own.
  std::vector<net::Prefix> passed;
  /// When there is none: how many blocks begin in the pool, and one of another length that keeps addresses out.
  std::uint64_t there = 0;
  std::optional<net::Prefix> other;
};

/// Answers from the keys of blocks, ascending: of all that may share addresses with the pool.
[[nodiscard]] FoundBlock find_free_block(const FreeBlock& wanted, std::span<const Key> keys);

/// All records of a kind whose names start with `name_prefix`.
struct Listing {
  Kind kind = Kind::pool;
  std::string name_prefix;
  /// As the store has them. Else keys in memory will do, which are of the blocks that somebody claims (store/cached),
  /// and of a node's affinities in a Kubernetes API those with Calico's labels.
  bool as_stored{};
  [[nodiscard]] bool contains(const Key& key) const { return key.kind == kind && key.name.starts_with(name_prefix); }
  friend auto operator<=>(const Listing&, const Listing&) = default;
};

using KeyedValue = std::pair<Key, Value>;
using UnreadableRecords = std::ranges::subrange<std::map<Key, Error>::const_iterator>;

/// A list of keys in their order, shared by those who hold it: of a large cluster's blocks there are many thousands.
using KeyList = std::shared_ptr<const std::vector<Key>>;

/// The steps that one look at a snapshot may take (Snapshot::steps_max): more than the largest cluster needs, about
/// a second.
inline constexpr std::uint64_t kDecisionStepsMax = std::uint64_t{1} << 22;

/// The records that have been read from the store for one decision. A key that was looked up and not found is
/// remembered as absent; one that was not looked up is unknown, which is something else.
class Snapshot {
 public:
  void set(const Key& key, std::optional<Value> value) {
    unreadable_.erase(key);
    records_[key] = std::move(value);
  }
  /// The record is there, and cannot be read. It is in no list.
  void set_unreadable(const Key& key, Error why) {
    records_[key] = std::nullopt;
    unreadable_.insert_or_assign(key, std::move(why));
  }
  void set_list(const Listing& listing, std::vector<KeyedValue> records) {
    if (listing.kind == Kind::reservation) reserved_.reset();
    lists_[listing] = std::move(records);
  }
  void set_keys(const Listing& listing, KeyList keys) { keys_[listing] = std::move(keys); }
  void set_keys(const Listing& listing, std::vector<Key> keys) {
    set_keys(listing, std::make_shared<const std::vector<Key>>(std::move(keys)));
  }
  void set_free_block(const FreeBlock& wanted, FoundBlock found) { free_blocks_[wanted] = std::move(found); }

  /// Shows a record, absent or not, as it will be once a plan is committed: by its key and in all that was listed. A
  /// free block stays the answer that it was: whoever takes it looks it up.
  void set_planned(const Key& key, std::optional<Value> value);

  /// A plan is committed: all that is shown is so.
  void end_planning() { planned_.clear(); }
  /// Whether a record is shown as it will be.
  [[nodiscard]] bool is_planned(const Key& key) const { return planned_.contains(key); }

  // The store's capabilities that decisions go by (store.h, Capabilities).
  bool foreign_writers = false, atomic_commit = true;
  Kinds lacks{Kind::name_space};
  /// How much a decision may look at, in records, blocks and candidates; past that it refuses rather than go on.
  std::uint64_t steps_max = kDecisionStepsMax;
  /// The work of the last look, not a thing that was read: a snapshot belongs to one decision in one thread.
  mutable std::uint64_t steps = 0;

  /// Made once from all reservations, once they have been read; kept for the next look at the same snapshot.
  [[nodiscard]] const std::shared_ptr<const net::Intervals>& reserved() const { return reserved_; }
  void set_reserved(std::shared_ptr<const net::Intervals> reserved) const { reserved_ = std::move(reserved); }
  /// Null when the key was not looked up; empty when the record is absent or unreadable.
  [[nodiscard]] const std::optional<Value>* find(const Key& key) const { return find_in(records_, key); }
  /// Without the unreadable records.
  [[nodiscard]] const std::vector<KeyedValue>* list(const Listing& listing) const { return find_in(lists_, listing); }
  /// Why a record that was read cannot be understood; null when it can, is absent or unknown.
  [[nodiscard]] const Error* unreadable(const Key& key) const { return find_in(unreadable_, key); }
  /// The same of all that were read of a listing, ascending by key.
  [[nodiscard]] UnreadableRecords unreadable(const Listing& listing) const;
  /// Whether the record is there, be it readable or not.
  [[nodiscard]] bool has(const Key& key) const {
    const auto* found = find(key);
    return (found != nullptr && found->has_value()) || unreadable(key) != nullptr;
  }
  [[nodiscard]] const std::vector<Key>* keys(const Listing& listing) const {
    const KeyList* found = find_in(keys_, listing);
    return found == nullptr ? nullptr : found->get();
  }
  [[nodiscard]] const FoundBlock* free_block(const FreeBlock& wanted) const { return find_in(free_blocks_, wanted); }

 private:
  template <class Map>
  static auto find_in(const Map& map, const typename Map::key_type& key) -> const typename Map::mapped_type* {
    const auto it = map.find(key);
    return it == map.end() ? nullptr : &it->second;
  }

  std::map<Key, std::optional<Value>> records_;
  std::map<Listing, std::vector<KeyedValue>> lists_;
  std::map<Key, Error> unreadable_;
  std::map<Listing, KeyList> keys_;
  std::map<FreeBlock, FoundBlock> free_blocks_;
  std::set<Key> planned_;
  mutable std::shared_ptr<const net::Intervals> reserved_;
};

/// The records that a decision needs to see before it can go on.
struct Missing {
  std::set<Key> records;
  std::set<Listing> lists;  ///< with values
  std::set<Listing> keys;   ///< keys only
  std::set<FreeBlock> free_blocks;
  /// Nothing may be older than the call: it will be remembered from a position on, or no commit proves it. Its commit
  /// proves the records that a decision rests on, and a store may give some of it from a memory that lags.
  bool to_keep = false;
  /// Reading more won't help: the decision rests on a record that is damaged (Reader::get, Reader::list).
  std::optional<Error> damaged{};
  /// Reading helps.
  [[nodiscard]] bool unread() const {
    return !records.empty() || !lists.empty() || !keys.empty() || !free_blocks.empty();
  }
  [[nodiscard]] bool empty() const { return !unread() && !damaged; }
};

/// Reads a snapshot for a decision and notes what is not in it. A decision asks for all that it can name, together, so
/// that one reading brings it, and goes on only past `TRY_VOID(reader.ready())`: before that what it was given may be
/// absent or just unknown. It is called again with a fuller snapshot. Should it forget that, what it plans does not
/// leave decide() all the same.
///
/// A record that cannot be read is not absent. A decision that asks with get() or list() rests on it, and ends with its
/// error. One that can do without asks with sound(), and looks with damage() and damaged() what was left out. An
/// unreadable hint (is_hint) is as good as none.
class Reader {
 public:
  explicit Reader(const Snapshot& snapshot) : snapshot_(snapshot) { snapshot.steps = 0; }

  /// The record of a key; null when it is absent, and when it is unknown or damaged (then noted).
  template <class T>
  [[nodiscard]] const T* get(const KeyOf<T>& key) {
    const T* record = sound(key);
    if (record != nullptr || is_hint(key.kind)) return record;
    if (const Error* error = damage(key)) note_damage(*error);
    return nullptr;
  }
  /// Null also for a damaged record.
  template <class T>
  [[nodiscard]] const T* sound(const KeyOf<T>& key) {
    ask(key);
    return find(key);
  }
  /// Notes the key when it is unknown.
  void ask(const Key& key) {
    if (snapshot_.find(key) == nullptr) missing_.records.insert(key);
  }
  /// Why a record can't be understood; null when it can, is absent or unknown.
  [[nodiscard]] const Error* damage(const Key& key) const { return snapshot_.unreadable(key); }
  /// The same without noting: null also when the key is unknown.
  template <class T>
  [[nodiscard]] const T* find(const KeyOf<T>& key) const {
    const std::optional<Value>* found = snapshot_.find(key);
    return found != nullptr && found->has_value() ? std::get_if<T>(&**found) : nullptr;
  }
  /// Empty when unknown, and when one of its records is damaged (then noted).
  [[nodiscard]] const std::vector<KeyedValue>& list(const Listing& listing) {
    const auto damaged = this->damaged(listing);
    if (damaged.empty() || is_hint(listing.kind)) return sound(listing);
    note_damage(damaged.front().second);
    return kNoRecords;
  }
  /// Without the damaged ones.
  [[nodiscard]] const std::vector<KeyedValue>& sound(const Listing& listing) {
    const auto* found = snapshot_.list(listing);
    if (found == nullptr) missing_.lists.insert(listing);
    return found != nullptr ? *found : kNoRecords;
  }
  /// Only the unreadable ones, of a list that was asked for.
  [[nodiscard]] UnreadableRecords damaged(const Listing& listing) const { return snapshot_.unreadable(listing); }
  [[nodiscard]] const std::vector<Key>& keys(const Listing& listing) {
    const auto* found = snapshot_.keys(listing);
    if (found == nullptr) missing_.keys.insert(listing);
    return found != nullptr ? *found : kNoKeys;
  }

  /// Null when unknown (then noted).
  [[nodiscard]] const FoundBlock* free_block(const FreeBlock& wanted) {
    const auto* found = snapshot_.free_block(wanted);
    if (found == nullptr) missing_.free_blocks.insert(wanted);
    return found;
  }

  [[nodiscard]] bool foreign_writers() const { return snapshot_.foreign_writers; }
  [[nodiscard]] bool atomic_commit() const { return snapshot_.atomic_commit; }
  [[nodiscard]] bool lacks(Kind kind) const { return snapshot_.lacks.contains(kind); }

  /// Counts one thing looked at. False when the decision has looked at as much as it may.
  [[nodiscard]] bool step() { return ++snapshot_.steps <= snapshot_.steps_max; }
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }

  /// Ends the step when anything that was asked for has not been read, or is damaged.
  [[nodiscard]] Flow<void> ready() const {
    if (is_all_read()) return {};
    return tl::unexpected<Stop<>>(NotRead());
  }
  /// The same as an answer, for who reads without a decision.
  [[nodiscard]] bool is_all_read() const { return missing_.empty(); }
  [[nodiscard]] const Missing& missing() const { return missing_; }

 private:
  static inline const std::vector<KeyedValue> kNoRecords;
  static inline const std::vector<Key> kNoKeys;
  void note_damage(const Error& error) {
    if (!missing_.damaged) missing_.damaged = error;
  }

  const Snapshot& snapshot_;
  Missing missing_;
};

/// How a planned write is guarded.
enum class Guard : std::uint8_t {
  as_read,  ///< only if the record still is what the snapshot says (also: still absent)
  none,     ///< whatever is there; another write of the same plan guards it
};

/// A put when `value` is there, else a delete; with `only_check` neither: the plan depends on the record as read.
struct PlannedWrite {
  Key key;
  std::optional<Value> value;
  Guard guard = Guard::as_read;
  bool only_check = false;
};
template <class T>
[[nodiscard]] PlannedWrite to_put(KeyOf<T> key, std::type_identity_t<T> value, Guard guard = Guard::as_read) {
  return {std::move(key), std::move(value), guard, false};
}
[[nodiscard]] inline PlannedWrite to_delete(Key key, Guard guard = Guard::as_read) {
  return {std::move(key), std::nullopt, guard, false};
}
/// The plan rests on the record, or on its absence.
[[nodiscard]] inline PlannedWrite to_check(Key key) { return {std::move(key), std::nullopt, Guard::as_read, true}; }

/// The outcome of a decision: what to write in one commit, and what to answer once that is durable. No writes: the
/// answer holds as it is.
template <class Answer>
struct Plan {
  Answer answer;
  std::vector<PlannedWrite> writes;
};

/// One step of deciding: read more, do this, or it can't be done (a fault of the data; a refusal is an Answer).
template <class Answer>
using Step = std::variant<Missing, Plan<Answer>, Error>;

/// The end of every decision, whatever it made of its snapshot: nothing is planned, and nothing said to be wrong,
/// before all that it asked for has been read, and nothing is planned on a damaged record that it rests on. Hints are
/// planned only where they are kept.
template <class Answer>
[[nodiscard]] Step<Answer> settle(const Reader& reader, Flow<Plan<Answer>> outcome) {
  if (reader.missing().unread()) return reader.missing();
  if (!outcome && outcome.error().error() != nullptr) return std::move(*outcome.error().error());
  if (!reader.is_all_read()) return reader.missing();
  CROFT_ASSERT(outcome.has_value());  // only a reader that lacks something makes a NotRead
  std::erase_if(outcome->writes,
                [&](const PlannedWrite& write) { return is_hint(write.key.kind) && reader.lacks(write.key.kind); });
  return *std::move(outcome);
}

/// Decides: `body(Reader&)` returns the Flow of a plan. The one way for a plan to leave the core.
template <class Body>
[[nodiscard]] auto decide(const Snapshot& snapshot, Body body) {
  Reader reader(snapshot);
  return settle(reader, body(reader));
}

}  // namespace croft::core
