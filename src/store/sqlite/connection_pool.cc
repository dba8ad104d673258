#include "store/sqlite/connection_pool.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "os/files.h"
#include "store/sqlite/open_store.h"
#include "store/sqlite/transaction.h"

namespace croft::store {
namespace {

/// Reading needs room for one thing only: the file of the log's index, when no other process has it open.
bool lacks_room(const Result<void>& read) { return !read && read.error().code == ErrorCode::storage_full; }

/// How often files that are replaced again and again are opened anew.
constexpr int kTries = 20;

}  // namespace

void ConnectionPool::break_with(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (broken_) return;
  broken_ = Error{ErrorCode::unavailable,
                  fmt::format("{} is closed after a failure; look at the disk and start again: {}", path_, why.message),
                  {}};
}

void ConnectionPool::note_seen(const Identity& seen) {
  const std::lock_guard lock(mutex_);
  if (seen.revision >= seen_.revision) seen_ = seen;
}

Result<void> ConnectionPool::check_there(const std::optional<os::FileStatus>& there) const {
  // Empty as while somebody copies another one over it. SQLite would remove the log beside it.
  if (there) return check_file(path_, *there);
  TRY_VOID(refuse_lost_database(path_));
  return fail(ErrorCode::unavailable,
              fmt::format("{} was removed while it was open; put it back, or start again", path_));
}

Result<void> ConnectionPool::open(Slot& slot, Database::Mode mode, Deadline deadline, bool& replaced) {
  TRY(const auto there, os::file_status(path_));
  TRY_VOID(check_there(there));
  slot.database = std::make_unique<Database>(path_, mode, clock_, deadline, generation_);
  auto opened = slot.database->open();
  if (opened) return opened;
  slot.database.reset();
  if (lacks_room(opened) && mode == Database::Mode::shared && gate_.is_inside()) {
    return open(slot, Database::Mode::alone, deadline, replaced);
  }
  const auto now = os::file_status(path_);
  replaced = now && *now && (*now)->id != there->id;
  return opened;
}

Result<void> ConnectionPool::use_slot(Slot& slot, Deadline deadline, const Use& use, bool& replaced) {
  if (!slot.database) TRY_VOID(open(slot, Database::Mode::shared, deadline, replaced));
  TRY(const bool current, slot.database->is_current());
  replaced = !current;
  if (replaced) return {};
  const bool has_lock = gate_.is_inside() && gate_.lock().is_held();
  Database::Expected expected{
      has_lock ? decode_commit_note(gate_.lock().noted(kCommitNoteBytes)) : read_commit_note(path_), {}};
  {
    const std::lock_guard lock(mutex_);
    if (broken_) return fail(*broken_);
    expected.seen = seen_;
  }
  slot.database->set_deadline(deadline);
  slot.database->expect(expected);
  auto used = use(*slot.database);
  if (used) return used;
  if (slot.database->disk_failed()) break_with(used.error());
  // The files may have been replaced since they were looked at.
  const auto still = slot.database->is_current();
  replaced = slot.database->met_other_history() || (still && !*still);
  return used;
}

void ConnectionPool::close_all(std::uint16_t generation) {
  const std::scoped_lock lock(first_.mutex, second_.mutex, mutex_);
  if (generation_ != generation) return;  // another thread has been here
  first_.database.reset();
  second_.database.reset();
  ++generation_;
  seen_ = {};
  broken_.reset();
}

Result<void> ConnectionPool::use_current(Deadline deadline, const std::function<Result<void>(bool& replaced)>& use) {
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
              fmt::format("the files of {} were replaced just now, and the time limit of the call ended before they "
                          "could be opened anew; try again",
                          path_));
}

Result<void> ConnectionPool::read(Deadline deadline, const Use& use) {
  const Use in_transaction = [&](Database& database) -> Result<void> {
    const ReadTransaction as_of_one_moment(database);
    TRY_VOID(as_of_one_moment.begun());
    TRY(const Identity now, check_identity(database));
    TRY_VOID(use(database));
    note_seen(now);
    return {};
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

Result<void> ConnectionPool::read_alone(Deadline deadline, const Use& use) {
  TRY_VOID(gate_.enter(deadline));
  auto result = write(deadline, use);
  before_leaving_gate();
  gate_.leave();
  return result;
}

Result<void> ConnectionPool::write(Deadline deadline, const Use& use) {
  TRY_VOID(gate_.follow_lock_file(deadline));
  return use_current(deadline, [&](bool& replaced) {
    const std::lock_guard lock(first_.mutex);
    // A disk that was mounted read-only when the file was opened may be writable by now.
    if (first_.database && first_.database->is_read_only()) first_.database.reset();
    return use_slot(first_, deadline, use, replaced);
  });
}

void ConnectionPool::before_leaving_gate() {
  const std::lock_guard lock(first_.mutex);
  if (first_.database && first_.database->mode() == Database::Mode::alone) first_.database.reset();
}

}  // namespace croft::store
