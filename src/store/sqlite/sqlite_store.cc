#include "store/sqlite/sqlite_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "base/texts.h"
#include "os/files.h"
#include "register/format/records.h"
#include "store/format/pause.h"
#include "store/sqlite/commit_queue.h"
#include "store/sqlite/database.h"
#include "store/sqlite/record_table.h"
#include "store/sqlite/transaction.h"
#include "store/store.h"

namespace croft::store {

namespace {

/// Reading needs room for one thing only: the file of the log's index, when no other process has it open.
bool lacks_room(const Result<void>& read) { return !read && read.error().code == ErrorCode::storage_full; }

/// How often files that are replaced again and again are opened anew.
constexpr int kTries = 20;

/// The connections of one store: the first serves whoever is inside the gate and, while it is idle, readers; a second,
/// opened when it is first needed, serves readers meanwhile. A plugin never needs the second. On a full disk, where
/// only one connection of one process can be open (Database::Mode::alone), everybody goes through the gate, and the
/// connection is closed when the gate is left; each new one tries the shared mode again.
///
/// Each use compares the files with those that the path names (Database::is_current), and in its transaction the
/// register with the note in the lock file (check_identity). When files were replaced, all connections are closed,
/// since SQLite keeps one mapping of the index for a whole process, and opened anew in a new generation, and the use is
/// run again. Safe to call from several threads.
class ConnectionPool {
 public:
  using Use = std::function<Result<void>(Database&)>;

  ConnectionPool(std::string path, const Clock& clock, WriterGate& gate)
      : path_(std::move(path)), clock_(clock), gate_(gate) {}

  /// Runs `use` on some connection, in a read transaction: all of it sees one moment. It may be run again, after it
  /// failed.
  [[nodiscard]] Result<void> read(Deadline deadline, const Use& use) {
    const Use in_transaction = [&](Database& database) -> Result<void> {
      const ReadTransaction as_of_one_moment(database);
      TRY_VOID(as_of_one_moment.begun());
      TRY_VOID(check_identity(database));
      return use(database);
    };
    auto result = use_current(deadline, [&](bool& replaced) {
      if (std::unique_lock first(first_.mutex, std::try_to_lock); first.owns_lock()) {
        return use_slot(first_, deadline, in_transaction, replaced);
      }
      const std::lock_guard second(second_.mutex);
      return use_slot(second_, deadline, in_transaction, replaced);
    });
    return lacks_room(result) && !gate_.is_inside() ? read_alone(deadline, in_transaction) : result;
  }

  /// Runs `use` on the first connection, outside a transaction; the thread must be inside the gate. It may be run
  /// again, after it failed, and calls check_identity() in its transaction.
  [[nodiscard]] Result<void> write(Deadline deadline, const Use& use) {
    TRY_VOID(gate_.follow_lock_file(deadline));
    // The disk may be writable by now. SQLite opens the log's index once in a process, for all connections.
    if (opened_read_only_.exchange(false)) {
      const std::scoped_lock lock(first_.mutex, second_.mutex);
      first_.database.reset();
      second_.database.reset();
    }
    return use_current(deadline, [&](bool& replaced) {
      const std::lock_guard lock(first_.mutex);
      return use_slot(first_, deadline, use, replaced);
    });
  }

  /// To be called before the gate is left.
  void before_leaving_gate() {
    const std::lock_guard lock(first_.mutex);
    if (first_.database && first_.database->mode() == Database::Mode::alone) first_.database.reset();
  }

  /// How often the files were found replaced.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  /// After a failure of the disk: nothing more can be believed until the store is opened again or its files are
  /// replaced.
  void break_with(const Error& why) {
    const std::lock_guard lock(mutex_);
    if (broken_) return;
    broken_ = make_error(ErrorCode::unavailable, "{} is closed after a failure; look at the disk and start again: {}",
                         path_, why.message);
  }

 private:
  struct Slot {
    std::mutex mutex;  ///< guards database
    std::unique_ptr<Database> database;
  };

  /// Runs `use`. `replaced`: the connection must not be used any more, and what the use did is void.
  [[nodiscard]] Result<void> use_slot(Slot& slot, Deadline deadline, const Use& use, bool& replaced) {
    if (!slot.database) TRY_VOID(open(slot, Database::Mode::shared, deadline, replaced));
    TRY(const bool current, slot.database->is_current());
    replaced = !current;
    if (replaced) return {};
    const bool has_lock = gate_.is_inside() && gate_.lock().is_held();
    {
      const std::lock_guard lock(mutex_);
      if (broken_) return fail(*broken_);
    }
    slot.database->set_deadline(deadline);
    slot.database->expect(has_lock ? decode_commit_note(gate_.lock().noted(kCommitNoteBytes))
                                   : read_commit_note(path_));
    auto used = use(*slot.database);
    if (used) return used;
    if (slot.database->disk_failed()) break_with(used.error());
    // The files may have been replaced since they were looked at.
    const auto still = slot.database->is_current();
    replaced = still && !*still;
    return used;
  }
  [[nodiscard]] Result<void> use_current(Deadline deadline, const std::function<Result<void>(bool& replaced)>& use) {
    for (int i = 0; i < kTries; ++i) {
      const std::uint16_t generation = generation_;
      bool replaced = false;
      auto used = use(replaced);
      if (!replaced) return used;
      close_all(generation);
      if (deadline.passed(clock_.now())) break;
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return fail(ErrorCode::deadline_exceeded,
                "the files of {} were replaced just now, and the time limit of the call ended before they "
                "could be opened anew; try again",
                path_);
  }
  void close_all(std::uint16_t generation) {
    const std::scoped_lock lock(first_.mutex, second_.mutex, mutex_);
    if (generation_ != generation) return;  // another thread has been here
    first_.database.reset();
    second_.database.reset();
    ++generation_;
    broken_.reset();
  }
  [[nodiscard]] Result<void> open(Slot& slot, Database::Mode mode, Deadline deadline, bool& replaced) {
    TRY(const auto there, os::file_status(path_));
    if (!there) {
      TRY_VOID(refuse_lost_database(path_));
      return fail(ErrorCode::unavailable, "{} was removed while it was open; put it back, or start again", path_);
    }
    // Empty as while somebody copies another one over it. SQLite would remove the log beside it.
    TRY_VOID(check_file(path_, *there));
    slot.database = std::make_unique<Database>(path_, mode, clock_, deadline, generation_);
    auto opened = slot.database->open();
    if (opened && slot.database->is_read_only()) opened_read_only_ = true;
    if (opened) return opened;
    slot.database.reset();
    if (lacks_room(opened) && mode == Database::Mode::shared && gate_.is_inside()) {
      return open(slot, Database::Mode::alone, deadline, replaced);
    }
    const auto now = os::file_status(path_);
    replaced = now && *now && (*now)->id != there->id;
    return opened;
  }
  [[nodiscard]] Result<void> read_alone(Deadline deadline, const Use& use) {
    TRY_VOID(gate_.enter(deadline));
    auto result = write(deadline, use);
    before_leaving_gate();
    gate_.leave();
    return result;
  }

  const std::string path_;
  const Clock& clock_;
  WriterGate& gate_;
  Slot first_;
  Slot second_;
  std::atomic<std::uint16_t> generation_{0};
  std::atomic<bool> opened_read_only_{false};  ///< a connection that may still be open
  mutable std::mutex mutex_;                   ///< guards broken_
  std::optional<Error> broken_;
};

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
    return fail(ErrorCode::storage_full, "record {} has {} bytes; up to {} are stored", write.key->name,
                write.bytes->size(), wire::kRecordBytesMax);
  }
  return {};
}

/// How often a watch looks for what other processes wrote. SQLite tells nobody of a change; a look that finds nothing
/// takes some ten microseconds.
constexpr std::chrono::milliseconds kLookInterval{20};

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

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override {
    for (;;) {
      const std::uint64_t seen = signal_.given();
      TRY(std::vector<Change> changes, look(deadline));
      if (!changes.empty() || deadline.passed(clock_.now())) return changes;
      signal_.wait(seen, std::min<std::chrono::nanoseconds>(kLookInterval, remaining(clock_, deadline)));
    }
  }
  [[nodiscard]] bool is_complete_up_to(Revision position) override { return position_ >= position; }
  void follow(const Key& key, Revision after) override {
    followed_.insert(key);
    position_ = std::min(position_, after);
  }
  void unfollow(const Key& key) override { followed_.erase(key); }

  /// Errors: too_old when the changes after the position are no longer known, and those of every call.
  [[nodiscard]] Result<void> check_position(Deadline deadline) {
    return connections_.read(deadline, [&](Database& database) -> Result<void> {
      TRY_VOID(last_known_change(database, position_));
      return {};
    });
  }

 private:
  /// The changes after the position, which moves on.
  [[nodiscard]] Result<std::vector<Change>> look(Deadline deadline) {
    std::vector<Change> changes;
    Revision position;
    const auto use = [&](Database& database) -> Result<void> {
      TRY(position, last_known_change(database, position_));
      if (position == position_) return {};
      TRY(changes, changes_after(database, position_, scope_, followed_));
      return {};
    };
    TRY_VOID(connections_.read(deadline, use));
    position_ = position;
    return changes;
  }

  ConnectionPool& connections_;
  ChangeSignal& signal_;
  const Clock& clock_;
  const WatchScope scope_;
  std::set<Key> followed_;
  Revision position_;  ///< every change up to it has been returned
};

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
    return look(deadline, [&](Database& database) { return read_all(database, wanted); });
  }

  [[nodiscard]] Result<void> for_each(const ListRequest& request, const Until& until, const Take& take) override {
    std::string after;
    for (Page page{{}, true}; page.more;) {
      TRY(page, look(until(), [&](Database& database) { return read_page(database, request, after); }));
      if (page.more) after = page.records.back().key.name;
      for (Record& record : page.records) TRY_VOID(take(record));
    }
    return {};
  }

  [[nodiscard]] Result<Revision> position(Deadline deadline) override {
    return look(deadline, [](Database& database) -> Result<Revision> {
      TRY(const Identity identity, database.identity());
      return database.told(identity.revision);
    });
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
    return *std::move(pending.result);
  }

  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override {
    TRY_VOID(gate_.enter(deadline));
    return std::unique_ptr<Turn>(std::make_unique<GateTurn>(gate_, [this] { tidy_up(); }));
  }

  [[nodiscard]] Capabilities capabilities() const override { return {.atomic_commit = true}; }

  /// The files show it to any call.
  [[nodiscard]] std::uint64_t epoch() const override { return connections_.generation(); }

  [[nodiscard]] Result<os::FileId> file(Deadline deadline) override {
    TRY(const auto id,
        look(deadline, [](Database& database) { return Result<std::optional<os::FileId>>(database.file()); }));
    if (id) return *id;
    return fail(ErrorCode::unavailable, "the store's file was replaced just now");
  }

  [[nodiscard]] std::uint64_t checkpoints() const override { return checkpoints_; }

  [[nodiscard]] Result<std::optional<StoredPause>> pause(Deadline deadline) override {
    return look(deadline, read_pause);
  }
  [[nodiscard]] Result<void> change_pause(const std::optional<StoredPause>& there,
                                          const std::optional<core::Pause>& next, Deadline deadline) override {
    PendingCommit pending{{}, {}, deadline, std::nullopt};
    pending.writes.push_back({kPauseKind, &pause_row(), next ? std::optional(wire::encode_pause(*next)) : std::nullopt,
                              there ? Condition::if_revision(Revision(there->revision)) : Condition::if_absent()});
    pending.changes_pause = true;
    queue_.run(pending);
    if (!*pending.result) return fail(pending.result->error());
    return {};
  }
  void fill() override {}  // no copy goes into a store of one machine
  [[nodiscard]] std::chrono::seconds settling() const override { return std::chrono::seconds(0); }

 private:
  /// Answers as `use` does in a read transaction.
  template <class Use>
  [[nodiscard]] std::invoke_result_t<Use, Database&> look(Deadline deadline, Use use) {
    typename std::invoke_result_t<Use, Database&>::value_type found{};
    TRY_VOID(connections_.read(deadline, [&](Database& database) -> Result<void> {
      TRY(found, use(database));
      return {};
    }));
    return found;
  }

  std::vector<Result<Revision>> apply_group(std::span<PendingCommit* const> group) {
    std::vector<Result<Revision>> results;
    const auto use = [&](Database& database) -> Result<void> {
      Identity last;
      results = commit_group(database, group, last);
      note_commits(database, last, results);
      is_log_long_ = database.log_pages() >= kLogPagesMax;
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
      return;
    }
    for (auto& result : results) {
      if (!result) continue;
      result = fail(ErrorCode::unknown_outcome, "{} was replaced while a commit to it was under way", database.path());
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
