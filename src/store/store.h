#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/strong.h"
#include "register/records.h"
#include "register/snapshot.h"

namespace croft::store {

using core::Key;
using core::Kind;
using core::Value;

/// The store's version of a record. Grows with every write of the record; 0 never occurs on a stored record. Revisions
/// of different records are not comparable, except that one commit gives the same revision to all it writes.
using Revision = Strong<struct RevisionTag, std::uint64_t>;

/// Names one logical commit, chosen by the caller at random. It is stored with every record the commit puts, so that a
/// caller whose reply was lost can recognise its own write (docs/notes/reliability.md#unknown-outcomes).
struct WriteToken {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const WriteToken&, const WriteToken&) = default;
};

struct Record {
  Key key;
  /// Or why it cannot be read: corrupt, newer_version, refused_by_configuration (encrypted).
  Result<Value> value;
  Revision revision;
  WriteToken token;  ///< of the commit that wrote this revision; all zero where the format has no place for it
  /// Where only what Croft keeps beside a pool or block of Calico's cannot be read: the record without that.
  std::shared_ptr<const Value> calicos = nullptr;

  /// The value as one of its kind; null when it cannot be read, or is of another.
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return value ? std::get_if<T>(&*value) : nullptr;
  }
};

/// The state of a key that allows a write to it.
struct Condition {
  enum class Kind : std::uint8_t {
    absent,    ///< create: no record has the key
    revision,  ///< update or delete: the record is there with exactly this revision
    any,       ///< put or delete whatever is there, also nothing; for records guarded by another of the same commit
  } kind = Kind::any;
  Revision revision;

  [[nodiscard]] static Condition if_absent() { return {Kind::absent, {}}; }
  [[nodiscard]] static Condition if_revision(Revision r) { return {Kind::revision, r}; }
  [[nodiscard]] static Condition always() { return {Kind::any, {}}; }
  friend bool operator==(const Condition&, const Condition&) = default;
};

/// One conditional write: a put when `value` is there (its kind must be the key's), else a delete. With `only_check`
/// the record stays as it is (no value may be given): the commit merely depends on its condition.
struct Write {
  Key key;
  std::optional<Value> value;
  Condition condition;
  bool only_check = false;
};

struct ListRequest {
  Kind kind = Kind::pool;
  std::string name_prefix;  ///< only names that start with this
  std::size_t limit = 500;  ///< at most this many records a page, from 1 on
  bool keys_only = false;   ///< the records may have no values: cheap where they are large
  bool in_order = false;    ///< ascending by name, whatever it costs
};
inline constexpr std::size_t kListLimitMax = 1000;

/// A part of a list, for stores that read it so: ascending by name. With `more` it goes on after the last name.
struct Page {
  std::vector<Record> records;
  bool more = false;
};

/// The result of read(), in the order of core::Missing.
struct ReadAnswer {
  std::vector<std::optional<Record>> records;
  std::vector<std::vector<Record>> lists;
  std::vector<core::KeyList> keys;
  std::vector<core::FoundBlock> free_blocks;
};

/// The fate of a commit whose reply was lost (docs/notes/reliability.md#unknown-outcomes).
enum class Fate : std::uint8_t {
  applied,
  lost,            ///< it was not and never will be applied: another writer came first
  may_still_come,  ///< nothing has changed; committing again with the same conditions and token is safe
};

/// One change that a watch saw.
struct Change {
  enum class What : std::uint8_t {
    put,      ///< `record` is what it became
    deleted,  ///< there is none any more
    touched,  ///< of a followed record (Watch::follow): it became something else, which was not read
  };
  Key key;
  What what = What::deleted;
  Revision revision;  ///< of the change, or of a later one of the same record
  std::optional<Record> record;

  [[nodiscard]] static Change put(Record record) {
    Key key = record.key;
    const Revision revision = record.revision;
    return {std::move(key), What::put, revision, std::move(record)};
  }
  [[nodiscard]] static Change deleted(Key key, Revision revision) {
    return {std::move(key), What::deleted, revision, std::nullopt};
  }
  [[nodiscard]] static Change touched(Key key, Revision revision) {
    return {std::move(key), What::touched, revision, std::nullopt};
  }
};

/// The objects of a watch: single records, and all records of listings.
struct WatchScope {
  std::vector<Key> records;
  std::vector<core::Listing> lists;
};

[[nodiscard]] bool is_in(const WatchScope& scope, const Key& key);

/// Follows the changes of some records, from one thread at a time. It is a hint, not a truth
/// (docs/notes/reliability.md#i16): what is decided by it is confirmed by the conditions of a commit.
class Watch {
 public:
  virtual ~Watch() = default;

  /// The changes since the call before. Waits for at least one until the deadline, and may come back earlier with none.
  /// Those of one record come in their order; of several between two calls the earlier ones may be left out, and some
  /// may come twice. Changes of different records may come in another order than they were made, and those of one
  /// commit apart. A backend that watches several ranges (etcd) does not know how far each of them is. Errors: too_old
  /// (changes were lost: read everything and watch anew), and those of every call.
  [[nodiscard]] virtual Result<std::vector<Change>> next(Deadline deadline) = 0;

  /// From now on also says that this record, which is not in the scope, has been `touched` or `deleted`: every change
  /// after `after`, a position that is not older than the watch. Records that were followed before are forgotten.
  virtual void follow(const Key& key, Revision after) = 0;
  /// No more of a record that was followed.
  virtual void unfollow(const Key& key) = 0;

  /// Whether next() has given out every change of the scope up to `position`, a Store::position(), by the server's own
  /// word: silence proves nothing. False may mean that it has not said so yet. Ask again behind the next call of
  /// next(), which brings the answer where it has to be asked for.
  [[nodiscard]] virtual bool is_complete_up_to(Revision position) = 0;
};

/// The properties of a backend that decisions have to know. The cost of a call there is its own affair.
struct Capabilities {
  bool atomic_commit = false;  ///< commit() of several writes is all or nothing
  /// Programs other than Croft may write blocks, affinities and handles: what Croft keeps beside them (vacancies) is
  /// then a hint that may be incomplete.
  bool foreign_writers = false;
  /// Kinds of which the store never has a record. Vacancies, where what they tell is found in the blocks themselves;
  /// Kubernetes' kinds, where the program has no part for them or no API shows them (ranges of Services), and
  /// namespaces outside of a Kubernetes API.
  core::Kinds lacks{Kind::name_space};
  /// The system that owns the records of Kind::service; foreign_service are the other's.
  core::System services = core::System::croft;
};
/// etcd takes 128 conditions, and two are of the register itself.
inline constexpr std::size_t kCommitWritesMax = 126;

/// The register of who holds what: typed records with revisions, changed by compare-and-swap
/// (docs/promises.md#store-contract).
///
/// A record whose bytes cannot be understood (damaged, or of a newer version) is given out with an Error in the place
/// of its value, by reads, lists and watches alike, with a key and a revision as any other; it costs only itself. It
/// may be deleted and replaced under a condition. Damage that leaves in doubt which records there are fails every call
/// with `corrupt`.
///
/// All calls block, none longer than its deadline by more than one disk operation, and may come from several threads.
/// Errors that every call can return: unavailable or deadline_exceeded (nothing was changed), permission_denied,
/// read_only, corrupt (the store says which file and what is wrong), newer_version, internal. After `corrupt` or a
/// failed sync an open store refuses further commits until it is opened again.
class Store {
 public:
  virtual ~Store() = default;

  /// Everything a decision asks for, as of one moment where the backend can (every one with atomic_commit can). Else
  /// the records come first, which are of one moment in any case, then the lists. Lists are complete, however long. A
  /// free block is a hint: whoever makes it has the condition that there is none. How it is found is the backend's own.
  [[nodiscard]] virtual Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) = 0;

  using Until = std::function<Deadline()>;
  using Take = std::function<Result<void>(Record&)>;
  /// Calls `take` for every record of a kind: one that exists all the time comes exactly once, one that is written
  /// meanwhile may. No more than a page of them is in memory, unless they have to be in order. Each page has to be read
  /// until `until()`, asked for when it begins. An error of `take` ends it. Error also: too_old, where a store could
  /// not go on.
  [[nodiscard]] virtual Result<void> for_each(const ListRequest& request, const Until& until, const Take& take) = 0;

  /// Applies all writes if every condition holds, else none. Three outcomes:
  /// - done: the new revision; it is durable, where the backend is;
  /// - not done: conflict (naming the key whose condition failed; also for a create that found the record),
  ///   storage_full, unavailable, deadline_exceeded, … : nothing of it is or ever will be visible;
  /// - unknown_outcome: the reply was lost. Read back a key of the commit and compare `token` before deciding.
  /// Each key at most once; 1 to kCommitWritesMax writes, more than one only with Capabilities::atomic_commit.
  /// A condition that was read in another epoch (see epoch()) does not hold.
  [[nodiscard]] virtual Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                                Deadline deadline) = 0;

  /// Writes that have nothing to do with each other, each a commit of its own with the outcome of one; together where
  /// the store can. In their order.
  [[nodiscard]] virtual std::vector<Result<Revision>> commit_each(std::span<const Write> writes,
                                                                  const WriteToken& token, Deadline deadline);

  /// The fate of a commit of this object that ended in unknown_outcome, as far as the records tell now. Without a put
  /// among the writes a deleted record tells by being gone, which another deleter may have caused: then `lost` is the
  /// answer, and deciding again is right.
  [[nodiscard]] virtual Result<Fate> fate_of(std::span<const Write> writes, const WriteToken& token, Deadline deadline);

  /// The position from which a watch sees everything that a read begun after this call does not.
  [[nodiscard]] virtual Result<Revision> position(Deadline deadline) = 0;

  /// Follows the changes after `after`, a position of this store. Errors: too_old when they are no longer known.
  /// A watch must end before its store does.
  [[nodiscard]] virtual Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after,
                                                             Deadline deadline) = 0;

  /// A place at the front of the queue of writers: while it lives, other cooperating processes that ask for one wait.
  /// It saves them the conflicts; correctness rests on conditions alone. Commits made meanwhile by the holder's thread
  /// go ahead. Take at most one a thread, hold it for one read-plan-commit. A backend without queue gives an empty one.
  class Turn {
   public:
    virtual ~Turn() = default;
  };
  [[nodiscard]] virtual Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) = 0;

  [[nodiscard]] virtual Capabilities capabilities() const = 0;

  /// How many epochs of the register this object has met. It grows when a call finds another register in the place of
  /// the one before: a restored one, or the same put back to an older state. Memory, and conclusions from two looks,
  /// with another number are void: a record that only one of the two has was not taken away by anybody. A store whose
  /// memory is no older than what it watches has one epoch only.
  [[nodiscard]] virtual std::uint64_t epoch() const = 0;

  /// The record of a key, or nothing when there is none.
  [[nodiscard]] Result<std::optional<Record>> get(const Key& key, Deadline deadline);
  /// All records of a listing that is no long one, as of one moment.
  [[nodiscard]] Result<std::vector<Record>> list(const core::Listing& listing, Deadline deadline);
};

/// The error of a commit whose condition on a key did not hold; `file`: of a store that is one.
[[nodiscard]] Error conflict_on(const Key& key, std::string_view file = {});

// The requests that every backend refuses before it does anything, in the same words. All errors: invalid_argument.

/// 1 to kCommitWritesMax writes, no key twice, each value of its key's kind, each name a legal one.
[[nodiscard]] Result<void> check_writes(std::span<const Write> writes);

/// A commit that asks whether the store takes writes, without making one. Its condition can never hold, so it gets as
/// far as a commit can and ends as a conflict. A store that can tell more without writing, as whether its account may
/// write at all, knows the question by is_write_question().
[[nodiscard]] inline Write write_question() {
  constexpr Revision kNever(std::numeric_limits<std::int64_t>::max());
  return {core::pool_set_key(), std::nullopt, Condition::if_revision(kNever), true};
}
[[nodiscard]] inline bool is_write_question(const Write& write) {
  const Write question = write_question();
  return write.only_check && write.condition.kind == question.condition.kind &&
         write.condition.revision == question.condition.revision;
}

}  // namespace croft::store
