#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include <sqlite3.h>

#include "base/assert.h"

namespace croft::store {

/// Counts what SQLite asks of the disk, and makes it fail on request. For tests and benchmarks: they call
/// install_watching_vfs() before the first store is opened. One for the whole process.
struct DiskWatch {
  std::atomic<std::uint64_t> syncs{0};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> bytes_written{0};
  /// One sync in this many reports success and does nothing: a disk that lies. 1: all of them; 0: none.
  std::atomic<std::uint64_t> skip_one_sync_in{0};
  /// Every sync fails with an I/O error; what was written stays in the page cache.
  std::atomic<bool> fail_syncs{false};
  /// Every write fails with an I/O error.
  std::atomic<bool> fail_writes{false};
  /// Nanoseconds that each sync takes longer.
  std::atomic<std::int64_t> sync_delay{0};
};

namespace watched_disk {

inline DiskWatch watch;
inline sqlite3_vfs* base_vfs = nullptr;
/// SQLite's Unix layer has a few tables of methods for its files, which share these two.
inline sqlite3_io_methods base_methods{};

inline int sync(sqlite3_file* file, int flags) {
  const std::uint64_t number = ++watch.syncs;
  if (const auto delay = watch.sync_delay.load(); delay > 0)
    std::this_thread::sleep_for(std::chrono::nanoseconds{delay});
  if (watch.fail_syncs) return SQLITE_IOERR_FSYNC;
  const std::uint64_t skip = watch.skip_one_sync_in;
  return skip != 0 && number % skip == 0 ? SQLITE_OK : base_methods.xSync(file, flags);
}

inline int write(sqlite3_file* file, const void* data, int count, sqlite3_int64 offset) {
  ++watch.writes;
  watch.bytes_written += static_cast<std::uint64_t>(count);
  if (watch.fail_writes) return SQLITE_IOERR_WRITE;
  return base_methods.xWrite(file, data, count, offset);
}

/// The same table with our sync and write.
inline const sqlite3_io_methods* watched(const sqlite3_io_methods* methods) {
  static std::mutex mutex;
  static std::map<const sqlite3_io_methods*, sqlite3_io_methods> tables;
  const std::lock_guard lock(mutex);
  if (tables.empty()) base_methods = *methods;
  CROFT_ASSERT(methods->xSync == base_methods.xSync && methods->xWrite == base_methods.xWrite);
  const auto [entry, is_new] = tables.try_emplace(methods, *methods);
  if (is_new) {
    entry->second.xSync = sync;
    entry->second.xWrite = write;
  }
  return &entry->second;
}

inline int open_file(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  const int code = base_vfs->xOpen(base_vfs, path, file, flags, flags_out);
  if (code == SQLITE_OK) file->pMethods = watched(file->pMethods);
  return code;
}

inline bool install() {
  CROFT_ASSERT(sqlite3_initialize() == SQLITE_OK);
  base_vfs = sqlite3_vfs_find(nullptr);
  CROFT_ASSERT(base_vfs != nullptr);
  static sqlite3_vfs ours = *base_vfs;
  ours.zName = "croft-watching";
  ours.pNext = nullptr;
  ours.xOpen = open_file;
  return sqlite3_vfs_register(&ours, /*makeDflt=*/1) == SQLITE_OK;
}

}  // namespace watched_disk

/// Puts the watch under all stores of this process.
inline DiskWatch& install_watching_vfs() {
  static const bool kInstalled = watched_disk::install();
  CROFT_ASSERT(kInstalled);
  return watched_disk::watch;
}

}  // namespace croft::store
