#include "store/sqlite/room.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "os/system_error.h"
#include "store/sqlite/schema.h"

namespace croft::store {
namespace {

/// The database file grows in steps of this.
constexpr int kChunkBytes = static_cast<int>(kSparePages * kPageBytes);

Error no_room(const Database& database) { return os::system_error("make room in", database.path(), ENOSPC); }

/// The size of a file of SQLite's; negative when it can't be had.
std::int64_t bytes_of(sqlite3_file* file) {
  sqlite3_int64 bytes = -1;
  if (file == nullptr || file->pMethods->xFileSize(file, &bytes) != SQLITE_OK) return -1;
  return bytes;
}

/// Allocates blocks up to `bytes`, rounded up to whole chunks.
bool extend(sqlite3_file* file, std::int64_t bytes) {
  int chunk = kChunkBytes;
  sqlite3_int64 wanted = bytes;
  return file != nullptr && file->pMethods->xFileControl(file, SQLITE_FCNTL_CHUNK_SIZE, &chunk) == SQLITE_OK &&
         file->pMethods->xFileControl(file, SQLITE_FCNTL_SIZE_HINT, &wanted) == SQLITE_OK && bytes_of(file) >= bytes;
}

}  // namespace

Result<void> reserve_log(Database& database) {
  sqlite3_file* const log = database.log_file();
  std::int64_t bytes = bytes_of(log);
  if (bytes >= kLogBytesMin) return {};
  if (bytes < 0) return fail(no_room(database));
  const std::vector<char> zeros(1U << 16, '\0');
  for (; bytes < kLogBytesMin; bytes += static_cast<std::int64_t>(zeros.size())) {
    const auto count = static_cast<int>(std::min<std::int64_t>(kLogBytesMin - bytes, std::ssize(zeros)));
    if (log->pMethods->xWrite(log, zeros.data(), count, bytes) != SQLITE_OK) return fail(no_room(database));
  }
  const int synced = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
  if (synced != SQLITE_OK) return fail(database.failure(synced, "sync the log of"));
  return {};
}

Result<void> reserve_pages(Database& database, bool adds_data) {
  TRY(const std::int64_t pages, database.number("PRAGMA page_count"));
  TRY(const std::int64_t unused, database.number("PRAGMA freelist_count"));
  sqlite3_file* const file = database.database_file();
  const std::int64_t allocated = bytes_of(file) / kPageBytes;
  const bool has_pages = allocated >= pages;
  if (has_pages && unused + allocated - pages >= kSparePages) return {};
  if (extend(file, (pages + std::max<std::int64_t>(kSparePages - unused, 0)) * kPageBytes)) return {};
  if (has_pages && !adds_data) return {};
  return fail(no_room(database));
}

}  // namespace croft::store
