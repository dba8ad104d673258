#pragma once

#include <cstdint>

#include "base/result.h"

namespace croft::store {

class Database;

/// What one connection has seen of a register's commits: the last one, and the random mark that it left. Each write
/// transaction leaves one beside the last revision, in the place of an older one (docs/formats/records.md). So an older
/// state of the register that was written over the files in place is found by who has seen a newer one, also where as
/// much was committed to it since: the mark of what was seen is not in its place.
struct CommitMark {
  std::int64_t register_id = 0;  ///< 0: not known yet
  std::int64_t revision = 0;     ///< 0: nothing was seen
  std::int64_t mark = 0;         ///< 0: it left none, as one of an older program
};

/// How many are kept: within so many transactions of others nothing that was seen is out of sight. All counters must
/// find room in one page (raw_counters.h).
inline constexpr std::int64_t kCommitMarks = 40;

/// The newest commit. Error: conflict, where the register has not the one in its history that was `seen`. One of which
/// nothing is known any more, as others' marks are in its place, is taken for seen.
[[nodiscard]] Result<CommitMark> newest_commit(Database& database, const CommitMark& seen);

/// Leaves the mark of the commit with this last revision, inside its transaction.
[[nodiscard]] Result<CommitMark> leave_mark(Database& database, std::int64_t revision);

}  // namespace croft::store
