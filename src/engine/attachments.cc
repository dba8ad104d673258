#include "engine/attachments.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/block/assign.h"
#include "core/block/draft.h"
#include "engine/inspect.h"

namespace croft::engine {
namespace {

using Addresses = std::vector<net::Address>;

/// A decision that writes nothing: what the blocks named by the owner's handle say it holds.
core::Step<Addresses> read_held(const core::Snapshot& snapshot, const core::Owner& owner) {
  core::Reader reader(snapshot);
  const core::Handle* handle = reader.get<core::Handle>(core::handle_key(core::handle_of(owner)));
  if (!reader.complete()) return reader.missing();
  Addresses held;
  if (handle == nullptr) return core::Plan<Addresses>{};
  for (const auto& [text, count] : handle->blocks) {
    const auto cidr = net::Prefix::parse(text);
    if (!cidr) return cidr.error();
    const core::Block* block = reader.get<core::Block>(core::block_key(*cidr));
    if (block == nullptr) continue;
    if (const auto valid = core::check_block(*block); !valid) return valid.error();
    for (const net::Ordinal ordinal : core::held_by(*block, owner)) held.push_back(net::address_at(*cidr, ordinal));
  }
  if (!reader.complete()) return reader.missing();
  std::sort(held.begin(), held.end());
  return core::Plan<Addresses>{std::move(held), {}};
}

bool contains(const Addresses& addresses, const net::Address& address) {
  return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
}

std::string name_of(const core::Owner& owner) {
  return fmt::format("container {} interface {} in network {}", owner.container_id, owner.interface_name,
                     owner.network);
}

/// Whether the store takes writes, without making one: a commit whose condition cannot hold gets as far as a commit
/// can. Where somebody else writes just now, and goes on for long, it is not waited for: that says nothing against the
/// store, and a node must not become unready by it.
[[nodiscard]] Result<void> check_writable(const Context& context) {
  constexpr store::Revision kNever(std::numeric_limits<std::int64_t>::max());
  const store::Write write{core::pool_set_key(), std::nullopt, store::Condition::if_revision(kNever), true};
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

/// What keeps every node from new addresses alike, and no node can mend: no room, or a damaged record.
bool is_of_the_register(ErrorCode code) {
  return code == ErrorCode::exhausted || code == ErrorCode::corrupt || code == ErrorCode::newer_version;
}

}  // namespace

Result<std::vector<net::Address>> held_addresses(const Context& context, const core::Owner& owner) {
  return transact(context, TurnTaking::before_writing,
                  [&](const core::Snapshot& snapshot, const Instant&) { return read_held(snapshot, owner); });
}

Result<std::vector<HeldElsewhere>> held_elsewhere(const Context& context, const core::Owner& owner,
                                                  const core::AffinityOwner& node) {
  std::vector<net::Prefix> cidrs;
  TRY_VOID(for_each_affinity(context, core::owned_names_of(node), [&](const core::Affinity& row) {
    if (cidrs.size() < kHeldElsewhereBlocksMax) cidrs.push_back(row.cidr);
  }));
  const std::string own_handle = core::handle_of(owner);
  const std::string ending = "." + owner.container_id;
  std::map<std::string, Addresses> found;
  for (const net::Prefix& cidr : cidrs) {
    const Deadline deadline = Deadline::after(context.clock.now(), context.time_limit);
    TRY(const auto record, context.store.get(core::block_key(cidr), deadline));
    const auto* block = record ? std::get_if<core::Block>(&record->value) : nullptr;
    if (block == nullptr || !core::check_block(*block)) continue;
    for (std::uint32_t i = 0; i < block->allocations.size(); ++i) {
      const core::Attribute* holder = core::attribute_of(*block, net::Ordinal(i));
      if (holder == nullptr || holder->cooling || !holder->handle_id) continue;
      const std::string& handle = *holder->handle_id;
      if (handle == own_handle || !handle.ends_with(ending)) continue;
      found[handle.substr(0, handle.size() - ending.size())].push_back(net::address_at(cidr, net::Ordinal(i)));
    }
  }
  std::vector<HeldElsewhere> result;
  for (auto& [network, addresses] : found) result.push_back({network, std::move(addresses)});
  return result;
}

Result<void> check_attachment(const Context& context, const core::Owner& owner,
                              const std::vector<net::Address>& expected) {
  TRY(const Addresses held, held_addresses(context, owner));
  if (held.empty()) {
    return fail(ErrorCode::not_found, fmt::format("no address is recorded for {}", name_of(owner)));
  }
  if (expected.empty()) return {};
  TRY(const std::vector<core::Pool> pools, list_pools(context));
  for (const net::Address& address : expected) {
    const bool ours = std::any_of(pools.begin(), pools.end(), [&](const auto& p) { return p.cidr.contains(address); });
    if (ours && !contains(held, address)) {
      return fail(ErrorCode::not_found,
                  fmt::format("{} is in prevResult but not recorded for {}", address.to_string(), name_of(owner)));
    }
  }
  for (const net::Address& address : held) {
    if (!contains(expected, address)) {
      return fail(ErrorCode::not_found,
                  fmt::format("{} is recorded for {} but not in prevResult", address.to_string(), name_of(owner)));
    }
  }
  return {};
}

Result<void> check_status(const Context& context, const StatusRequest& request) {
  core::AssignRequest probe;
  // An owner that cannot exist: the trial assignment below is never committed.
  probe.owner = {"status", "probe", "status"};
  probe.node = request.node;
  probe.count = {request.wanted.v4 ? 1U : 0U, request.wanted.v6 ? 1U : 0U};
  probe.pools = request.pools;
  TRY_VOID(core::check_node_name(request.node.name));
  TRY(const core::AssignAnswer answer,
      transact(context, TurnTaking::before_writing,
               [&](const core::Snapshot& snapshot, const Instant& now) -> core::Step<core::AssignAnswer> {
                 auto step = core::plan_assign(snapshot, probe, now);
                 if (auto* plan = std::get_if<core::Plan<core::AssignAnswer>>(&step)) plan->writes.clear();
                 return step;
               }));
  const auto* refusal = std::get_if<core::Refusal>(&answer);
  if (refusal == nullptr || (is_of_the_register(refusal->code) && !request.fail_when_full)) {
    return check_writable(context);
  }
  return fail(core::to_error(*refusal));
}

}  // namespace croft::engine
