#include "os/random.h"

#include <sys/random.h>

#include <cerrno>

#include "base/assert.h"

namespace croft::os {

std::uint64_t SystemRandom::next() {
  std::uint64_t value = 0;
  ssize_t got = 0;
  do {
    got = ::getrandom(&value, sizeof value, 0);
  } while (got < 0 && errno == EINTR);
  CROFT_ASSERT(got == static_cast<ssize_t>(sizeof value));  // requests up to 256 bytes are never cut (random(7))
  return value;
}

}  // namespace croft::os
