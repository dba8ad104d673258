#pragma once

#include "base/result.h"
#include "store/sqlite/database.h"

namespace croft::store {

// Room on the disk is taken before it is needed, so that a release succeeds on a full disk. Both need the gate.
//
// - The log is kept at kLogBytesMin or more, written full of zeros once and then overwritten from the start after each
//   checkpoint: a commit neither needs new blocks nor, once they have been written, changes the file's metadata.
// - The database file is kept kSparePages larger than its content needs. Commits that add data leave that reserve,
// others
//   may use it: a release with a cooldown adds about a page, and a full node has 250 pods.
// - Every page that a commit adds is allocated in the file before the commit: a checkpoint never runs out of space, so
//   the log never grows because it can't be emptied.

inline constexpr std::int64_t kLogBytesMin = 2 << 20;
inline constexpr std::int64_t kSparePages = 384;

/// A commit that adds no more than this to the stored bytes may use the reserve: a release replaces the holder of an
/// address by a note of its cooldown and may add a vacancy.
inline constexpr std::int64_t kReleaseBytesMax = 512;

/// Brings the log to its size. Error: storage_full; a commit that does not add data may go on nevertheless.
[[nodiscard]] Result<void> reserve_log(Database& database);

/// Inside a write transaction, before its commit: room for its pages, and for the reserve. Error: storage_full.
[[nodiscard]] Result<void> reserve_pages(Database& database, bool adds_data);

}  // namespace croft::store
