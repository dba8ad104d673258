#include "store/seal.h"

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/time_text.h"

namespace croft::store {
namespace {

/// A URL may be longer than a line of a log should be.
std::string who(const core::Seal& seal) {
  return fmt::format("{} (move {}, since {})", net::echo(seal.other), net::echo(seal.move), rfc3339_exact(seal.since));
}

std::string what_goes_on(const core::Seal& seal) {
  using Phase = core::Seal::Phase;
  if (seal.end == core::Seal::End::source) {
    return seal.phase == Phase::moved
               ? fmt::format(
                     "the register was moved to {}: name that store where this one is named (ipam.store, "
                     "--store)",
                     who(seal))
               : fmt::format(
                     "the register is being moved to {}: nothing is written until that is over; `croft migrate "
                     "status` tells how far it is",
                     who(seal));
  }
  return seal.phase == Phase::given_up
             ? fmt::format("a move of {} into this register was given up: only `croft migrate store` may write it",
                           who(seal))
             : fmt::format(
                   "the register is being filled from {}: nothing else is written until that is over; `croft "
                   "migrate status` tells how far it is",
                   who(seal));
}

}  // namespace

Error sealed(const core::Seal& seal) { return {ErrorCode::unavailable, what_goes_on(seal), {}}; }

Error not_sealed_for(const std::string& move) {
  return {ErrorCode::conflict,
          fmt::format("the register is not closed for the move {} any more: somebody opened it; look with `croft "
                      "migrate status`",
                      net::echo(move)),
          {}};
}

Result<void> check_seal(const std::optional<core::Seal>& seal, const std::string& worker) {
  if (worker.empty()) return seal ? Result<void>(fail(sealed(*seal))) : Result<void>();
  return seal && seal->move == worker ? Result<void>() : Result<void>(fail(not_sealed_for(worker)));
}

}  // namespace croft::store
