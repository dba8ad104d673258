#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ipam/decide/pool_changes.h"
#include "ipam/use/transact.h"
#include "register/pool.h"
#include "register/snapshot.h"

namespace croft::engine {

/// A part of the address space that is somebody's whom the register does not know, ready for a message.
struct TakenSpace {
  std::string whose;  ///< "address 10.0.0.5 of node a"
  net::Prefix cidr;
};

/// Error: refused_by_configuration, when the pool would overlap one of these, with both names.
[[nodiscard]] Result<void> check_space(const core::PoolSpec& spec, const std::vector<TakenSpace>& taken);

struct ServiceSpace {
  std::vector<TakenSpace> taken;
  std::optional<Error> unread;  ///< Services may not be read: `taken` is empty, and nobody knows their range
};

/// The addresses that Services have, where nothing tells from which range: a Kubernetes API shows no bitmaps, and
/// before 1.33 it has no ServiceCIDRs. This is all that can be known of such a range. Nothing where ranges are known,
/// which stand against a pool by themselves (core::AddressClaims). Errors: those of the store.
[[nodiscard]] Result<ServiceSpace> service_space(const Context& context);

/// The ranges of Services that a Kubernetes API keeps as objects, which come and go beside pools. Errors: those of the
/// store.
[[nodiscard]] Result<std::vector<TakenSpace>> service_cidrs(const Context& context);

/// A part of a pool that is somebody's, and that no reservation keeps from pods.
struct PoolInTakenSpace {
  std::string pool;
  net::Prefix shared;
  std::string whose;
};
/// The space taken after its pool was made; check_space() refuses a pool only in the moment of its making. Errors:
/// those of the store.
[[nodiscard]] Result<std::vector<PoolInTakenSpace>> pools_in_taken_space(const Context& context,
                                                                         const std::vector<TakenSpace>& taken);

/// Makes a pool with its reservation, or finds that it exists and agrees; completes one that is half made. Errors as
/// core::plan_create_pool. `taken` is asked only when no pool of this name serves yet, and its errors and those of
/// check_space are errors here.
[[nodiscard]] Result<core::PoolCreated> create_pool(const Context& context, const core::PoolSpec& spec,
                                                    const std::function<Result<std::vector<TakenSpace>>()>& taken = {});

/// Makes those of the pools that are absent, and completes half made ones; all others need nothing. An error names the
/// first that disagrees or cannot be made.
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

/// Without `apply` nothing is written. Errors as core::plan_delete_reservation.
[[nodiscard]] Result<void> delete_reservation(const Context& context, const std::string& name, bool apply = true);

// --- The first pools of a cluster, which every node may ask for at its start: who comes first makes them, the others
// find them (docs/notes/calico-ipam.md#pools).

inline constexpr const char* kDefaultPoolV4 = "default-ipv4-ippool";
inline constexpr const char* kDefaultPoolV6 = "default-ipv6-ippool";

struct DefaultPool {
  enum class Outcome : std::uint8_t {
    made,
    there,       ///< a pool of the family is there, whichever: `pool` is it
    to_be_made,  ///< only looked
  } outcome = Outcome::there;
  core::Pool pool;
};

struct DefaultPoolsOptions {
  /// Asked only when a pool is to be made.
  std::function<Result<std::vector<TakenSpace>>()> taken;
  bool only_look = false;
};

/// Makes each of these pools, in their order and one a family, unless the register has a pool of its family, also one
/// that somebody disabled. One that is half made is completed. When many do so at once, one makes it and the others
/// find it. Errors: refused_by_configuration when the CIDR overlaps taken space or another claim, with both names, and
/// when the only pool of the family is a half made one that is not wanted so; those of create_pool and of `taken`. The
/// ones before it are made.
[[nodiscard]] Result<std::vector<DefaultPool>> ensure_default_pools(const Context& context,
                                                                    const std::vector<core::PoolSpec>& specs,
                                                                    const DefaultPoolsOptions& options);

// --- switches

/// The cluster-wide switches; the defaults when nothing is stored.
[[nodiscard]] Result<core::IpamConfig> read_config(const Context& context);

/// Changes them (core::plan_set_config); what was changed meanwhile by others stays.
[[nodiscard]] Result<core::IpamConfig> set_config(const Context& context, const core::ConfigChange& change);

/// transact() for a decision that needs these pools: makes those that are absent first, by ensure_pools. Where all are
/// there, which is nearly always, it reads no more than the decision does by itself.
template <class Decide>
auto transact_with_pools(const Context& context, TurnTaking turn_taking, const std::vector<core::PoolSpec>& specs,
                         Decide decide) {
  bool is_any_absent = false;
  const auto decide_once_there = [&](const core::Snapshot& snapshot, const Instant& now) {
    auto step = decide(snapshot, now);
    // A decision that has not read the pools yet asks for them.
    is_any_absent = core::are_pools_there(snapshot, specs) == false;
    if (is_any_absent) return decltype(step)(Error{ErrorCode::not_found, "pools are to be made first", {}});
    return step;
  };
  auto answer = transact(context, turn_taking, decide_once_there);
  if (!is_any_absent) return answer;
  if (auto ensured = ensure_pools(context, specs); !ensured) return decltype(answer)(fail(std::move(ensured.error())));
  return transact(context, turn_taking, decide);
}

}  // namespace croft::engine
