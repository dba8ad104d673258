#include "ipam/use/release.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/texts.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "register/block.h"
#include "register/records.h"
#include "store/store.h"

namespace croft::engine {

namespace {

/// The addresses by the block that contains them. The blocks are listed only when somebody does not know theirs.
[[nodiscard]] Result<std::map<net::Prefix, std::vector<core::AddressToRelease>>> by_block(
    const Context& context, const std::vector<core::AddressToRelease>& addresses,
    std::vector<net::Address>& in_no_block) {
  std::map<net::Prefix, std::vector<core::AddressToRelease>> result;
  std::vector<net::Prefix> blocks;
  if (std::ranges::any_of(addresses, [](const core::AddressToRelease& wanted) { return !wanted.block; })) {
    TRY(blocks, list_block_cidrs(context));
  }
  for (const core::AddressToRelease& wanted : addresses) {
    if (wanted.block) {
      result[*wanted.block].push_back(wanted);
      continue;
    }
    const auto it = std::ranges::find_if(blocks, [&](const auto& block) { return block.contains(wanted.address); });
    if (it == blocks.end()) {
      in_no_block.push_back(wanted.address);
    } else {
      result[*it].push_back(wanted);
    }
  }
  return result;
}

constexpr std::size_t kReleaseBatch = 64;

/// A request that names only an address means its holder at the first look. When it is decided again, after a conflict
/// or a lost reply, a successor is left alone.
void pin(const core::Snapshot& snapshot, const net::Prefix& cidr, std::vector<core::AddressToRelease>& batch,
         std::set<net::Address>& pinned) {
  core::Reader reader(snapshot);
  const auto* block = reader.get(core::block_key(cidr));
  if (block == nullptr) return;
  for (core::AddressToRelease& wanted : batch) {
    const auto ordinal = net::ordinal_of(cidr, wanted.address);
    if (wanted.sequence_number || !ordinal || core::state_of(*block, *ordinal) != core::AddressState::held) continue;
    const core::Attribute& holder = *core::attribute_of(*block, *ordinal);
    if (wanted.handle_id && wanted.handle_id != holder.handle_id) continue;
    wanted.handle_id = holder.handle_id;
    wanted.sequence_number = core::sequence_of(*block, *ordinal);
    pinned.insert(wanted.address);
  }
}

/// Held at the first look, and now no more, or by a successor: that was this release, or its holder's own.
void count_pinned(core::AddressReleases& answer, const std::set<net::Address>& pinned) {
  for (std::vector<net::Address>* list : {&answer.not_held, &answer.mismatched}) {
    for (const net::Address& address : *list) {
      if (pinned.contains(address)) answer.released.push_back(address);
    }
    std::erase_if(*list, [&](const net::Address& address) { return pinned.contains(address); });
  }
}

[[nodiscard]] Result<void> release_batch(const Context& context, const net::Prefix& block,
                                         std::vector<core::AddressToRelease> batch, bool apply,
                                         core::AddressReleases& all) {
  std::set<net::Address> pinned;
  TRY(core::AddressReleases some,
      transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
        auto step = core::plan_release_addresses(snapshot, block, batch, now);
        if (std::holds_alternative<core::Plan<core::AddressReleases>>(step) && pinned.empty()) {
          pin(snapshot, block, batch, pinned);
        }
        return written_if(apply, std::move(step));
      }));
  count_pinned(some, pinned);
  all.released.insert(all.released.end(), some.released.begin(), some.released.end());
  all.not_held.insert(all.not_held.end(), some.not_held.begin(), some.not_held.end());
  all.mismatched.insert(all.mismatched.end(), some.mismatched.begin(), some.mismatched.end());
  return {};
}

}  // namespace

Result<core::Released> release_owner(const Context& context, const core::Owner& owner) {
  std::vector<net::Address> tried;
  const auto decide = [&](const core::Snapshot& snapshot, const Instant& now) {
    core::Step<core::Released> step = core::plan_release_owner(snapshot, owner, now);
    if (const auto* plan = std::get_if<core::Plan<core::Released>>(&step)) {
      // A try that met a conflict at the handle has freed them before.
      for (const net::Address& address : plan->answer.addresses) {
        if (std::ranges::find(tried, address) == tried.end()) tried.push_back(address);
      }
    }
    return step;
  };
  TRY_VOID(transact(context, TurnTaking::before_writing, decide));
  return core::Released{std::move(tried)};
}

BatchedCall release_in_batch(const core::Owner& owner, Deadline not_after, core::Released& answer) {
  const auto decide = [&owner, &answer](const core::Snapshot& snapshot, const Instant& now) -> core::Step<bool> {
    auto step = core::plan_release_owner(snapshot, owner, now);
    if (auto* missing = std::get_if<core::Missing>(&step)) return std::move(*missing);
    if (auto* error = std::get_if<Error>(&step)) return std::move(*error);
    auto& plan = std::get<core::Plan<core::Released>>(step);
    const bool is_final = blocks_at_odds(snapshot, core::handle_of(owner)).empty();
    if (is_final) answer = std::move(plan.answer);
    return core::Plan<bool>{is_final, std::move(plan.writes)};
  };
  return {decide, core::handle_of(owner), not_after};
}

Result<core::AddressReleases> release_addresses(const Context& context,
                                                const std::vector<core::AddressToRelease>& addresses, bool apply) {
  core::AddressReleases all;
  TRY(const auto blocks, by_block(context, addresses, all.not_held));
  for (const auto& [cidr, wanted] : blocks) {
    // In batches, so that no commit outgrows its limit of records.
    for (std::size_t from = 0; from < wanted.size(); from += kReleaseBatch) {
      const std::size_t to = std::min(from + kReleaseBatch, wanted.size());
      const std::vector<core::AddressToRelease> batch(wanted.begin() + static_cast<std::ptrdiff_t>(from),
                                                      wanted.begin() + static_cast<std::ptrdiff_t>(to));
      TRY_VOID(release_batch(context, cidr, batch, apply, all));
    }
  }
  return all;
}

Result<void> check_release_share(const Context& context, const std::vector<core::AddressToRelease>& addresses,
                                 double share) {
  struct Count {
    std::size_t held = 0, going = 0;
  };
  std::map<net::Address, const core::AddressToRelease*> wanted;
  for (const core::AddressToRelease& one : addresses) wanted.emplace(one.address, &one);
  std::map<std::string, Count> nodes;
  TRY_VOID(for_each_block(context, [&](const core::Block& block) {
    core::for_each_held(block, [&](net::Ordinal ordinal, const core::Attribute& holder) {
      Count& count = nodes[core::member_of(holder.secondary, core::kNodeKey)];
      ++count.held;
      const auto goes = wanted.find(net::address_at(block.cidr, ordinal));
      if (goes != wanted.end() && is_still_held_as_named(*goes->second, block, ordinal, holder)) ++count.going;
    });
  }));
  for (const auto& [name, count] : nodes) {
    if (static_cast<double>(count.going) <= share * static_cast<double>(count.held)) continue;
    return fail(ErrorCode::refused_for_safety,
                "{} of {} addresses held on {} would go, more than a share of {}; nothing was released", count.going,
                count.held, name.empty() ? "no known node" : "node " + name, share);
  }
  return {};
}

Result<bool> mend_handle(const Context& context, const std::string& handle_id, store::Revision revision) {
  const Deadline deadline = Deadline::after(context.clock.now(), context.time_limit);
  TRY(const auto record, context.store.get(core::handle_key(handle_id), deadline));
  if (!record || record->revision != revision) return false;
  return decided(context, core::plan_mend_handle, handle_id);
}

Result<Collected> collect_attachments(const Context& context, const std::string& network,
                                      const core::AffinityOwner& node, const GcAttachments& valid) {
  core::audit::Garbage garbage;
  const core::audit::Authority authority{network, node.name};
  const Instant now = context.clock.now();
  TRY_VOID(for_each_block(
      context, [&](const core::Block& block) { core::audit::add_garbage(block, authority, valid, now, garbage); }));
  TRY(core::AddressReleases done, release_addresses(context, garbage.leaked));
  return Collected{std::move(done.released), garbage.kept_young};
}

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
  return decided(context, core::audit::held_addresses, owner);
}

Result<void> check_attachment(const Context& context, const core::Owner& owner,
                              const std::vector<net::Address>& expected) {
  TRY(const std::vector<net::Address> held, held_addresses(context, owner));
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
  if (auto why = core::audit::why_not_ready(answer, request.fail_when_full)) return fail(*std::move(why));
  return check_writable(context);
}

}  // namespace croft::engine
