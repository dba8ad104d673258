#include "os/file_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include <fmt/format.h>

#include "base/assert.h"
#include "os/directory.h"
#include "os/files.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// The first expiry ends the wait. The later ones only cover the case that the first came before the thread was asleep.
constexpr nanoseconds kTimerRepeat = std::chrono::milliseconds{5};
constexpr int kReopenMax = 100;

int timeout_signal() { return SIGRTMIN + 5; }

void install_empty_handler() {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART: the point is that flock returns EINTR
  sigemptyset(&action.sa_mask);
  CROFT_ASSERT(::sigaction(timeout_signal(), &action, nullptr) == 0);
}

timespec to_timespec(nanoseconds t) { return {.tv_sec = t / 1s, .tv_nsec = (t % 1s).count()}; }

/// While it lives, blocking calls of this thread return EINTR after `span`.
class WaitTimer {
 public:
  explicit WaitTimer(nanoseconds span) {
    static std::once_flag once;
    std::call_once(once, install_empty_handler);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, timeout_signal());
    CROFT_ASSERT(::pthread_sigmask(SIG_UNBLOCK, &signals, &mask_before_) == 0);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timeout_signal();
    event._sigev_un._tid = ::gettid();
    is_set_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (!is_set_) return;
    const itimerspec times{to_timespec(kTimerRepeat), to_timespec(std::max(span, nanoseconds{1}))};
    CROFT_ASSERT(::timer_settime(timer_, 0, &times, nullptr) == 0);
  }
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;
  ~WaitTimer() {
    if (is_set_) ::timer_delete(timer_);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  /// False when the kernel had no timer to give: then blocking is not safe.
  [[nodiscard]] bool is_set() const { return is_set_; }

 private:
  timer_t timer_{};
  sigset_t mask_before_{};
  bool is_set_ = false;
};

/// " by process 123", from the kernel's list of locks; empty when it does not say.
std::string holder_of(const struct stat& file) {
  constexpr std::size_t kLocksBytesMax = 1U << 20;
  const auto locks = read_file("/proc/locks", kLocksBytesMax);
  if (!locks) return "";
  const std::string_view pid = flock_holder(*locks, file.st_ino);
  return pid.empty() ? "" : fmt::format(" by process {}", pid);
}

Error timed_out(const std::string& path, int fd) {
  struct stat s {};
  const std::string holder = ::fstat(fd, &s) == 0 ? holder_of(s) : "";
  return {ErrorCode::deadline_exceeded,
          fmt::format("{} is locked{} and was not released in time; see what that process is doing", path, holder),
          {}};
}

}  // namespace

Result<void> FileLock::open() {
  // O_NONBLOCK: a FIFO put in place of the file must not hang us.
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | kFlags, options_.mode));
  // A file that is there can be locked where nothing can be created or written: for reading on a full disk.
  is_read_only_ = !file.is_open() && (errno == EROFS || errno == EACCES || errno == ENOSPC || errno == EDQUOT);
  if (is_read_only_) {
    const int why = errno;
    file = FileDescriptor(::open(path_.c_str(), O_RDONLY | kFlags));
    if (!file.is_open()) errno = why;
  }
  if (!file.is_open()) {
    return fail(options_.go_errors ? path_error("open", path_, errno) : system_error("open lock file", path_, errno));
  }
  // Words for a standard stream must not end in here, whatever streams the process was given.
  if (file.get() <= STDERR_FILENO) {
    file = FileDescriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!file.is_open()) return fail(system_error("open lock file", path_, errno));
  }
  struct stat s {};
  if (::fstat(file.get(), &s) != 0) return fail(system_error("look at lock file", path_, errno));
  if (!S_ISREG(s.st_mode)) {
    return fail(ErrorCode::invalid_argument, fmt::format("lock file {} is not a regular file; remove it", path_));
  }
  if (options_.one_name && s.st_nlink > 1) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("lock file {} has {} names, and what is written into it would be written to all of them; "
                            "remove the other names, or copy it without hard links",
                            path_, s.st_nlink));
  }
  file_ = std::move(file);
  return {};
}

Result<void> FileLock::wait(const Clock& clock, Deadline deadline) const {
  const Instant start = clock.now();
  if (deadline.passed(start)) return fail(timed_out(path_, file_.get()));
  constexpr nanoseconds kForever = std::chrono::hours{24 * 365};
  const WaitTimer timer(std::min(deadline.at_since_boot - start.since_boot, kForever));
  if (!timer.is_set()) return fail(system_error("create a timer to lock", path_, errno));
  while (::flock(file_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return fail(system_error("lock", path_, errno));
    if (deadline.passed(clock.now())) return fail(timed_out(path_, file_.get()));
  }
  return {};
}

Result<bool> FileLock::still_at_path() const {
  struct stat ours {};
  if (::fstat(file_.get(), &ours) != 0) return fail(system_error("look at lock file", path_, errno));
  TRY(const auto there, file_status(path_));
  return there && there->id == FileId{ours.st_dev, ours.st_ino};
}

Result<void> FileLock::lock_until(const Clock& clock, std::optional<Deadline> deadline, nanoseconds wait_max) {
  CROFT_ASSERT(!held_);
  for (int attempt = 0; attempt < kReopenMax; ++attempt) {
    if (!file_.is_open() || is_read_only_) TRY_VOID(open());
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return fail(system_error("lock", path_, errno));
      if (!deadline) deadline = Deadline::after(clock.now(), wait_max);
      TRY_VOID(wait(clock, *deadline));
    }
    const auto same = still_at_path();
    held_ = same && *same;
    if (held_) return {};
    file_ = FileDescriptor();  // closes, and with that lets go
    if (!same) return fail(same.error());
  }
  return fail(ErrorCode::unavailable,
              fmt::format("lock file {} is replaced again and again; stop what removes it", path_));
}

bool FileLock::is_at_path() const {
  CROFT_ASSERT(held_);
  const auto same = still_at_path();
  return same && *same;
}

void FileLock::note(std::string_view text, std::size_t at) const {
  CROFT_ASSERT(held_);
  // Best effort: a note that is behind means nothing.
  static_cast<void>(!::pwrite(file_.get(), text.data(), text.size(), static_cast<off_t>(at)));
}

std::string FileLock::noted(std::size_t bytes_max) const {
  CROFT_ASSERT(held_);
  std::string bytes(bytes_max, '\0');
  const ssize_t count = ::pread(file_.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return bytes;
}

void FileLock::unlock() {
  if (!held_) return;
  held_ = false;
  ::flock(file_.get(), LOCK_UN);
}

std::string_view flock_holder(std::string_view locks, std::uint64_t inode) {
  constexpr std::string_view kWrite = " WRITE ";
  const std::string end = fmt::format(":{} 0 EOF", inode);
  while (!locks.empty()) {
    const std::string_view line = locks.substr(0, locks.find('\n'));
    locks.remove_prefix(std::min(line.size() + 1, locks.size()));
    const std::size_t write = line.find(kWrite);
    // Those that wait have an arrow before the word.
    if (line.find(": FLOCK ") == line.npos || !line.ends_with(end) || write == line.npos) continue;
    const std::string_view rest = line.substr(write + kWrite.size());
    const std::string_view pid = rest.substr(0, rest.find(' '));
    // 0 and -1: nobody that can be named here.
    const bool is_number = !pid.empty() && pid.find_first_not_of("0123456789") == pid.npos;
    if (is_number && pid.front() != '0') return pid;
  }
  return {};
}

}  // namespace croft::os
