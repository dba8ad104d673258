#include "store/sqlite/commit_mark.h"

#include <fmt/format.h>

#include "store/sqlite/database.h"

namespace croft::store {
namespace {

/// The upper half of a mark is the end of its revision, the lower half is random.
constexpr unsigned kRandomBits = 32;
constexpr std::int64_t kRevisionMask = 0x7fffffff;

std::int64_t revision_of(std::int64_t mark) { return mark >> kRandomBits; }
std::int64_t end_of(std::int64_t revision) { return revision & kRevisionMask; }

/// `there`: what is in the place of the mark that was seen.
bool goes_on_from(const CommitMark& newest, const CommitMark& seen, std::int64_t there) {
  if (seen.register_id != 0 && newest.register_id != seen.register_id) return false;
  if (newest.revision < seen.revision) return false;
  if (seen.mark == 0 || there == seen.mark) return true;
  return there != 0 && revision_of(there) > end_of(seen.revision);
}

}  // namespace

Result<CommitMark> newest_commit(Database& database, const CommitMark& seen) {
  CommitMark newest;
  TRY(const auto row, database.prepare(Sql::newest_commit));
  row->bind(1, seen.revision);
  TRY(const bool found, row->step());
  if (!found) return fail(database.counter_is_missing());
  newest.revision = row->number(0);
  newest.register_id = row->number(1);
  newest.mark = row->number(2);
  if (revision_of(newest.mark) != end_of(newest.revision)) newest.mark = 0;
  if (goes_on_from(newest, seen, row->number(3))) return newest;
  return fail(ErrorCode::conflict,
              fmt::format("{} was put back to an older state, or is another register than before", database.path()));
}

Result<CommitMark> leave_mark(Database& database, std::int64_t revision) {
  TRY(const auto row, database.prepare(Sql::leave_mark));
  row->bind(1, revision);
  TRY(const bool left, row->step());
  if (!left) return fail(database.counter_is_missing());
  return CommitMark{database.register_id(), revision, row->number(0)};
}

}  // namespace croft::store
