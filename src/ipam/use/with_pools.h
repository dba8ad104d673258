#pragma once

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "ipam/decide/pool_changes.h"
#include "ipam/use/pools.h"
#include "ipam/use/transact.h"
#include "register/snapshot.h"

namespace croft::engine {

/// The state of the wanted pools, only found out together with what a decision reads anyhow.
enum class Pools : std::uint8_t { not_seen, there, to_be_made };

/// transact() for a decision that needs these pools: makes those that are absent first, by ensure_pools. Where all are
/// there, which is nearly always, it reads no more than the decision does by itself.
template <class Decide>
auto transact_with_pools(const Context& context, TurnTaking turn_taking, const std::vector<core::PoolSpec>& specs,
                         Decide decide) {
  Pools pools = specs.empty() ? Pools::there : Pools::not_seen;
  const auto decide_once_there = [&](const core::Snapshot& snapshot, const Instant& now) {
    auto step = decide(snapshot, now);
    using StepType = decltype(step);
    if (pools == Pools::there) return step;
    const auto are_there = core::are_pools_there(snapshot, specs);
    if (are_there) pools = *are_there ? Pools::there : Pools::to_be_made;
    if (pools == Pools::there) return step;
    if (pools == Pools::to_be_made) return StepType(Error{ErrorCode::not_found, "pools are to be made first", {}});
    auto* missing = std::get_if<core::Missing>(&step);
    core::Missing wanted = missing != nullptr ? std::move(*missing) : core::Missing();
    wanted.damaged.reset();  // the pools come first
    wanted.lists.insert({core::Kind::pool, ""});
    return StepType(std::move(wanted));
  };
  auto answer = transact(context, turn_taking, decide_once_there);
  using Outcome = decltype(answer);
  if (pools != Pools::to_be_made) return answer;
  if (auto ensured = ensure_pools(context, specs); !ensured) return Outcome(fail(std::move(ensured.error())));
  pools = Pools::there;
  return transact(context, turn_taking, decide_once_there);
}

}  // namespace croft::engine
