#include "store/sqlite/open_store.h"

#include <fmt/format.h>

#include "os/file_lock.h"
#include "os/files.h"
#include "store/sqlite/database.h"
#include "store/sqlite/identity.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/transaction.h"

namespace croft::store {
namespace {

Error nothing_there(const std::string& path) {
  return {ErrorCode::not_found,
          fmt::format("no store at {}; \"croft pool create\" makes one, or correct the path", path),
          {}};
}

[[nodiscard]] Result<void> create_under_lock(const std::string& path, const Clock& clock, Deadline deadline) {
  os::FileLock lock(path + kLockSuffix, {.one_name = true});
  TRY_VOID(lock.lock(clock, deadline));
  TRY(const auto there, os::file_status(path));
  if (there) return {};  // another process was quicker
  TRY_VOID(refuse_lost_database(path));
  TRY_VOID(create_database(path));
  return make_room(path, clock, deadline);
}

}  // namespace

Result<void> check_file(const std::string& path, const os::FileStatus& status) {
  if (status.type != os::FileStatus::Type::regular) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("store {} is {}, not a regular file; correct the path", path,
                    status.type == os::FileStatus::Type::directory ? "a directory" : "a pipe, socket or device"));
  }
  if (status.bytes == 0) {
    return fail(ErrorCode::corrupt, fmt::format("store {} is empty: follow docs/runbooks/backup-and-restore.md to "
                                                "restore it, or remove it if no database was ever in it",
                                                path));
  }
  return refuse_mounted_file(path, status);
}

Result<void> refuse_mounted_file(const std::string& path, const os::FileStatus& status) {
  if (!status.is_mount_point) return {};
  return fail(ErrorCode::corrupt,
              fmt::format("store {} is mounted by itself, and would get a log and a lock of its own "
                          "here; mount the directory it is in",
                          path));
}

Result<void> make_room(const std::string& path, const Clock& clock, Deadline deadline) {
  Database database(path, Database::Mode::shared, clock, deadline);
  TRY_VOID(database.open());
  TRY_VOID(reserve_log(database));
  TRY_VOID(database.run("BEGIN IMMEDIATE"));
  TRY_VOID(reserve_pages(database, /*adds_data=*/true));
  TRY_VOID(database.begin_log_anew());
  return database.run("COMMIT");
}

Result<void> refuse_lost_database(const std::string& path) {
  TRY(const auto log, os::file_status(path + "-wal"));
  const auto note = read_commit_note(path);
  // Commits of the log would be applied to a new database.
  if (!note && !(log && log->bytes > 0)) return {};
  return fail(ErrorCode::corrupt,
              fmt::format("store {0} is gone, and its {1} says that it had commits. Follow "
                          "docs/runbooks/backup-and-restore.md, or, when none of its pods runs, remove {0}-wal and "
                          "{0}{2} to start with nothing",
                          path, note ? "lock file" : "log", kLockSuffix));
}

Result<std::string> find_or_create(const std::string& path, const SqliteOptions& options, const Clock& clock,
                                   Deadline deadline) {
  if (options.create) TRY_VOID(os::make_directories(os::directory_of(path)));
  auto resolved = os::resolved_path(path);
  if (!resolved && resolved.error().code == ErrorCode::not_found && !options.create) return fail(nothing_there(path));
  if (!resolved) return resolved;
  TRY(auto status, os::file_status(*resolved));
  if (!status && options.create) {
    TRY_VOID(create_under_lock(*resolved, clock, deadline));
    TRY(status, os::file_status(*resolved));
  }
  if (!status) {
    TRY_VOID(refuse_lost_database(*resolved));
    return fail(nothing_there(path));
  }
  TRY_VOID(check_file(*resolved, *status));
  return resolved;
}

}  // namespace croft::store
