#include "base/net/count.h"

#include <array>

#include <fmt/format.h>

namespace croft::net {

double Count::as_double() const {
  constexpr double kTwoTo64 = 18446744073709551616.0;
  return is_whole_ ? kTwoTo64 * kTwoTo64 : static_cast<double>(low_.hi) * kTwoTo64 + static_cast<double>(low_.lo);
}

std::string Count::to_string() const {
  // Long division by 10^9, most significant limb first.
  constexpr std::uint64_t kBase = 1'000'000'000;
  std::array<std::uint64_t, 5> limbs = {is_whole_ ? 1U : 0U, low_.hi >> 32, low_.hi & 0xffff'ffffU, low_.lo >> 32,
                                        low_.lo & 0xffff'ffffU};
  std::string text;
  for (bool more = true; more;) {
    std::uint64_t rest = 0;
    more = false;
    for (std::uint64_t& limb : limbs) {
      const std::uint64_t part = rest << 32 | limb;
      limb = part / kBase;
      rest = part % kBase;
      more = more || limb != 0;
    }
    text.insert(0, more ? fmt::format("{:09}", rest) : std::to_string(rest));
  }
  return text;
}

}  // namespace croft::net
