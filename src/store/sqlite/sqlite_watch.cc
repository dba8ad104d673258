#include "store/sqlite/sqlite_watch.h"

#include <algorithm>

#include <fmt/format.h>

#include "store/sqlite/change_table.h"

namespace croft::store {
namespace {

[[nodiscard]] Result<Revision> last_of_known(Database& database, Revision position) {
  TRY(const KnownChanges known, known_changes(database));
  if (known.reach_back_to(position)) return known.last;
  return fail(ErrorCode::too_old,
              fmt::format("{}: the changes after revision {} are no longer known (known: those after "
                          "{}, up to {}); read everything again",
                          database.path(), position.value, known.floor.value, known.last.value));
}

}  // namespace

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

}  // namespace croft::store
