#include "os/random.h"

#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/assert.h"

namespace croft::os {
namespace {

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

std::uint64_t SystemRandom::next() {
  if (kept.left == 0) ask_kernel();
  --kept.left;
  return std::exchange(kept.numbers[kept.left], 0);
}

}  // namespace croft::os
