#include "store/sqlite/sqlite_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "register/format/records.h"
#include "store/check_request.h"
#include "store/format/pause.h"
#include "store/sqlite/commit_queue.h"
#include "store/sqlite/connection_pool.h"
#include "store/sqlite/identity.h"
#include "store/sqlite/open_store.h"
#include "store/sqlite/record_table.h"
#include "store/sqlite/transaction.h"

namespace croft::store {
namespace {

/// How long others may hold up what can wait for the next commit.
constexpr std::chrono::seconds kTidyUpMax{1};

/// Work that can wait until the holder of a turn has told others is done as the turn ends.
class GateTurn final : public Store::Turn {
 public:
  GateTurn(WriterGate& gate, std::function<void()> before_leaving)
      : gate_(gate), before_leaving_(std::move(before_leaving)) {}
  GateTurn(const GateTurn&) = delete;
  GateTurn& operator=(const GateTurn&) = delete;
  ~GateTurn() override {
    before_leaving_();
    gate_.leave();
  }

 private:
  WriterGate& gate_;
  const std::function<void()> before_leaving_;
};

std::vector<EncodedWrite> encode(std::span<const Write> writes) {
  std::vector<EncodedWrite> encoded;
  encoded.reserve(writes.size());
  for (const Write& write : writes) {
    encoded.push_back({wire::number_of(write.key.kind), &write.key, std::nullopt, write.condition, write.only_check});
    if (write.value) encoded.back().bytes = wire::encode_record(*write.value);
  }
  return encoded;
}

[[nodiscard]] Result<void> check_sizes(std::span<const EncodedWrite> writes) {
  for (const EncodedWrite& write : writes) {
    if (!write.bytes || write.bytes->size() <= wire::kRecordBytesMax) continue;
    return fail(ErrorCode::storage_full, fmt::format("record {} has {} bytes; up to {} are stored", write.key->name,
                                                     write.bytes->size(), wire::kRecordBytesMax));
  }
  return {};
}

/// How often a watch looks for what other processes wrote. SQLite tells nobody of a change; a look that finds nothing
/// takes some ten microseconds.
inline constexpr std::chrono::milliseconds kLookInterval{20};

/// Wakes the watches of this process when it commits; those of others look again after a while. Safe to call from
/// several threads.
class ChangeSignal {
 public:
  void give() {
    {
      const std::lock_guard lock(mutex_);
      ++given_;
    }
    changed_.notify_all();
  }

  /// To be read before looking for changes, so that none given since is missed.
  [[nodiscard]] std::uint64_t given() const {
    const std::lock_guard lock(mutex_);
    return given_;
  }

  /// Returns at once when more than `seen` were given.
  void wait(std::uint64_t seen, std::chrono::nanoseconds longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [&] { return given_ != seen; });
  }

 private:
  mutable std::mutex mutex_;  ///< guards given_
  std::condition_variable changed_;
  std::uint64_t given_ = 0;
};

/// A watch on a SQLite store: looks for changes when this process commits, and every kLookInterval. The references must
/// outlive it.
class SqliteWatch final : public Watch {
 public:
  SqliteWatch(ConnectionPool& connections, ChangeSignal& signal, const Clock& clock, WatchScope scope, Revision after)
      : connections_(connections), signal_(signal), clock_(clock), scope_(std::move(scope)), position_(after) {}

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override;
  void follow(const Key& key, Revision after) override {
    followed_.insert(key);
    position_ = std::min(position_, after);
  }
  void unfollow(const Key& key) override { followed_.erase(key); }

  /// Errors: too_old when the changes after the position are no longer known, and those of every call.
  [[nodiscard]] Result<void> check_position(Deadline deadline);

 private:
  /// The changes after the position, which moves on.
  [[nodiscard]] Result<std::vector<Change>> look(Deadline deadline);

  ConnectionPool& connections_;
  ChangeSignal& signal_;
  const Clock& clock_;
  const WatchScope scope_;
  std::set<Key> followed_;
  Revision position_;  ///< every change up to it has been returned
};

[[nodiscard]] Result<Revision> last_of_known(Database& database, Revision position) {
  TRY(const KnownChanges known, known_changes(database));
  if (known.reach_back_to(position)) return known.last;
  return fail(ErrorCode::too_old,
              fmt::format("{}: the changes after revision {} are no longer known (known: those after "
                          "{}, up to {}); read everything again",
                          database.path(), position.value, known.floor.value, known.last.value));
}

Result<std::vector<Change>> SqliteWatch::next(Deadline deadline) {
  for (;;) {
    const std::uint64_t seen = signal_.given();
    TRY(std::vector<Change> changes, look(deadline));
    if (!changes.empty() || deadline.passed(clock_.now())) return changes;
    signal_.wait(seen, std::min<std::chrono::nanoseconds>(kLookInterval, remaining(clock_, deadline)));
  }
}

Result<std::vector<Change>> SqliteWatch::look(Deadline deadline) {
  std::vector<Change> changes;
  Revision position;
  const auto use = [&](Database& database) -> Result<void> {
    TRY(position, last_of_known(database, position_));
    if (position == position_) return {};
    TRY(changes, changes_after(database, position_, scope_, followed_));
    return {};
  };
  TRY_VOID(connections_.read(deadline, use));
  position_ = position;
  return changes;
}

Result<void> SqliteWatch::check_position(Deadline deadline) {
  return connections_.read(deadline, [&](Database& database) -> Result<void> {
    TRY_VOID(last_of_known(database, position_));
    return {};
  });
}

class SqliteStoreImpl final : public SqliteStore {
 public:
  SqliteStoreImpl(const std::string& path, const Clock& clock, bool lock_is_held)
      : clock_(clock),
        gate_(path + kLockSuffix, clock, lock_is_held),
        connections_(path, clock, gate_),
        queue_(
            gate_, clock, [this](std::span<PendingCommit* const> group) { return apply_group(group); },
            [this] { tidy_up(); }) {}

  [[nodiscard]] Result<void> open(Deadline deadline) {
    return connections_.read(deadline, [](Database&) { return Result<void>(); });
  }

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    ReadAnswer answer;
    TRY_VOID(connections_.read(deadline, [&](Database& database) -> Result<void> {
      TRY(answer, read_all(database, wanted));
      return {};
    }));
    return answer;
  }

  [[nodiscard]] Result<Page> list(const ListRequest& request, Deadline deadline) override {
    TRY_VOID(check_list(request));
    Page page;
    TRY_VOID(connections_.read(deadline, [&](Database& database) -> Result<void> {
      TRY(page, read_page(database, request));
      return {};
    }));
    return page;
  }

  [[nodiscard]] Result<Revision> position(Deadline deadline) override {
    Revision last;
    TRY_VOID(connections_.read(deadline, [&](Database& database) -> Result<void> {
      TRY(const Identity identity, database.identity());
      last = database.told(identity.revision);
      return {};
    }));
    return last;
  }

  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after,
                                                     Deadline deadline) override {
    auto watch = std::make_unique<SqliteWatch>(connections_, changed_, clock_, scope, after);
    TRY_VOID(watch->check_position(deadline));
    return std::unique_ptr<Watch>(std::move(watch));
  }

  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                        Deadline deadline) override {
    CROFT_ASSERT(!gate_.lock_is_held_by_caller());
    TRY_VOID(check_writes(writes));
    PendingCommit pending{encode(writes), token, deadline, std::nullopt};
    TRY_VOID(check_sizes(pending.writes));
    queue_.run(pending);
    if (*pending.result) ++commits_;
    return *std::move(pending.result);
  }

  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override {
    TRY_VOID(gate_.enter(deadline));
    return std::unique_ptr<Turn>(std::make_unique<GateTurn>(gate_, [this] { tidy_up(); }));
  }

  [[nodiscard]] Capabilities capabilities() const override { return {.atomic_commit = true}; }

  /// The files and the note show it to any call.
  [[nodiscard]] std::uint64_t epoch() const override { return connections_.generation(); }

  [[nodiscard]] Result<os::FileId> file(Deadline deadline) override {
    std::optional<os::FileId> id;
    TRY_VOID(connections_.read(deadline, [&](Database& database) -> Result<void> {
      id = database.file();
      return {};
    }));
    if (id) return *id;
    return fail(ErrorCode::unavailable, "the store's file was replaced just now");
  }

  [[nodiscard]] SqliteCounters counters() const override {
    return {commits_.load(), transactions_.load(), checkpoints_.load()};
  }

  [[nodiscard]] Result<std::optional<StoredPause>> pause(Deadline deadline) override {
    std::optional<StoredPause> found;
    TRY_VOID(connections_.read(deadline, [&](Database& database) -> Result<void> {
      TRY(found, read_pause(database));
      return {};
    }));
    return found;
  }
  [[nodiscard]] Result<void> change_pause(const std::optional<StoredPause>& there,
                                          const std::optional<core::Pause>& next, Deadline deadline) override {
    PendingCommit pending{{}, {}, deadline, std::nullopt};
    pending.writes.push_back({kPauseKind, &pause_row(), next ? std::optional(wire::encode_pause(*next)) : std::nullopt,
                              there ? Condition::if_revision(Revision(there->revision)) : Condition::if_absent()});
    pending.changes_pause = true;
    queue_.run(pending);
    if (!*pending.result) return fail(pending.result->error());
    ++commits_;
    return {};
  }
  void fill() override {}  // no copy goes into a store of one machine
  [[nodiscard]] std::chrono::seconds settling() const override { return std::chrono::seconds(0); }

 private:
  std::vector<Result<Revision>> apply_group(std::span<PendingCommit* const> group) {
    std::vector<Result<Revision>> results;
    const auto use = [&](Database& database) -> Result<void> {
      Identity last;
      results = commit_group(database, group, last);
      transactions_ += 1;
      note_commits(database, last, results);
      is_log_long_ = is_log_long(database);
      // The pool opens the files anew, and lets it begin again.
      if (database.met_other_history()) return fail(results.front().error());
      for (const auto& result : results) {
        if (!result && database.disk_failed()) connections_.break_with(result.error());
      }
      return {};
    };
    const auto used = connections_.write(group.front()->deadline, use);
    if (!used) results.assign(group.size(), fail(used.error()));
    return results;
  }

  /// A commit counts only when it is in the files that the path names: they may have been replaced since the connection
  /// was looked at.
  void note_commits(Database& database, const Identity& last, std::vector<Result<Revision>>& results) {
    if (std::none_of(results.begin(), results.end(), [](const auto& result) { return result.has_value(); })) return;
    const auto current = database.is_current();
    if (current && *current && gate_.lock().is_at_path()) {
      gate_.lock().note(encode_commit_note(last));
      connections_.note_seen(last);
      return;
    }
    for (auto& result : results) {
      if (!result) continue;
      result = fail(ErrorCode::unknown_outcome,
                    fmt::format("{} was replaced while a commit to it was under way", database.path()));
    }
  }

  void tidy_up() {
    changed_.give();
    if (std::exchange(is_log_long_, false)) {
      const Deadline soon = Deadline::after(clock_.now(), kTidyUpMax);
      // Its failure is no failure of a commit, which has been acknowledged; the pool notes what it says about the disk.
      static_cast<void>(connections_.write(soon, [&](Database& database) -> Result<void> {
        TRY(const bool checkpointed, shorten_log(database));
        if (checkpointed) checkpoints_ += 1;
        return {};
      }));
    }
    connections_.before_leaving_gate();
  }

  const Clock& clock_;
  WriterGate gate_;
  ConnectionPool connections_;
  ChangeSignal changed_;
  CommitQueue queue_;
  bool is_log_long_ = false;  ///< by the last commit; of whoever is inside the gate
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::uint64_t> transactions_{0};
  std::atomic<std::uint64_t> checkpoints_{0};
};

}  // namespace

Result<std::unique_ptr<SqliteStore>> open_sqlite_store(const std::string& path, const SqliteOptions& options,
                                                       const Clock& clock, Deadline deadline) {
  TRY(const std::string resolved, find_or_create(path, options, clock, deadline));
  auto store = std::make_unique<SqliteStoreImpl>(resolved, clock, options.lock_is_held);
  TRY_VOID(store->open(deadline));
  return std::unique_ptr<SqliteStore>(std::move(store));
}

Result<void> check_sqlite_pages(const std::string& path, const Clock& clock, Deadline deadline) {
  TRY(const std::string resolved, find_or_create(path, {}, clock, deadline));
  Database database(resolved, Database::Mode::shared, clock, deadline);
  TRY_VOID(database.open());
  return verify_pages(database);
}

}  // namespace croft::store
