#include "store/sqlite/connection_pool.h"

#include <fmt/format.h>

#include "base/assert.h"

namespace croft::store {
namespace {

/// Reading needs room for one thing only: the file of the log's index, when no other process has it open.
bool lacks_room(const Result<void>& read) { return !read && read.error().code == ErrorCode::storage_full; }

}  // namespace

std::optional<Error> ConnectionPool::broken() const {
  const std::lock_guard lock(broken_mutex_);
  return broken_;
}

void ConnectionPool::break_with(const Error& why) {
  const std::lock_guard lock(broken_mutex_);
  if (broken_) return;
  broken_ = Error{ErrorCode::unavailable,
                  fmt::format("{} is closed after a failure; look at the disk and start again: {}", path_, why.message),
                  {}};
}

void ConnectionPool::note_trouble(const Slot& slot, const Result<void>& used) {
  if (!used && slot.database && slot.database->disk_failed()) break_with(used.error());
}

Result<void> ConnectionPool::open(Slot& slot, Database::Mode mode, Deadline deadline) {
  auto database = std::make_unique<Database>(path_, mode, clock_, deadline);
  TRY_VOID(database->open());
  slot.database = std::move(database);
  return {};
}

Result<void> ConnectionPool::use_slot(Slot& slot, Deadline deadline, const Use& use) {
  if (auto why = broken()) return fail(*std::move(why));
  if (slot.database) {
    slot.database->set_deadline(deadline);
  } else if (auto opened = open(slot, Database::Mode::shared, deadline); !opened) {
    if (!lacks_room(opened) || !gate_.is_inside()) return opened;
    TRY_VOID(open(slot, Database::Mode::alone, deadline));
  }
  auto used = use(*slot.database);
  note_trouble(slot, used);
  return used;
}

Result<void> ConnectionPool::read(Deadline deadline, const Use& use) {
  auto result = read_on_some_slot(deadline, use);
  return lacks_room(result) && !gate_.is_inside() ? read_alone(deadline, use) : result;
}

Result<void> ConnectionPool::read_on_some_slot(Deadline deadline, const Use& use) {
  if (std::unique_lock first(first_.mutex, std::try_to_lock); first.owns_lock()) return use_slot(first_, deadline, use);
  const std::lock_guard second(second_.mutex);
  return use_slot(second_, deadline, use);
}

Result<void> ConnectionPool::read_alone(Deadline deadline, const Use& use) {
  TRY_VOID(gate_.enter(deadline));
  auto result = write(deadline, use);
  before_leaving_gate();
  gate_.leave();
  return result;
}

Result<void> ConnectionPool::write(Deadline deadline, const Use& use) {
  CROFT_ASSERT(gate_.is_inside());
  const std::lock_guard lock(first_.mutex);
  // A disk that was mounted read-only when the file was opened may be writable by now.
  if (first_.database && first_.database->is_read_only()) first_.database.reset();
  return use_slot(first_, deadline, use);
}

void ConnectionPool::before_leaving_gate() {
  const std::lock_guard lock(first_.mutex);
  if (first_.database && first_.database->mode() == Database::Mode::alone) first_.database.reset();
}

}  // namespace croft::store
