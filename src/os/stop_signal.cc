#include "os/stop_signal.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <csignal>

namespace croft::os {
namespace {

sigset_t stop_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  return signals;
}

/// A wait is cut into pieces, so that a machine that slept goes on soon after, whichever clock the kernel waits by.
constexpr std::chrono::seconds kPiece{60};

}  // namespace

StopSignal::StopSignal() {
  const sigset_t signals = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
}

bool StopSignal::wait_for(std::chrono::nanoseconds span) {
  const sigset_t signals = stop_signals();
  const auto monotonic = [] {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto end = monotonic() + std::min<std::chrono::nanoseconds>(span, std::chrono::hours(24 * 365));
  while (!stopped_) {
    const auto left = std::clamp<std::chrono::nanoseconds>(end - monotonic(), std::chrono::nanoseconds(0), kPiece);
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timespec timeout{seconds.count(), (left - seconds).count()};
    stopped_ = ::sigtimedwait(&signals, nullptr, &timeout) > 0;
    if (left.count() == 0) break;
  }
  return stopped_;
}

}  // namespace croft::os
