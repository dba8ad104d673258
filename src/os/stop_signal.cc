#include "os/stop_signal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "base/assert.h"
#include "os/process.h"

namespace croft::os {
namespace {

/// A wait is cut into pieces, so that a machine that slept goes on soon after, whichever clock the kernel waits by.
constexpr std::chrono::seconds kPiece{60};

bool is_readable_within(int descriptor, int timeout_ms) {
  pollfd wanted{descriptor, POLLIN, 0};
  while (::poll(&wanted, 1, timeout_ms) < 0 && errno == EINTR) {
  }
  return wanted.revents != 0;
}

}  // namespace

void ask_to_end() { ::kill(::getpid(), SIGTERM); }

StopSignal::StopSignal(std::chrono::milliseconds patience) : patience_(patience) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  static_cast<void>(std::signal(SIGHUP, SIG_IGN));
  signals_ = FileDescriptor(::signalfd(-1, &signals, SFD_CLOEXEC));
  ended_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  CROFT_ASSERT(signals_.is_open() && ended_.is_open());
  thread_ = std::thread([this] { run(); });
}

StopSignal::~StopSignal() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(ended_.get(), &one, sizeof one));
  thread_.join();
}

void StopSignal::run() {
  std::array<pollfd, 2> wanted{pollfd{signals_.get(), POLLIN, 0}, pollfd{ended_.get(), POLLIN, 0}};
  while (wanted[0].revents == 0 && wanted[1].revents == 0) static_cast<void>(::poll(wanted.data(), wanted.size(), -1));
  if (wanted[1].revents != 0) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  if (is_readable_within(ended_.get(), static_cast<int>(patience_.count()))) return;
  const std::lock_guard lock(mutex_);
  if (last_act_) last_act_();
  if (cuts_off_ == CutsOff::reading) end_process(0);
  static_cast<void>(write_standard_error("told to stop; what is under way takes too long and is cut off\n"));
  end_process(1);
}

void StopSignal::before_forced_end(std::function<void()> last_act, CutsOff what) {
  const std::lock_guard lock(mutex_);
  last_act_ = std::move(last_act);
  cuts_off_ = what;
}

bool StopSignal::wait_for(std::chrono::nanoseconds span) {
  const auto since_boot = [] {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto end = since_boot() + std::min<std::chrono::nanoseconds>(span, std::chrono::hours(24 * 365));
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const auto left = std::clamp<std::chrono::nanoseconds>(end - since_boot(), std::chrono::nanoseconds(0), kPiece);
    if (left.count() == 0) break;
    wake_.wait_for(lock, left, [&] { return stopped_; });
  }
  return stopped_;
}

}  // namespace croft::os
