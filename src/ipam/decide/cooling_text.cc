#include "ipam/decide/cooling_text.h"

#include <fmt/format.h>

#include "base/time_text.h"

namespace croft::core {

bool mostly_cools(std::uint64_t cooling, const net::Count& usable) {
  return net::Count(cooling) + net::Count(cooling) > usable;
}

std::string cooling_text(std::uint64_t cooling, const net::Count& usable, WallTime first_end) {
  const std::string at = rfc3339_rounded_up(first_end);
  if (!mostly_cools(cooling, usable)) return "the first cooling one is free again at " + at;
  const std::string which = usable <= net::Count(cooling) ? "all" : fmt::format("{} of", cooling);
  return fmt::format(
      "{} {} addresses cool down, and the first is free again at {}: unless that many pods ended just now, sandboxes "
      "fail once they have an address, and each try takes another; the main plugin's error is in the log of kubelet "
      "or the runtime",
      which, usable.to_string(), at);
}

}  // namespace croft::core
