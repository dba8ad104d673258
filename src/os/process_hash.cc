#include "os/process_hash.h"

#include <array>

#include "base/keyed_hash.h"
#include "os/random.h"

namespace croft::os {

std::uint64_t process_hash(std::string_view bytes) {
  static const std::array<std::uint64_t, 2> key = [] {
    SystemRandom random;
    return std::array{random.next(), random.next()};
  }();
  return keyed_hash(key[0], key[1], bytes);
}

}  // namespace croft::os
