#include "store/sqlite/sqlite_error.h"

#include <cerrno>

#include <fmt/format.h>

#include "os/files.h"
#include "os/system_error.h"

namespace croft::store {
namespace {

bool is_no_space(int system_errno) { return system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG; }

bool is_failed_sync(int code) {
  return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC || code == SQLITE_IOERR_TRUNCATE ||
         code == SQLITE_IOERR_CLOSE;
}

/// SQLite can't make its shared index file as large as it needs: a lone process on a full disk. The database can still
/// be used by one connection with the index in its own memory (Database::Mode::alone).
bool is_lack_of_room_for_index(int code, int system_errno) {
  if (code == SQLITE_IOERR_SHMSIZE) return true;
  const bool opening = code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_SHMMAP || (code & 0xff) == SQLITE_CANTOPEN;
  return opening && is_no_space(system_errno);
}

struct Meaning {
  ErrorCode code;
  const char* remedy;
};

Meaning meaning_of(int primary) {
  switch (primary) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
      return {ErrorCode::corrupt, "nothing was changed: follow docs/runbooks/backup-and-restore.md"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return {ErrorCode::unavailable, "another program uses the store without Croft's lock: stop it"};
    case SQLITE_NOMEM:
      return {ErrorCode::unavailable, "give this process more memory"};
    default:
      return {ErrorCode::internal, "look at the kernel log for errors of the disk"};
  }
}

}  // namespace

SqliteFailure failure_of(sqlite3* db, int code, std::string_view doing, const std::string& path) {
  int primary = code & 0xff;
  if (code == SQLITE_IOERR_NOMEM) primary = SQLITE_NOMEM;
  if (code == SQLITE_IOERR_SHORT_READ) primary = SQLITE_CORRUPT;  // the file ends too early: no call has failed
  const int system_errno = db == nullptr ? 0 : sqlite3_system_errno(db);
  const bool lacks_index = is_lack_of_room_for_index(code, system_errno);
  SqliteFailure failure;
  failure.disk_failed = primary == SQLITE_IOERR && !lacks_index && (is_failed_sync(code) || !is_no_space(system_errno));
  failure.refused = primary == SQLITE_FULL || primary == SQLITE_READONLY || primary == SQLITE_BUSY;
  // The operating system explains some better than SQLite's words.
  const bool is_of_system = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
  if (primary == SQLITE_FULL || lacks_index) {
    failure.error = os::system_error(doing, path, ENOSPC);
  } else if (primary == SQLITE_READONLY || primary == SQLITE_PERM) {
    failure.error = os::system_error(doing, path, os::is_on_read_only_file_system(path) ? EROFS : EACCES);
  } else if (is_of_system && !is_failed_sync(code) && system_errno != 0) {
    failure.error = os::system_error(doing, path, system_errno);
  } else {
    const Meaning meaning = meaning_of(primary);
    failure.error = {
        meaning.code,
        fmt::format("cannot {} {}: {} (SQLite {}); {}", doing, path, sqlite3_errstr(code), code, meaning.remedy),
        {}};
  }
  return failure;
}

}  // namespace croft::store
