#include "store/sqlite/sqlite_error.h"

#include <cerrno>
#include <optional>

#include <fmt/format.h>

#include "os/files.h"
#include "os/system_error.h"
#include "store/sqlite/vfs.h"

namespace croft::store {
namespace {

constexpr int kPrimaryCodeMask = 0xff;

bool is_no_space(int system_errno) { return system_errno == ENOSPC || system_errno == EDQUOT; }

bool is_failed_sync(int code) {
  return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC || code == SQLITE_IOERR_TRUNCATE ||
         code == SQLITE_IOERR_CLOSE;
}

/// SQLite can't make its shared index file as large as it needs: a lone process on a full disk. The database can still
/// be used by one connection with the index in its own memory (Database::Mode::alone).
bool is_lack_of_room_for_index(int code, int system_errno) {
  if (code == SQLITE_IOERR_SHMSIZE) return true;
  const bool opening =
      code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_SHMMAP || (code & kPrimaryCodeMask) == SQLITE_CANTOPEN;
  return opening && is_no_space(system_errno);
}

Error full(std::string_view doing, const std::string& path) { return os::system_error(doing, path, ENOSPC); }

Error read_only(std::string_view doing, const std::string& path) {
  return os::system_error(doing, path, os::is_on_read_only_file_system(path) ? EROFS : EACCES);
}

/// The failures that the operating system explains better than SQLite's words.
std::optional<Error> explained_by_system(int code, int system_errno, std::string_view doing, const std::string& path) {
  const int primary = code & kPrimaryCodeMask;
  if (primary == SQLITE_FULL || is_lack_of_room_for_index(code, system_errno)) return full(doing, path);
  if (primary == SQLITE_READONLY || primary == SQLITE_PERM) return read_only(doing, path);
  if (primary != SQLITE_IOERR && primary != SQLITE_CANTOPEN) return std::nullopt;
  if (is_failed_sync(code) || system_errno == 0) return std::nullopt;
  return os::system_error(doing, path, system_errno);
}

ErrorCode error_code_of(int code) {
  switch (code & kPrimaryCodeMask) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
      return ErrorCode::corrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return ErrorCode::unavailable;
    default:
      return ErrorCode::internal;
  }
}

std::string_view remedy_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::corrupt:
      return "; nothing was changed: restore the store from a backup";
    case ErrorCode::unavailable:
      return "; another program uses the store without Croft's lock: stop it";
    case ErrorCode::internal:
      return "; look at the kernel log for errors of the disk";
    default:
      return "";
  }
}

}  // namespace

SqliteFailure failure_of(sqlite3* db, int code, std::string_view doing, const std::string& path) {
  SqliteFailure failure;
  if (code == kRefused) {
    const Refusal refusal = refusal_of_files();
    failure.damage = refusal.kind == Refusal::Kind::damage;
    failure.no_sum = refusal.kind == Refusal::Kind::no_sum;
    failure.error = {ErrorCode::corrupt, fmt::format("cannot {} {}: {}", doing, path, refusal.what), {}};
    return failure;
  }
  if ((code & kPrimaryCodeMask) == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM) {
    failure.error = {ErrorCode::unavailable,
                     fmt::format("cannot {} {}: out of memory (SQLite {}); give this process more", doing, path, code),
                     {}};
    return failure;
  }
  failure.damage = (code & kPrimaryCodeMask) == SQLITE_CORRUPT;
  const int system_errno = db == nullptr ? 0 : sqlite3_system_errno(db);
  failure.disk_failed = (code & kPrimaryCodeMask) == SQLITE_IOERR && !is_lack_of_room_for_index(code, system_errno) &&
                        (is_failed_sync(code) || !is_no_space(system_errno));
  const int primary = code & kPrimaryCodeMask;
  failure.refused = primary == SQLITE_FULL || primary == SQLITE_READONLY || primary == SQLITE_BUSY;
  if (auto explained = explained_by_system(code, system_errno, doing, path)) {
    failure.error = *std::move(explained);
    return failure;
  }
  const ErrorCode error_code = error_code_of(code);
  // What the layer of files says past SQLite is not the connection's last error.
  const bool is_last = db != nullptr && sqlite3_extended_errcode(db) == code;
  const char* words = is_last ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  failure.error = {
      error_code, fmt::format("cannot {} {}: {} (SQLite {}){}", doing, path, words, code, remedy_for(error_code)), {}};
  return failure;
}

}  // namespace croft::store
