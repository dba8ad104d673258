#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "register/affinity.h"
#include "register/one_nodes_part.h"
#include "store/cached/cache.h"
#include "store/forwarding_store.h"
#include "store/store.h"

namespace croft::store {

inline constexpr unsigned kReadLimitDoublings = 4;

struct CachedStoreOptions {
  /// The records kept in memory: those that an allocator of blocks looks at, or a stock of cloud addresses alone.
  core::Follower follower = core::Follower::blocks;
  /// How long the watch may stay behind a commit of this process before it counts as broken.
  std::chrono::nanoseconds lag_max = std::chrono::seconds(1);
  /// For one read of the follower. The limit doubles after each time that everything could not be read, up to
  /// kReadLimitDoublings times. Where many begin at once, and each needs longer than this, none would ever come to an
  /// end.
  std::chrono::nanoseconds read_limit = std::chrono::seconds(10);
  /// Everything is read anew after this time: a watch of etcd 3.4 can lose an event and not say so.
  std::chrono::nanoseconds relist_interval = std::chrono::minutes(10);
  /// More records, or claims of the whole cluster, are not kept: everything is asked of the store beneath then.
  std::size_t records_max = 50'000;
  std::size_t claims_max = 500'000;
};

/// A store that answers from memory what one node looks at again and again (cache.h), and passes everything else on to
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
  [[nodiscard]] Result<Page> list(const ListRequest& request, Deadline deadline) override;
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
    [[nodiscard]] Result<Page> list(const ListRequest& request, Deadline deadline) override;
    [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                          Deadline deadline) override;
    [[nodiscard]] std::vector<Result<Revision>> commit_each(std::span<const Write> writes, const WriteToken& token,
                                                            Deadline deadline) override;

   private:
    CachedStore& whole_;
  };

  class OwnTurn;

  /// Commits beneath; the memory learns of it. With `from_memory` the decision rests on it, and so on its epoch.
  [[nodiscard]] Result<Revision> commit_noted(bool from_memory, std::span<const Write> writes, const WriteToken& token,
                                              Deadline deadline);
  [[nodiscard]] std::vector<Result<Revision>> commit_each_noted(bool from_memory, std::span<const Write> writes,
                                                                const WriteToken& token, Deadline deadline);
  [[nodiscard]] Result<void> begin_commit(bool from_memory, Deadline deadline);
  [[nodiscard]] std::map<Key, Revision> seen_while_in_flight();
  void note(std::span<const Write> writes, const WriteToken& token, const Result<Revision>& committed,
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
