#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "register/node.h"
#include "register/snapshot.h"
#include "store/forwarding_store.h"
#include "store/store.h"

namespace croft::store {

/// Keys in their order, given out without copying. Changes wait until the list is asked for again. An earlier caller
/// has mostly let go of it by then, while a list that is still held has to be copied. Not synchronised.
class SharedKeys {
 public:
  /// Does nothing when it is there.
  void insert(core::Key key) { note({std::move(key), true}); }
  /// Does nothing when it is not there.
  void erase(core::Key key) { note({std::move(key), false}); }

  [[nodiscard]] core::KeyList list() {
    settle();
    return keys_;
  }

 private:
  struct Waiting {
    core::Key key;
    bool is_there = false;
  };
  static constexpr std::size_t kWaitingMax = 256;

  void note(Waiting change) {
    waiting_.push_back(std::move(change));
    if (waiting_.size() > kWaitingMax) settle();
  }

  void settle() {
    if (waiting_.empty()) return;
    {
      // Taking hold of it orders us after whoever let go last.
      const auto held = keys_;
      if (held.use_count() != 2) keys_ = std::make_shared<std::vector<core::Key>>(*keys_);
    }
    // The last change of a key counts. New ones go in together: a list is filled in one pass, not one for each.
    std::ranges::stable_sort(waiting_, {}, &Waiting::key);
    std::vector<core::Key> fresh;
    for (auto change = waiting_.begin(); change != waiting_.end(); ++change) {
      if (const auto next = std::next(change); next != waiting_.end() && next->key == change->key) continue;
      const auto place = std::ranges::lower_bound(*keys_, change->key);
      const bool is_there = place != keys_->end() && *place == change->key;
      if (change->is_there && !is_there) fresh.push_back(std::move(change->key));
      if (!change->is_there && is_there) keys_->erase(place);
    }
    const auto known = static_cast<std::ptrdiff_t>(keys_->size());
    std::ranges::move(fresh, std::back_inserter(*keys_));
    std::ranges::inplace_merge(*keys_, keys_->begin() + known);
    waiting_.clear();
  }

  std::shared_ptr<std::vector<core::Key>> keys_ = std::make_shared<std::vector<core::Key>>();
  std::vector<Waiting> waiting_;  ///< in the order they came
};

/// One node's knowledge of the register without asking. It has pools, reservations, configuration, its own node record,
/// its vacancies and claims, the contents of its own blocks, and the keys of everybody else's claims.
///
/// It is a hint (docs/notes/reliability.md#i16). A record that it has may be gone, and from the keys it guesses what is
/// not there. These are a block without a claim, of the length that its pool's blocks have, and a handle that none of
/// the node's own blocks mentions. A decision that rests on it counts only when the conditions of its commit have held
/// (ipam/use/batch.h). Not synchronised.
class Cache {
 public:
  explicit Cache(core::AffinityOwner node);

  /// The first reading, which comes before that of `unknown()`.
  [[nodiscard]] core::Missing first_read() const;
  /// Takes in what a read found; `wanted` is what was asked. Newer knowledge of a record is not replaced by older.
  void learn_all(const core::Missing& wanted, const ReadAnswer& answer);
  /// The same for reads that happened to pass by: only what is unknown is taken from them.
  void learn(const ReadAnswer& answer);
  /// Own blocks whose content is not known, and handles they mention: at most `most` of them.
  [[nodiscard]] core::Missing unknown(std::size_t most) const;

  /// The scope that must be watched, whatever blocks the node has.
  [[nodiscard]] WatchScope scope() const;
  /// The blocks whose records must be followed as well, with the revision of the claim (0: of the first read): changes
  /// from there on matter. own_blocks_generation() changes with every block that comes or goes.
  [[nodiscard]] const std::map<net::Prefix, Revision>& own_blocks() const { return own_; }
  [[nodiscard]] std::size_t own_blocks_generation() const { return generation_; }

  /// The changes that the watch saw. True when they said something new, which may have left gaps.
  bool apply(const std::vector<Change>& changes);
  /// A commit of this process was done.
  void committed(std::span<const Write> writes, const WriteToken& token, Revision revision);
  /// A commit of this process was not done, or nobody knows: what it rested on is to be read anew.
  void doubt(std::span<const Write> writes);
  /// Whether the watch will see a change of this key.
  [[nodiscard]] bool is_watched(const Key& key) const;

  /// The known part of that, each kind in its order; the others are noted in `rest`.
  [[nodiscard]] ReadAnswer answer(const core::Missing& wanted, core::Missing& rest);
  /// One record: absent (the inner optional), or nothing when it is not known.
  [[nodiscard]] std::optional<std::optional<Record>> record(const Key& key) const;

  /// The number of records held with their content.
  [[nodiscard]] std::size_t record_count() const { return records_.size() + ahead_.size(); }
  [[nodiscard]] std::size_t affinity_count() const { return affinity_names_.size(); }

 private:
  [[nodiscard]] bool is_own_name(const std::string& name) const { return name.starts_with(own_names_); }
  [[nodiscard]] bool holds_all_of(const core::Listing& listing) const;
  /// Null, or nothing, when they are not known.
  [[nodiscard]] core::KeyList keys(const core::Listing& listing);
  [[nodiscard]] std::optional<std::vector<Key>> names(const core::Listing& listing) const;
  [[nodiscard]] std::optional<Record> find(const Key& key) const;
  [[nodiscard]] std::optional<std::vector<Record>> list(const core::Listing& listing) const;
  [[nodiscard]] bool is_older_than_known(const Key& key, Revision revision) const;
  [[nodiscard]] bool is_newer_than_known(const Record& record) const;
  [[nodiscard]] bool is_unreadable_block(const Key& key) const;
  [[nodiscard]] bool tells_anew(const Record& known, const Record& seen) const;
  [[nodiscard]] bool is_there(const Key& key) const;
  [[nodiscard]] bool wants(const Key& key) const;
  /// Whether a handle that is known counts addresses in the block.
  [[nodiscard]] bool is_named_by_a_handle(const net::Prefix& block) const;
  /// Whether a claim has a condition on the block and what is beside it.
  [[nodiscard]] bool is_of_pools_length(const net::Prefix& block) const;

  bool apply_one(const Change& change);
  void put(const Key& key, std::optional<Record> record);
  void put_affinity(const Key& key, std::optional<Record> record);
  void drop_affinity(const Key& key);
  void put_block(const Key& key, std::optional<Record> record);
  void set(const Key& key, std::optional<Record> record);

  core::AffinityOwner node_;
  std::string own_names_;  ///< what the names of the node's own rows begin with

  std::map<Key, Record> records_;                     ///< everything that is held with its content
  std::set<std::string> affinity_names_;              ///< of everybody
  std::map<std::string, std::size_t> claimed_;        ///< claims by the name of the block
  std::map<net::Family, SharedKeys> claimed_blocks_;  ///< the keys of claimed_, as they are asked for
  std::map<net::Prefix, Revision> own_;               ///< blocks the node has a claim on, and since when
  std::map<std::string, std::size_t> mentions_;       ///< in how many own blocks a handle is mentioned
  std::map<std::string, Record> ahead_;               ///< handles that this process wrote and no own block mentions yet
  std::set<std::string> doubted_;                     ///< handles that are not as was thought
  std::map<Key, Revision> deleted_;                   ///< by this process, which the watch has not told yet
  std::map<Key, Revision> touched_;                   ///< own blocks whose content is older than this
  std::size_t blocks_held_ = 0;                       ///< of the records, those of blocks
  std::size_t handles_held_ = 0;                      ///< and of handles
  std::size_t generation_ = 0;
};

struct CachedStoreOptions {
  /// Everything is read anew after this time: a watch of etcd 3.4 can lose an event and not say so.
  std::chrono::nanoseconds relist_interval = std::chrono::minutes(10);
  /// More records are not kept: everything is asked of the store beneath then.
  std::size_t records_max = 50'000;
};

/// A store that answers from memory what one node looks at again and again (Cache), and passes everything else on to
/// the store beneath. Commits always go there; after one that was done the memory has it at once.
///
/// Its answers from memory may be old or guesses: only an answer that ended in a successful commit may be believed
/// (ipam/use/batch.h does that). While the watch beneath is broken, lags or has lost changes, nothing is answered from
/// memory. Turns are taken here first and then beneath, so that the threads of this process don't meet in conflicts.
///
/// Safe to call from several threads; step() from one. The store beneath and the clock must outlive it.
class CachedStore final : public ForwardingStore {
 public:
  CachedStore(Store& beneath, core::AffinityOwner node, const Clock& clock, const CachedStoreOptions& options = {});
  ~CachedStore() override;

  /// The same store without answers from memory. Commits that pass through it are noticed all the same.
  [[nodiscard]] Store& uncached() { return uncached_; }

  /// One step of following the store: reads everything when nothing is known or all is old, else waits for changes
  /// until the deadline. Errors: those of the store beneath; the next call begins anew.
  [[nodiscard]] Result<void> step(Deadline deadline);

  struct State {
    bool in_use = false;
    std::size_t own_blocks = 0;
    std::size_t affinities = 0;
    std::uint64_t rebuilt = 0;      ///< how often everything was read
    std::uint64_t from_memory = 0;  ///< reads answered
  };
  [[nodiscard]] State state() const;

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override;
  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                        Deadline deadline) override;
  [[nodiscard]] std::vector<Result<Revision>> commit_each(std::span<const Write> writes, const WriteToken& token,
                                                          Deadline deadline) override;
  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override;

 private:
  /// Reads go beneath, the rest through the CachedStore.
  class Uncached final : public ForwardingStore {
   public:
    explicit Uncached(CachedStore& whole) : ForwardingStore(whole), whole_(whole) {}
    [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override;
    [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                          Deadline deadline) override;
    [[nodiscard]] std::vector<Result<Revision>> commit_each(std::span<const Write> writes, const WriteToken& token,
                                                            Deadline deadline) override;

   private:
    CachedStore& whole_;
  };

  /// Commits beneath; the memory learns of it. With `from_memory` the decision rests on it, and so on its epoch.
  [[nodiscard]] Result<Revision> commit_noted(bool from_memory, std::span<const Write> writes, const WriteToken& token,
                                              Deadline deadline);
  [[nodiscard]] std::vector<Result<Revision>> commit_each_noted(bool from_memory, std::span<const Write> writes,
                                                                const WriteToken& token, Deadline deadline);
  [[nodiscard]] Result<void> begin_commit(bool from_memory, Deadline deadline);
  [[nodiscard]] std::map<Key, Revision> seen_while_in_flight();
  void note_outcome(std::span<const Write> writes, const WriteToken& token, const Result<Revision>& committed,
                    const std::map<Key, Revision>& seen);
  [[nodiscard]] Result<ReadAnswer> pass_on(const core::Missing& wanted, Deadline deadline);
  /// As Cache::answer; nothing is known while it is not in use.
  [[nodiscard]] ReadAnswer from_memory(const core::Missing& wanted, core::Missing& rest);
  [[nodiscard]] Result<void> check_deadline(Deadline deadline) const;
  [[nodiscard]] bool is_usable_now();
  [[nodiscard]] Result<void> rebuild();
  /// Error: corrupt, where a register, or a server that tells of ever more, is larger than memory may become.
  [[nodiscard]] Result<void> check_size(const Cache& cache) const;
  void follow_own_blocks();
  void strike_awaited(const std::vector<Change>& changes);
  [[nodiscard]] Result<void> fill_unknown(Deadline deadline);
  [[nodiscard]] Deadline read_deadline() const;

  const core::AffinityOwner node_;
  const Clock& clock_;
  const CachedStoreOptions options_;
  Uncached uncached_;
  std::timed_mutex turn_;

  std::unique_ptr<Watch> watch_;                     ///< step() only
  std::set<net::Prefix> followed_;                   ///< step() only: own blocks that watch_ follows
  std::size_t watched_generation_ = 0;               ///< step() only
  std::chrono::nanoseconds relist_at_since_boot_{};  ///< step() only
  unsigned rebuilds_failed_ = 0;                     ///< step() only: since the last that did not

  mutable std::mutex mutex_;  ///< guards all below
  Cache cache_;
  bool in_use_ = false;
  /// A write of this process that the watch must come to.
  struct Awaited {
    Key key;
    Revision revision;
    std::chrono::nanoseconds done_since_boot{};
  };
  std::deque<Awaited> awaited_;  ///< the oldest first
  Revision watched_from_;        ///< the watch tells what came after this
  std::uint64_t epoch_ = 0;      ///< of the store beneath, that cache_ is of
  std::uint64_t rebuilt_ = 0;
  std::uint64_t from_memory_ = 0;
  std::size_t in_flight_ = 0;               ///< commits whose answer has not come
  std::map<Key, Revision> seen_in_flight_;  ///< what the watch told meanwhile: it may be quicker than the answer
  bool fill_due_ = false;                   ///< changes came that may have left gaps
};

/// Runs CachedStore::step() in a thread of its own, until it is destroyed. After a failure it waits, longer each time,
/// until the steps have gone well for as long as it waited last.
class CacheFollower {
 public:
  CacheFollower(CachedStore& store, const Clock& clock);
  ~CacheFollower();
  CacheFollower(const CacheFollower&) = delete;
  CacheFollower& operator=(const CacheFollower&) = delete;

  /// Why a step failed last; empty once it is over.
  [[nodiscard]] std::string trouble() const;

 private:
  void run();

  CachedStore& store_;
  const Clock& clock_;
  mutable std::mutex mutex_;  ///< guards both below
  std::condition_variable wake_;
  bool stopping_ = false;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace croft::store
