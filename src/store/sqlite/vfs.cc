#include "store/sqlite/vfs.h"

#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <sqlite3.h>

#include "base/assert.h"
#include "os/files.h"

namespace croft::store {
namespace {

constexpr const char* kName = "croft";
constexpr std::size_t kMemoryPageBytes = 4096;

/// With less than this free, other programs may take the last blocks while we allocate ours.
constexpr std::uint64_t kComfortableBytes = 1 << 20;

sqlite3_vfs* base_vfs = nullptr;

/// What we know of the files that are open, and the changed tables of methods by the original ones.
struct Registry {
  struct OpenFile {
    std::string index_path;  ///< of a database
    const sqlite3_io_methods* base = nullptr;
    std::optional<os::FileId> id;
    const volatile void* index_memory = nullptr;
  };
  /// The index of a database: SQLite maps it once for all connections of the process to one inode, and goes on with
  /// that mapping until the last of them is closed.
  struct Index {
    std::size_t databases = 0;
    std::optional<os::FileId> id;
  };
  std::mutex mutex;  ///< guards all below
  std::map<const sqlite3_file*, OpenFile> open;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Index> indexes;  ///< by device and inode of the database
  std::map<const sqlite3_io_methods*, sqlite3_io_methods> database_methods;
  std::map<const sqlite3_io_methods*, sqlite3_io_methods> log_methods;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

Registry::OpenFile known(const sqlite3_file* file) {
  const std::lock_guard lock(registry().mutex);
  const auto it = registry().open.find(file);
  CROFT_ASSERT(it != registry().open.end());
  return it->second;
}

std::pair<std::uint64_t, std::uint64_t> key_of(const os::FileId& id) { return {id.device, id.inode}; }

std::optional<os::FileId> id_at(const std::string& path) {
  const auto status = os::file_status(path);
  return status && *status ? std::optional((*status)->id) : std::nullopt;
}

void note_index(const sqlite3_file* file, const volatile void* memory) {
  const std::lock_guard lock(registry().mutex);
  Registry::OpenFile& ours = registry().open.at(file);
  ours.index_memory = memory;
  if (!ours.id) return;
  Registry::Index& index = registry().indexes[key_of(*ours.id)];
  if (!index.id) index.id = id_at(ours.index_path);
}

bool is_allocated(const std::string& path, std::uint64_t bytes) {
  const auto status = os::file_status(path);
  return status && *status && (*status)->allocated_bytes >= bytes;
}

/// Makes the kernel allocate the blocks behind shared memory, by stores that change nothing, also when other processes
/// write to it at the same time.
void touch(volatile void* memory, std::size_t bytes) {
  auto* const first = static_cast<volatile char*>(memory);
  for (std::size_t at = 0; at < bytes; at += kMemoryPageBytes) {
    __atomic_fetch_or(first + at, char{0}, __ATOMIC_SEQ_CST);
  }
}

int map_index(sqlite3_file* file, int region, int region_bytes, int may_extend, void volatile** memory) {
  const Registry::OpenFile ours = known(file);
  const int code = ours.base->xShmMap(file, region, region_bytes, may_extend, memory);
  if (code == SQLITE_OK && *memory != nullptr && region == 0) note_index(file, *memory);
  if (code != SQLITE_OK || *memory == nullptr || may_extend == 0) return code;
  const std::uint64_t needed = (static_cast<std::uint64_t>(region) + 1) * static_cast<std::uint64_t>(region_bytes);
  if (is_allocated(ours.index_path, needed)) return SQLITE_OK;
  if (os::available_bytes(ours.index_path) < kComfortableBytes) {
    *memory = nullptr;
    return SQLITE_IOERR_SHMSIZE;
  }
  touch(*memory, static_cast<std::size_t>(region_bytes));
  return SQLITE_OK;
}

int unmap_index(sqlite3_file* file, int remove) {
  const sqlite3_io_methods* const base = known(file).base;
  {
    const std::lock_guard lock(registry().mutex);
    registry().open.at(file).index_memory = nullptr;
  }
  return base->xShmUnmap(file, remove);
}

int write_file(sqlite3_file* file, const void* data, int count, sqlite3_int64 at) {
  errno = 0;
  const int code = known(file).base->xWrite(file, data, count, at);
  return code == SQLITE_IOERR_WRITE && errno == EFBIG ? SQLITE_FULL : code;
}

int close_file(sqlite3_file* file) {
  const Registry::OpenFile ours = known(file);
  const int code = ours.base->xClose(file);
  const std::lock_guard lock(registry().mutex);
  registry().open.erase(file);
  if (ours.index_path.empty() || !ours.id) return code;
  const auto index = registry().indexes.find(key_of(*ours.id));
  if (index != registry().indexes.end() && --index->second.databases == 0) registry().indexes.erase(index);
  return code;
}

void watch_file(sqlite3_file* file, const char* path, bool is_database, std::optional<os::FileId> id) {
  const sqlite3_io_methods* const base = file->pMethods;
  const std::lock_guard lock(registry().mutex);
  registry().open[file] = {is_database ? std::string(path) + "-shm" : "", base, id, nullptr};
  if (is_database && id) ++registry().indexes[key_of(*id)].databases;
  auto& tables = is_database ? registry().database_methods : registry().log_methods;
  const auto [table, is_new] = tables.try_emplace(base, *base);
  if (is_new) {
    table->second.xClose = close_file;
    table->second.xWrite = write_file;
    if (is_database) {
      table->second.xShmMap = map_index;
      table->second.xShmUnmap = unmap_index;
    }
  }
  file->pMethods = &table->second;
}

int open_file(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  const bool is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0 && path != nullptr;
  const bool is_log = (flags & SQLITE_OPEN_WAL) != 0 && path != nullptr;
  const auto before = is_database || is_log ? id_at(path) : std::nullopt;
  if (is_log && before) flags &= ~SQLITE_OPEN_CREATE;
  const int code = base_vfs->xOpen(base_vfs, path, file, flags, flags_out);
  if (code != SQLITE_OK || (!is_database && !is_log)) return code;
  const auto after = id_at(path);
  watch_file(file, path, is_database, !before || before == after ? after : std::nullopt);
  return code;
}

bool register_vfs() {
  CROFT_ASSERT(sqlite3_initialize() == SQLITE_OK);
  base_vfs = sqlite3_vfs_find(nullptr);
  CROFT_ASSERT(base_vfs != nullptr);
  static sqlite3_vfs ours = *base_vfs;
  ours.zName = kName;
  ours.pNext = nullptr;
  ours.xOpen = open_file;
  return sqlite3_vfs_register(&ours, /*makeDflt=*/0) == SQLITE_OK;
}

}  // namespace

const char* croft_vfs() {
  static const bool registered = register_vfs();
  CROFT_ASSERT(registered);
  return kName;
}

OpenedFiles opened_files(const sqlite3_file* database, const sqlite3_file* log) {
  OpenedFiles files;
  const std::lock_guard lock(registry().mutex);
  const auto& open = registry().open;
  if (const auto it = open.find(log); it != open.end()) files.log = it->second.id;
  const auto it = open.find(database);
  if (it == open.end()) return files;
  files.database = it->second.id;
  files.index_memory = it->second.index_memory;
  if (!it->second.id || files.index_memory == nullptr) return files;
  const auto index = registry().indexes.find(key_of(*it->second.id));
  if (index != registry().indexes.end()) files.index = index->second.id;
  return files;
}

}  // namespace croft::store
