#include "store/pause.h"

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/time_text.h"

namespace croft::store {

Error paused(const core::Pause& pause) {
  using Phase = core::Pause::Phase;
  // A URL may be longer than a line of a log should be.
  const std::string other = net::echo(pause.other);
  const std::string since = rfc3339_exact(pause.since);
  switch (pause.phase) {
    case Phase::copying:
      return {
          ErrorCode::unavailable,
          fmt::format("the register is being copied to {} since {} and takes no writes: finish it with `croft store "
                      "copy`, or give it up with `croft store resume`",
                      other, since),
          {}};
    case Phase::moved:
      return {ErrorCode::unavailable,
              fmt::format("the register was moved to {} at {}: name that store where this one is named (ipam.store, "
                          "--store)",
                          other, since),
              {}};
    case Phase::filling:
      break;
  }
  return {ErrorCode::unavailable,
          fmt::format("the register is being filled from {} since {}: finish it with `croft store copy`", other, since),
          {}};
}

}  // namespace croft::store
