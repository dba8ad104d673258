#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "store/pause.h"
#include "store/store.h"

namespace croft::store {

/// How one commit goes wrong.
enum class Fault : std::uint8_t {
  lose_reply,      ///< applied, but the caller gets unknown_outcome
  lose_request,    ///< not applied, and the caller gets unknown_outcome
  conflict,        ///< not applied, conflict: somebody else wrote first
  unavailable,     ///< not applied, unavailable
  storage_full,    ///< not applied, storage_full
  repeat_request,  ///< applied, and done a second time by an intermediary, which gives that answer: conflict
};
[[nodiscard]] constexpr bool is_applied(Fault fault) {
  return fault == Fault::lose_reply || fault == Fault::repeat_request;
}

/// Which commits of a store go wrong and how. Commits are counted from 1 at the construction of the store.
class FaultScript {
 public:
  /// The commit number `nth` meets `fault`; a later call for the same number replaces an earlier one.
  FaultScript& on_commit(std::uint64_t nth, Fault fault) {
    by_commit_[nth] = fault;
    return *this;
  }
  /// Every commit from number `nth` on meets `fault`, unless on_commit says otherwise for it.
  FaultScript& from_commit(std::uint64_t nth, Fault fault) {
    from_[nth] = fault;
    return *this;
  }

  /// The fault of a commit, or null when it goes well.
  [[nodiscard]] const Fault* fault_of(std::uint64_t nth) const {
    if (const auto it = by_commit_.find(nth); it != by_commit_.end()) return &it->second;
    const auto after = from_.upper_bound(nth);
    return after == from_.begin() ? nullptr : &std::prev(after)->second;
  }

 private:
  std::map<std::uint64_t, Fault> by_commit_;
  std::map<std::uint64_t, Fault> from_;
};

/// How often each operation was called, so that tests can hold the engine to its number of reads.
struct CallCounts {
  std::uint64_t list = 0;  ///< pages
  std::uint64_t read = 0;
  std::uint64_t commit = 0;
  std::uint64_t take_turn = 0;
};

/// A store in the memory of one process, for tests and simulation. Several MemoryStores may share one MemoryData: that
/// is several clients of one store, each with faults and counters of its own. Nothing waits, so deadlines never pass;
/// turns are empty. Safe to call from several threads. Tests derive from it to act between two reads.
struct MemoryData;

class MemoryStore : public Store, public Pausable {
 public:
  MemoryStore();
  /// One more client of the store that `data` is.
  explicit MemoryStore(std::shared_ptr<MemoryData> data);
  ~MemoryStore() override;

  /// The store behind this client, for opening further clients.
  [[nodiscard]] std::shared_ptr<MemoryData> data() const { return data_; }

  /// Whether there is a record of the key: without a copy of it.
  [[nodiscard]] bool contains(const Key& key) const;

  /// Shows every readable record of a kind, in place: no call of the store within.
  void look_at(Kind kind, const std::function<void(const Key&, const Value&)>& look) const;

  /// From now on the record of a key, which is made if need be, cannot be read.
  void damage(const Key& key, ErrorCode code = ErrorCode::corrupt);
  /// From now on changes are not remembered: watches get too_old. For simulations of very many commits.
  void keep_no_history();
  /// Forgets past changes, as a compaction does: watches that have not seen them get too_old.
  void forget_history();
  /// Sets the answer of capabilities(), for tests of code that must do without. Without atomic_commit a commit of
  /// several writes is refused.
  void set_capabilities(Capabilities capabilities);

  /// Replaces the script. Commits already made count on.
  void set_faults(FaultScript script);
  [[nodiscard]] CallCounts counts() const;

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override;
  [[nodiscard]] Result<void> for_each(const ListRequest& request, const Until& until, const Take& take) override;
  /// The records after a name; empty: from the start.
  [[nodiscard]] Page page(const ListRequest& request, const std::string& after);
  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                        Deadline deadline) override;
  [[nodiscard]] Result<Revision> position(Deadline deadline) override;
  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after,
                                                     Deadline deadline) override;
  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override;
  [[nodiscard]] Capabilities capabilities() const override;
  [[nodiscard]] std::uint64_t epoch() const override { return epoch_; }

  [[nodiscard]] Result<std::optional<StoredPause>> pause(Deadline deadline) override;
  /// Counts as a commit, with its faults.
  [[nodiscard]] Result<void> change_pause(const std::optional<StoredPause>& there,
                                          const std::optional<core::Pause>& next, Deadline deadline) override;
  void fill() override { is_filling_ = true; }
  [[nodiscard]] std::chrono::seconds settling() const override { return std::chrono::seconds(0); }

  /// As if the register had been put back to an older state, which the caller makes.
  void begin_epoch() { ++epoch_; }

 private:
  /// Does what counts as a commit, with its fault.
  template <class Apply>
  [[nodiscard]] auto with_fault(Apply apply) -> decltype(apply());
  void count(std::uint64_t CallCounts::*calls);

  std::shared_ptr<MemoryData> data_;
  mutable std::mutex mutex_;  ///< guards all below
  FaultScript faults_;
  CallCounts counts_;
  Capabilities capabilities_{.atomic_commit = true};
  std::atomic<bool> is_filling_ = false;
  std::atomic<std::uint64_t> epoch_{0};
};

}  // namespace croft::store
