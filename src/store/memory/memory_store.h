#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "store/memory/fault_script.h"
#include "store/pause.h"
#include "store/store.h"

namespace croft::store {

/// A store in the memory of one process, for tests and simulation. Several MemoryStores may share one MemoryData: that
/// is several clients of one store, each with faults and counters of its own. Nothing waits, so deadlines never pass;
/// turns are empty. Safe to call from several threads. Tests derive from it to act between two reads.
class MemoryData;

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
  [[nodiscard]] Result<Page> list(const ListRequest& request, Deadline deadline) override;
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
  [[nodiscard]] std::optional<Fault> next_fault();

  std::shared_ptr<MemoryData> data_;
  mutable std::mutex mutex_;  ///< guards all below
  FaultScript faults_;
  CallCounts counts_;
  Capabilities capabilities_{.atomic_commit = true};
  std::atomic<bool> is_filling_ = false;
  std::atomic<std::uint64_t> epoch_{0};
};

}  // namespace croft::store
