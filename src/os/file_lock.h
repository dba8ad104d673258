#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "os/file_descriptor.h"

namespace croft::os {

/// An exclusive lock between processes on a side file (flock), with a deadline. The file stays and is never removed by
/// us; it is empty, or has the note of who last had the lock. When somebody removes or replaces it, the next lock()
/// notices and goes with the new file, so that two who lock the same path after that exclude each other.
///
/// One FileLock serves one thread at a time; two FileLocks on one path exclude each other also within a process. The
/// kernel drops the lock when the process dies. A waiter sleeps in the kernel, in the order of arrival; at its deadline
/// a timer signal to its thread ends the wait. The signal is SIGRTMIN + 5 and belongs to this class. Its handler does
/// nothing, and no code of the process may block it for good in other threads or wait for it.
class FileLock {
 public:
  /// How the file is made when it is missing, and opened.
  struct Options {
    unsigned mode = 0600;
    bool go_errors = false;  ///< errors of opening as os::path_error words them
    /// Refuses a file with a second name: for locks that something is written into.
    bool one_name = false;
  };

  explicit FileLock(std::string path) : FileLock(std::move(path), Options()) {}
  FileLock(std::string path, Options options) : path_(std::move(path)), options_(options) {}
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() { unlock(); }

  /// Waits for the lock, creating the file when it is missing. It must not be held.
  /// Errors: deadline_exceeded, naming the process that has it where that can be found out; else as system_error maps
  /// them (read_only, permission_denied, not_found for the directory); invalid_argument when the path is no regular
  /// file.
  [[nodiscard]] Result<void> lock(const Clock& clock, Deadline deadline) { return lock_until(clock, deadline, {}); }
  /// The same with a deadline that begins when it turns out that somebody has the lock: a lock that is free costs no
  /// look at the clock.
  [[nodiscard]] Result<void> lock_within(const Clock& clock, std::chrono::nanoseconds wait_max) {
    return lock_until(clock, std::nullopt, wait_max);
  }

  /// Lets go; nothing when it is not held. A child forked meanwhile does not keep the lock.
  void unlock();

  [[nodiscard]] bool is_held() const { return held_; }
  /// The file at the path is still the one that is locked; false too when it can't be looked at. The lock must be held.
  [[nodiscard]] bool is_at_path() const;

  /// Puts a note at the front of the file, or so many bytes behind it, without sync and as well as it can be done.
  /// Notes are of one length, and short enough not to be torn. The lock must be held.
  void note(std::string_view text, std::size_t at = 0) const;
  /// The first bytes of the file, up to `bytes_max`. The lock must be held.
  [[nodiscard]] std::string noted(std::size_t bytes_max) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<void> wait(const Clock& clock, Deadline deadline) const;
  [[nodiscard]] Result<void> lock_until(const Clock& clock, std::optional<Deadline> deadline,
                                        std::chrono::nanoseconds wait_max);
  [[nodiscard]] Result<bool> still_at_path() const;

  std::string path_;
  Options options_;
  FileDescriptor file_;
  bool is_read_only_ = false;  ///< it could not be opened for notes; each lock() tries again
  bool held_ = false;
};

/// The decimal id of the process that holds a file flock(2)ed for writing, by the text of /proc/locks
/// (proc_locks(5)). Empty when it does not say. For files of one inode number on several devices the first counts: good
/// for a message only. The view is into `locks`.
[[nodiscard]] std::string_view flock_holder(std::string_view locks, std::uint64_t inode);

}  // namespace croft::os
