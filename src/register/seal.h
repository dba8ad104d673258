#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace croft::core {

/// Why a register takes no writes: it is one end of a move from one store into another (docs/runbooks/migrate.md). It
/// lies in the store beside the records and is none of them. A store that has one refuses every commit of everybody
/// but the move itself.
struct Seal {
  /// Which end of the move the store is.
  enum class End : std::uint8_t { source, target } end = End::source;
  /// How far the move is. A target is `preparing` until it is known to hold nothing of its own, then `copying`; a
  /// source is `copying`, then `moved`, when the target is complete. `given_up`: of a target, whose source was opened
  /// again; it may hold part of a copy.
  enum class Phase : std::uint8_t { preparing, copying, moved, given_up } phase = Phase::preparing;
  std::string move;   ///< names the move: 32 hexadecimal digits, chosen at random; the same at both ends
  std::string other;  ///< the URL of the store at the other end, which holds no secrets
  WallTime since{};   ///< when it was put; for people
  /// Of a target that held nothing of its own and tells who wrote a record: what the move writes bears its mark
  /// (store/move/store_move), so that what bears none was written by somebody else.
  bool marks = false;

  friend bool operator==(const Seal&, const Seal&) = default;
};

/// "source", "target".
[[nodiscard]] constexpr std::string_view name_of(Seal::End end) {
  return end == Seal::End::source ? "source" : "target";
}
/// "preparing", "copying", "moved", "given-up".
[[nodiscard]] constexpr std::string_view name_of(Seal::Phase phase) {
  switch (phase) {
    case Seal::Phase::preparing:
      return "preparing";
    case Seal::Phase::copying:
      return "copying";
    case Seal::Phase::moved:
      return "moved";
    case Seal::Phase::given_up:
      return "given-up";
  }
  return "";
}

}  // namespace croft::core
