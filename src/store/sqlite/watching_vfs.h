#pragma once

#include <atomic>
#include <cstdint>

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

/// Puts the watch under all stores of this process.
DiskWatch& install_watching_vfs();

}  // namespace croft::store
