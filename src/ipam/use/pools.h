#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ipam/decide/pool_changes.h"
#include "ipam/decide/pool_split.h"
#include "ipam/use/taken_space.h"
#include "ipam/use/transact.h"
#include "register/pool.h"
#include "register/snapshot.h"

// Addresses that are never handed out by themselves (docs/notes/calico-ipam.md#reservations).
namespace croft::engine {

/// Makes a pool with its reservation, or finds that it exists and agrees; completes one that is half made. Errors as
/// core::plan_create_pool. `taken` is asked only when no pool of this name serves yet, and its errors and those of
/// check_space are errors here.
[[nodiscard]] Result<core::PoolCreated> create_pool(const Context& context, const core::PoolSpec& spec,
                                                    const std::function<Result<std::vector<TakenSpace>>()>& taken = {});

/// Makes those of the pools that are absent; an error names the first that disagrees or cannot be made. Cheap when all
/// are there: one list.
[[nodiscard]] Result<void> ensure_pools(const Context& context, const std::vector<core::PoolSpec>& specs);

/// Gives a pool all that the spec says of it (core::plan_change_pool).
[[nodiscard]] Result<core::Pool> change_pool(const Context& context, const core::PoolSpec& change);
[[nodiscard]] Result<core::Pool> set_pool_disabled(const Context& context, const std::string& name, bool disabled);

/// Deletes a pool that holds nothing, with its blocks and its reservation. It is disabled and marked as being deleted
/// first, so that audit() tells of an interrupted deletion, and asking again ends it. When it is in use after all it
/// stays as it was: refused_for_safety. Error: not_found.
[[nodiscard]] Result<void> delete_pool(const Context& context, const std::string& name);

/// Replaces a pool by parts of it in one commit (core::plan_split_pool); without `apply` only says what would come.
/// Error: refused_by_configuration on a store whose commits are not atomic: the pool would be missing for a while.
[[nodiscard]] Result<core::PoolsSplit> split_pool(const Context& context, const core::PoolSplit& split,
                                                  bool apply = true);

/// All reservations, ascending by name; damaged ones are left out (`croft check` names them).
[[nodiscard]] Result<std::vector<core::Reservation>> list_reservations(const Context& context);

/// Makes a reservation; true when it was there already. Errors as core::plan_create_reservation.
[[nodiscard]] Result<bool> create_reservation(const Context& context, const core::Reservation& wanted);

/// Errors as core::plan_delete_reservation.
[[nodiscard]] Result<void> delete_reservation(const Context& context, const std::string& name);

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
