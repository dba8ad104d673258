#include "store/sqlite/connection_pool.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "os/files.h"
#include "store/sqlite/commit_note.h"
#include "store/sqlite/open_store.h"
#include "store/sqlite/transaction.h"

namespace croft::store {
namespace {

/// Reading needs room for one thing only: the file of the log's index, when no other process has it open.
bool lacks_room(const Result<void>& read) { return !read && read.error().code == ErrorCode::storage_full; }

/// How often files that do not belong together are opened anew, and how long they stay closed in between: a second and
/// a half in all. Only who finds nobody else with the index open makes it anew (as SQLite does it), so those who come
/// one after the other must leave it alone for a while, and not all for the same while.
constexpr int kTries = 36;

std::chrono::microseconds pause_after(int tries, const Instant& now) {
  const int longest_us = std::min(tries, 10) * 8000;
  return std::chrono::microseconds{longest_us / 2 + now.since_boot / std::chrono::microseconds{1} % (longest_us / 2)};
}

}  // namespace

std::optional<Error> ConnectionPool::broken() const {
  const std::lock_guard lock(broken_mutex_);
  return broken_;
}

void ConnectionPool::break_with(const Error& why) {
  const std::lock_guard lock(broken_mutex_);
  if (broken_) return;
  if (why.code == ErrorCode::corrupt) {
    broken_ = why;
    return;
  }
  broken_ = Error{ErrorCode::unavailable,
                  fmt::format("{} is closed after a failure; look at the disk and start again: {}", path_, why.message),
                  {}};
}

CommitMark ConnectionPool::seen() const {
  const std::lock_guard lock(seen_mutex_);
  return seen_;
}

void ConnectionPool::note_seen(const CommitMark& seen) {
  const std::lock_guard lock(seen_mutex_);
  if (seen.revision > seen_.revision || seen_.register_id == 0) seen_ = seen;
}

void ConnectionPool::note_trouble(const Database& database, const Result<void>& used, Obstacle& met) {
  if (used) return;
  if (database.disk_failed()) break_with(used.error());
  if (database.met_other_history()) met = Obstacle::replaced;
  if (database.met_page_without_sum()) met = Obstacle::page_without_sum;
  if (database.met_damage()) note_damage(database.register_id(), true);
}

void ConnectionPool::note_damage(std::int64_t register_id, bool damaged) {
  if (register_id == 0) return;
  // Whoever holds a connection must not wait for the gate. When it is not free, the next one says it.
  const bool inside = gate_.is_inside();
  if (!inside && !gate_.enter(Deadline::after(clock_.now(), std::chrono::nanoseconds{0}))) return;
  if (gate_.lock().is_held() && gate_.lock().is_at_path()) {
    gate_.lock().note(encode_damage_note({register_id, 0, 0, damaged}), kDamageNoteAt);
  }
  if (!inside) gate_.leave();
}

Result<void> ConnectionPool::check_noted_damage(Database& database, const std::optional<CommitNote>& note) {
  if (!note || !note->damaged || note->register_id != database.register_id()) return {};
  TRY_VOID(verify_pages(database));
  note_damage(note->register_id, false);
  return {};
}

Result<void> ConnectionPool::check_there() const {
  TRY(const auto status, os::file_status(path_));
  // As while somebody copies another one over it. SQLite would remove the log beside it.
  if (status && status->bytes == 0) {
    return fail(ErrorCode::corrupt,
                fmt::format("{0} is empty; restore it with \"croft --store sqlite:{0} store restore BACKUP\"", path_));
  }
  if (status) return {};
  TRY_VOID(refuse_lost_database(path_));
  return fail(ErrorCode::unavailable,
              fmt::format("{} was removed while it was open; put it back, or start again", path_));
}

Result<void> ConnectionPool::open_sound(Database& database) {
  TRY_VOID(check_there());
  TRY(const auto note, open_checked(database));
  return check_noted_damage(database, note);
}

Result<void> ConnectionPool::open(Slot& slot, Database::Mode mode, Deadline deadline, Obstacle& met) {
  auto database = std::make_unique<Database>(path_, mode, clock_, deadline, generation_);
  if (gate_.lock_is_held_by_caller()) database->believe_copied_pages();
  auto opened = open_sound(*database);
  if (opened) {
    slot.database = std::move(database);
    return opened;
  }
  note_trouble(*database, opened, met);
  // A database and a log of two times, where both were exchanged just now.
  const auto there = os::file_status(path_);
  const auto file = database->file();
  if (there && *there && file && (*there)->id != *file) met = Obstacle::replaced;
  return opened;
}

Result<void> ConnectionPool::open_current(Slot& slot, Deadline deadline, Obstacle& met) {
  if (auto opened = open(slot, Database::Mode::shared, deadline, met); !opened) {
    if (!lacks_room(opened) || !gate_.is_inside()) return opened;
    TRY_VOID(open(slot, Database::Mode::alone, deadline, met));
  }
  TRY(const bool current, slot.database->is_current());
  if (!current) met = Obstacle::replaced;
  return {};
}

Result<void> ConnectionPool::use_slot(Slot& slot, Deadline deadline, const Use& use, Obstacle& met) {
  if (slot.database) {
    TRY(const bool current, slot.database->is_current());
    if (!current) met = Obstacle::replaced;
    if (!current) return {};
  }
  if (auto why = broken()) return fail(*std::move(why));
  if (slot.database) {
    slot.database->set_deadline(deadline);
  } else {
    TRY_VOID(open_current(slot, deadline, met));
    if (met != Obstacle::none) return {};
  }
  // What is looked at was committed before this use began, so it must be there, whatever others commit meanwhile.
  slot.database->expect_history(seen());
  auto used = use(*slot.database);
  if (used && !slot.database->has_looked_at_history()) used = slot.database->look_at_history();
  if (used) note_seen(slot.database->seen());
  note_trouble(*slot.database, used, met);
  // The next one reads the note, and finds out whether it still is so.
  if (!used && slot.database->met_damage()) slot.database.reset();
  return used;
}

void ConnectionPool::close_replaced() {
  const std::scoped_lock lock(first_.mutex, second_.mutex);
  const auto is_replaced = [](const Slot& slot) {
    if (!slot.database) return false;
    if (slot.database->met_other_history()) return true;
    const auto current = slot.database->is_current();
    return !current || !*current;
  };
  if (!is_replaced(first_) && !is_replaced(second_)) return;  // another thread has been here
  // All of them: SQLite keeps one mapping of the index for a whole process, until the last connection is closed.
  first_.database.reset();
  second_.database.reset();
  ++generation_;
  {
    const std::lock_guard seen_lock(seen_mutex_);
    seen_ = {};
  }
  const std::lock_guard broken_lock(broken_mutex_);
  broken_.reset();
}

Result<void> ConnectionPool::adopt_copied(Deadline deadline) {
  if (gate_.is_inside()) return adopt_copied_inside(deadline);
  TRY_VOID(gate_.enter(deadline));
  auto adopted = adopt_copied_inside(deadline);
  gate_.leave();
  return adopted;
}

Result<void> ConnectionPool::adopt_copied_inside(Deadline deadline) {
  TRY_VOID(gate_.follow_lock_file(deadline));
  const std::scoped_lock lock(first_.mutex, second_.mutex);
  first_.database.reset();
  second_.database.reset();
  auto adopted = adopt_copied_pages(path_, Database::Mode::shared, clock_, deadline);
  if (lacks_room(adopted)) adopted = adopt_copied_pages(path_, Database::Mode::alone, clock_, deadline);
  if (!adopted && adopted.error().code == ErrorCode::corrupt) {
    if (const auto note = read_commit_note(path_)) note_damage(note->register_id, true);
  }
  return adopted;
}

Result<void> ConnectionPool::use_current(Deadline deadline, const std::function<Result<void>(Obstacle& met)>& use) {
  for (int i = 0; i < kTries; ++i) {
    Obstacle met = Obstacle::none;
    auto used = use(met);
    if (met == Obstacle::none) return used;
    if (met == Obstacle::page_without_sum) {
      TRY_VOID(adopt_copied(deadline));
    } else {
      close_replaced();
    }
    const Instant now = clock_.now();
    if (deadline.passed(now)) {
      return fail(ErrorCode::deadline_exceeded,
                  fmt::format("the files of {} were replaced or changed just now, and the time limit of the call ended "
                              "before they could be opened anew; try again",
                              path_));
    }
    if (i > 0) std::this_thread::sleep_for(pause_after(i, now));
  }
  return fail(
      ErrorCode::corrupt,
      fmt::format("{0}, {0}-wal and {0}-shm do not belong together: one was changed in place while programs have "
                  "them open. Stop those (the agent, the controller), and see that nothing else writes there; "
                  "then \"croft check\" tells whether something is lost",
                  path_));
}

Result<void> ConnectionPool::read(Deadline deadline, const Use& use) {
  auto result = use_current(deadline, [&](Obstacle& met) { return read_on_some_slot(deadline, use, met); });
  return lacks_room(result) && !gate_.is_inside() ? read_alone(deadline, use) : result;
}

Result<void> ConnectionPool::read_on_some_slot(Deadline deadline, const Use& use, Obstacle& met) {
  if (std::unique_lock first(first_.mutex, std::try_to_lock); first.owns_lock()) {
    return use_slot(first_, deadline, use, met);
  }
  const std::lock_guard second(second_.mutex);
  return use_slot(second_, deadline, use, met);
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
  return use_current(deadline, [&](Obstacle& met) {
    const std::lock_guard lock(first_.mutex);
    // A disk that was mounted read-only when the file was opened may be writable by now.
    if (first_.database && first_.database->is_read_only()) first_.database.reset();
    return use_slot(first_, deadline, use, met);
  });
}

void ConnectionPool::before_leaving_gate() {
  const std::lock_guard lock(first_.mutex);
  if (first_.database && first_.database->mode() == Database::Mode::alone) first_.database.reset();
}

}  // namespace croft::store
