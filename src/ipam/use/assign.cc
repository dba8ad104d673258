#include "ipam/use/assign.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "ipam/use/affinities.h"
#include "ipam/use/release.h"
#include "ipam/use/with_pools.h"

namespace croft::engine {
namespace {

/// What the owner held at a call's first look, which is what it held before the call. Another look may find what a
/// commit of the call itself gave it, whose reply was lost and whose mark another has written over.
class FirstLook {
 public:
  /// `earlier` is of the batch that had the call: what it planned there is for who holds nothing.
  explicit FirstLook(Earlier earlier) : is_over_(earlier != Earlier::not_done), earlier_(earlier) {}

  void correct(core::AssignAnswer& answer, Earlier earlier) {
    if (earlier != Earlier::not_done) earlier_ = earlier;
    auto* assigned = std::get_if<core::Assigned>(&answer);
    if (assigned == nullptr) return;
    for (core::AssignedAddress& one : assigned->addresses) {
      if (!is_over_ && one.held_before) held_.insert(one.address);
      if (earlier_ == Earlier::maybe_done && !held_.contains(one.address)) one.held_before = false;
    }
    is_over_ = true;
  }

 private:
  bool is_over_;
  Earlier earlier_;
  std::set<net::Address> held_;
};

bool has_held(const core::Assigned& assigned) {
  return std::ranges::any_of(assigned.addresses, [](const auto& one) { return one.held_before; });
}

/// Blocks that are written anew for what is held in them; more of them belong to no pod.
constexpr std::size_t kHeldBlocksMax = 32;

/// What is held may be about to go: by a DEL that began before this ADD and hangs, or that nobody waits for any more,
/// also one that is yet to leave a tombstone; where each record is a commit of its own, by a plan under way that takes
/// it back when it fails (ordered_commit.h), as when an agent is slow and its plugin goes its own way. Who answers with
/// it holds it anew (core::held_anew): nobody who looked before means that.
void hold_anew(const core::Snapshot& snapshot, const core::AssignRequest& request, const Instant& now,
               core::Plan<core::AssignAnswer>& plan) {
  auto* assigned = std::get_if<core::Assigned>(&plan.answer);
  if (assigned == nullptr) return;
  std::set<net::Prefix> blocks;
  for (const core::AssignedAddress& one : assigned->addresses) {
    if (one.held_before && blocks.size() < kHeldBlocksMax) blocks.insert(one.block);
  }
  for (const net::Prefix& cidr : blocks) {
    const auto key = core::block_key(cidr);
    const auto written = std::ranges::find_if(
        plan.writes, [&](const core::PlannedWrite& write) { return write.key == key && write.value; });
    const bool is_written = written != plan.writes.end();
    const auto* found = snapshot.find(key);
    const auto* read = found != nullptr && *found ? std::get_if<core::Block>(&**found) : nullptr;
    const auto* block = is_written ? std::get_if<core::Block>(&*written->value) : read;
    if (block == nullptr) continue;
    core::Block anew = *block;
    // Of what the plan writes the number is that of the write already.
    if (is_written) anew.sequence_number = core::SequenceNumber(anew.sequence_number.value - 1);
    anew = core::stamped(core::held_anew(std::move(anew), request.owner, request.began.value_or(now.wall)));
    for (core::AssignedAddress& one : assigned->addresses) {
      if (one.block == cidr) one.sequence_number = core::sequence_of(anew, *net::ordinal_of(cidr, one.address));
    }
    if (is_written) {
      written->value = std::move(anew);
    } else {
      plan.writes.push_back(core::to_put(key, std::move(anew)));
    }
  }
}

/// `again`: an earlier commit of this call has held anew what was held before the call.
[[nodiscard]] Result<core::AssignAnswer> assign_some(const Context& context, const core::AssignRequest& request,
                                                     const std::vector<core::PoolSpec>& specs, bool again,
                                                     FirstLook& first, const Living* living) {
  PastLiving past(request, living);
  return past.assign(context, [&] {
    return transact_with_pools(context, TurnTaking::first, specs,
                               [&](const core::Snapshot& snapshot, const Instant& now, Earlier earlier) {
                                 auto step = past.plan(snapshot, now);
                                 auto* plan = std::get_if<core::Plan<core::AssignAnswer>>(&step);
                                 if (plan != nullptr && !again) hold_anew(snapshot, request, now, *plan);
                                 if (plan != nullptr) first.correct(plan->answer, earlier);
                                 return step;
                               });
  });
}

/// Whether no address was found by what was read a part after the other: while others release in the one and take in
/// the other, a pool looks full that never was. Nothing is written by a refusal, so no condition shows it. Where a turn
/// is taken nobody writes meanwhile.
[[nodiscard]] bool seems_full(const Context& context, const core::AssignAnswer& answer) {
  const auto* refusal = std::get_if<core::Refusal>(&answer);
  return refusal != nullptr && refusal->code == ErrorCode::exhausted && context.store.capabilities().late_commits;
}

/// Gives back what earlier commits of a request assigned that then was refused.
[[nodiscard]] Result<void> give_back(const Context& context, const core::AssignRequest& request,
                                     const std::vector<core::AssignedAddress>& assigned) {
  std::vector<core::AddressToRelease> addresses;
  for (const core::AssignedAddress& one : assigned) {
    addresses.push_back({one.address, core::handle_of(request.owner), one.sequence_number, one.block});
  }
  TRY_VOID(release_addresses(context, addresses));
  return {};
}

}  // namespace

Result<core::AssignAnswer> assign(const Context& context, const core::AssignRequest& request,
                                  const std::vector<core::PoolSpec>& pools, Earlier earlier, const Living* living) {
  TRY_VOID(core::check_node_name(request.node.name));
  std::vector<core::AssignedAddress> fresh;
  FirstLook first(earlier);
  for (bool is_first = true;; is_first = false) {
    TRY(core::AssignAnswer answer,
        assign_some(context, request, is_first ? pools : std::vector<core::PoolSpec>(), !is_first, first, living));
    if (seems_full(context, answer)) {
      TRY(answer, assign_some(context, request, {}, !is_first, first, living));
    }
    auto* assigned = std::get_if<core::Assigned>(&answer);
    if (assigned == nullptr) {
      if (!fresh.empty()) {
        TRY_VOID(give_back(context, request, fresh));
      }
      return answer;
    }
    for (core::AssignedAddress& one : assigned->addresses) {
      if (!one.held_before) fresh.push_back(one);
    }
    if (assigned->unfinished) continue;
    // What an earlier commit of this call assigned was not held before the call.
    for (core::AssignedAddress& one : assigned->addresses) {
      const auto is_same = [&](const core::AssignedAddress& f) { return f.address == one.address; };
      if (std::any_of(fresh.begin(), fresh.end(), is_same)) one.held_before = false;
    }
    return answer;
  }
}

BatchedCall assign_in_batch(const core::AssignRequest& request, const std::vector<core::PoolSpec>& pools,
                            Deadline not_after, core::Assigned& answer, const Living* living) {
  const auto decide = [&request, &pools, &answer, past = PastLiving(request, living)](
                          const core::Snapshot& snapshot, const Instant& now) mutable -> core::Step<bool> {
    auto step = past.plan(snapshot, now);
    if (auto* error = std::get_if<Error>(&step)) return std::move(*error);
    const auto pools_there = pools.empty() ? std::optional(true) : core::are_pools_there(snapshot, pools);
    if (pools_there == false) return core::Plan<bool>{false, {}};
    if (auto* missing = std::get_if<core::Missing>(&step)) {
      if (!pools_there) missing->lists.insert({core::Kind::pool, ""});
      return std::move(*missing);
    }
    if (!pools_there) {
      core::Missing missing;
      missing.lists.insert({core::Kind::pool, ""});
      return missing;
    }
    auto& plan = std::get<core::Plan<core::AssignAnswer>>(step);
    auto* assigned = std::get_if<core::Assigned>(&plan.answer);
    // What is held already is written down by who goes alone.
    if (assigned == nullptr || assigned->unfinished || has_held(*assigned)) return core::Plan<bool>{false, {}};
    if (is_at_odds(snapshot, core::handle_of(request.owner))) return core::Plan<bool>{false, {}};
    answer = std::move(*assigned);
    return core::Plan<bool>{true, std::move(plan.writes)};
  };
  BatchedCall call{decide, core::handle_of(request.owner), not_after};
  if (!core::check_node_name(request.node.name)) call.fate = BatchFate::alone;
  return call;
}

std::optional<core::ClaimedAhead> claim_ahead(const Context& direct, store::Store& cached,
                                              const core::AssignRequest& like, net::Family family,
                                              std::uint32_t least_free) {
  std::optional<core::ClaimedAhead> ahead;
  const auto decide = [&](const core::Snapshot& snapshot, const Instant& now) -> core::Step<bool> {
    auto step = core::plan_claim_ahead(snapshot, like, family, least_free, now);
    if (auto* missing = std::get_if<core::Missing>(&step)) return std::move(*missing);
    if (auto* error = std::get_if<Error>(&step)) return std::move(*error);
    auto& plan = std::get<core::Plan<std::optional<core::ClaimedAhead>>>(step);
    ahead = plan.answer;
    return core::Plan<bool>{ahead.has_value(), std::move(plan.writes)};
  };
  // Nearly always there is nothing to do, which needs no turn among the writers.
  const Instant now = direct.clock.now();
  Loader loader(cached, deadline_of_use_case(direct));
  core::Step<bool> step;
  const auto read = read_until_complete(direct.clock, loader, [&] {
    step = decide(std::as_const(loader).snapshot(), now);
    return std::get_if<core::Missing>(&step);
  });
  if (!read || !ahead) return {};
  BatchedCall call{decide, "", direct.not_after};
  commit_together(direct, cached, {&call, 1});
  return call.fate == BatchFate::done ? ahead : std::nullopt;
}

Result<bool> give_back_ahead(const Context& context, const core::AffinityOwner& node, const core::ClaimedAhead& ahead) {
  TRY(const core::AffinityOutcome outcome, release_affinity(context, {node, ahead.block, true, ahead.sequence_number}));
  return outcome == core::AffinityOutcome::released;
}

Result<core::EnsureAnswer> ensure_block(const Context& context, const core::AssignRequest& request,
                                        net::Family family) {
  TRY_VOID(core::check_node_name(request.node.name));
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
    return core::plan_ensure_block(snapshot, request, family, now);
  });
}

}  // namespace croft::engine
