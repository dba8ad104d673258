#include "store/sqlite/vfs.h"

#include <map>
#include <mutex>
#include <string>

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

/// What we know of the database files that are open, and the changed tables of methods by the original ones.
struct Registry {
  struct OpenFile {
    std::string index_path;
    const sqlite3_io_methods* base = nullptr;
  };
  std::mutex mutex;  ///< guards all below
  std::map<const sqlite3_file*, OpenFile> open;
  std::map<const sqlite3_io_methods*, sqlite3_io_methods> tables;
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

int close_file(sqlite3_file* file) {
  const sqlite3_io_methods* const base = known(file).base;
  {
    const std::lock_guard lock(registry().mutex);
    registry().open.erase(file);
  }
  return base->xClose(file);
}

void watch_index_of(sqlite3_file* file, const char* path) {
  const sqlite3_io_methods* const base = file->pMethods;
  const std::lock_guard lock(registry().mutex);
  registry().open[file] = {std::string(path) + "-shm", base};
  const auto [table, is_new] = registry().tables.try_emplace(base, *base);
  if (is_new) {
    table->second.xShmMap = map_index;
    table->second.xClose = close_file;
  }
  file->pMethods = &table->second;
}

bool exists(const char* path) {
  const auto status = os::file_status(path);
  return status && status->has_value();
}

int open_file(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  if ((flags & SQLITE_OPEN_WAL) != 0 && path != nullptr && exists(path)) flags &= ~SQLITE_OPEN_CREATE;
  const int code = base_vfs->xOpen(base_vfs, path, file, flags, flags_out);
  if (code == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) != 0 && path != nullptr) watch_index_of(file, path);
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

}  // namespace croft::store
