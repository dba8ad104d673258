#include "ipam/use/attachments.h"

#include <algorithm>
#include <utility>

#include "ipam/decide/assign.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"
#include "register/block.h"
#include "register/records.h"
#include "store/check_request.h"

namespace croft::engine {
namespace {

using Addresses = std::vector<net::Address>;

}  // namespace

Result<void> check_writable(const Context& context) {
  const store::Write write = store::write_question();
  const Deadline soon = Deadline::after(
      context.clock.now(), std::min<std::chrono::nanoseconds>(context.time_limit, std::chrono::milliseconds(500)));
  const auto turn = context.store.take_turn(soon);
  if (!turn && turn.error().code == ErrorCode::deadline_exceeded) return {};
  if (!turn) return fail(turn.error());
  const Deadline deadline = Deadline::after(context.clock.now(), context.time_limit);
  const auto committed = context.store.commit({&write, 1}, {}, deadline);
  if (committed || committed.error().code == ErrorCode::conflict) return {};
  return fail(committed.error());
}

Result<std::vector<net::Address>> held_addresses(const Context& context, const core::Owner& owner) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::audit::held_addresses(snapshot, owner);
  });
}

namespace {

/// With what must match for a release.
[[nodiscard]] Result<std::vector<core::AddressToRelease>> held_on_node(const Context& context, const core::Owner& owner,
                                                                       const core::AffinityOwner& node) {
  Context hurried = context;
  hurried.time_limit = std::min<std::chrono::nanoseconds>(kHeldOnNodeTime, context.time_limit);
  const Deadline deadline = deadline_of_use_case(hurried);
  std::vector<net::Prefix> cidrs;
  TRY_VOID(for_each_affinity(hurried, core::owned_names_of(node), [&](const core::Affinity& row) {
    if (cidrs.size() < kHeldOnNodeBlocksMax) cidrs.push_back(row.cidr);
  }));
  std::vector<core::AddressToRelease> found;
  for (const net::Prefix& cidr : cidrs) {
    TRY(const auto record, context.store.get(core::block_key(cidr), deadline));
    const auto* block = record ? record->get_if<core::Block>() : nullptr;
    if (block == nullptr || block->deleted) continue;
    for (const net::Ordinal ordinal : core::held_by(*block, owner)) {
      found.push_back(
          {net::address_at(cidr, ordinal), core::handle_of(owner), core::sequence_of(*block, ordinal), cidr});
    }
  }
  return found;
}

}  // namespace

Result<core::Released> release_on_node(const Context& context, const Context& memory, const core::Owner& owner,
                                       const std::string& node) {
  TRY(core::Released released, release_owner(context, owner));
  const bool is_to_look = released.addresses.empty() || released.at_odds;
  if (!is_to_look || node.empty()) return released;
  const auto found = held_on_node(memory, owner, {core::AffinityOwner::Type::host, node});
  if (!found || found->empty()) return released;
  TRY(const core::AddressReleases more, release_addresses(context, *found));
  released.addresses.insert(released.addresses.end(), more.released.begin(), more.released.end());
  return released;
}

Result<void> check_attachment(const Context& context, const core::Owner& owner,
                              const std::vector<net::Address>& expected) {
  TRY(const Addresses held, held_addresses(context, owner));
  std::vector<core::Pool> pools;
  if (!held.empty() && !expected.empty()) {
    TRY(pools, list_pools(context));
  }
  return core::audit::check_attachment(owner, held, expected, pools);
}

Result<void> check_status(const Context& context, const StatusRequest& request,
                          const std::vector<core::PoolSpec>& pools) {
  TRY_VOID(core::check_node_name(request.node.name));
  TRY(const core::AssignAnswer answer, transact_with_pools(context, TurnTaking::before_writing, pools,
                                                           [&](const core::Snapshot& snapshot, const Instant& now) {
                                                             return core::audit::try_assign(snapshot, request, now);
                                                           }));
  if (auto why = core::audit::unready(answer, request.fail_when_full)) return fail(*std::move(why));
  return check_writable(context);
}

}  // namespace croft::engine
