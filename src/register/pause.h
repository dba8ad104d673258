#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace croft::core {

/// Why a register takes no writes: it is one end of `croft store copy` (docs/runbooks/migrate.md). It lies in the store
/// beside the records and is none of them.
struct Pause {
  enum class Phase : std::uint8_t {
    copying,  ///< it is being copied into `other`
    moved,    ///< it was copied into `other`, its successor, for good
    filling,  ///< a copy of `other` is being made in it
  } phase = Phase::copying;
  std::string other;  ///< the URL of the other store, which holds no secrets
  WallTime since{};   ///< when it was put; for people

  friend bool operator==(const Pause&, const Pause&) = default;
};

/// "copying", "moved", "filling".
[[nodiscard]] constexpr std::string_view name_of(Pause::Phase phase) {
  if (phase == Pause::Phase::moved) return "moved";
  return phase == Pause::Phase::filling ? "filling" : "copying";
}

}  // namespace croft::core
