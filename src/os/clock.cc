#include "os/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/hex.h"
#include "os/file_descriptor.h"

namespace croft::os {
namespace {

constexpr const char* kBootIdPath = "/proc/sys/kernel/random/boot_id";
constexpr std::size_t kBootIdTextBytes = 36;  // 8-4-4-4-12 hex digits

std::chrono::nanoseconds read_clock(clockid_t id) {
  timespec t{};
  CROFT_ASSERT(::clock_gettime(id, &t) == 0);
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}

BootId read_boot_id() {
  const FileDescriptor file(::open(kBootIdPath, O_RDONLY | O_CLOEXEC));
  std::array<char, kBootIdTextBytes> text{};
  if (!file.is_open() || ::read(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return {};
  return parse_boot_id({text.data(), text.size()});
}

/// The size of one request that is never cut, 256 bytes (random(7)).
constexpr std::size_t kDrawsMax = 32;
/// A plugin draws the 16 bytes of a write token and ends.
constexpr std::size_t kFirstDraws = 2;

/// The numbers that a thread has not given out: the first `left`.
struct Kept {
  std::array<std::uint64_t, kDrawsMax> numbers;
  std::size_t left;
  std::size_t asked;
};
constinit thread_local Kept kept{};

/// In the child of a fork, in its one thread.
void forget_parents() { kept = Kept{}; }

void ask_kernel() {
  // Where the child can't be made to forget, nothing is kept that it could have.
  static const bool kForgetsInChild = ::pthread_atfork(nullptr, nullptr, forget_parents) == 0;
  kept.asked = kForgetsInChild ? std::clamp(kept.asked * 4, kFirstDraws, kDrawsMax) : 1;
  const std::size_t bytes = kept.asked * sizeof(std::uint64_t);
  ssize_t got = 0;
  do {
    got = ::getrandom(kept.numbers.data(), bytes, 0);
  } while (got < 0 && errno == EINTR);
  CROFT_ASSERT(got == static_cast<ssize_t>(bytes));
  kept.left = kept.asked;
}

}  // namespace

BootId parse_boot_id(std::string_view text) {
  std::string hex(text);
  std::erase(hex, '-');
  const auto bytes = bytes_of_hex<sizeof(BootId::bytes)>(hex);
  return bytes ? BootId{*bytes} : BootId{};
}

Instant SystemClock::now() const {
  std::call_once(boot_read_, [this] { boot_ = read_boot_id(); });
  return {WallTime(read_clock(CLOCK_REALTIME)), read_clock(CLOCK_BOOTTIME), boot_};
}

std::uint64_t SystemRandom::next() {
  if (kept.left == 0) ask_kernel();
  --kept.left;
  return std::exchange(kept.numbers[kept.left], 0);
}

}  // namespace croft::os
