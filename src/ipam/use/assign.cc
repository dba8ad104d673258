#include "ipam/use/assign.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "ipam/use/affinities.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"

namespace croft::engine {
namespace {

/// The work that a call knows to have done itself: another look finds it held.
class OwnWork {
 public:
  /// Every answer that a decision of the call came to, whatever became of its plan.
  void note(core::AssignAnswer& answer) {
    auto* assigned = std::get_if<core::Assigned>(&answer);
    if (assigned == nullptr) return;
    for (core::AssignedAddress& one : assigned->addresses) {
      const bool is_own = !one.held_before || planned_.contains(one.address);
      if (is_own) planned_.insert_or_assign(one.address, one);
      one.held_before = !is_own;
    }
  }

  /// After a refusal.
  [[nodiscard]] Result<void> give_back(const Context& context, const core::AssignRequest& request) const {
    std::vector<core::AddressToRelease> addresses;
    for (const auto& [address, one] : planned_) {
      addresses.push_back({address, core::handle_of(request.owner), one.sequence_number, one.block});
    }
    TRY_VOID(release_addresses(context, addresses));
    return {};
  }

  [[nodiscard]] bool has_planned() const { return !planned_.empty(); }

 private:
  std::map<net::Address, core::AssignedAddress> planned_;
};

bool has_held(const core::Assigned& assigned) {
  return std::ranges::any_of(assigned.addresses, [](const auto& one) { return one.held_before; });
}

[[nodiscard]] Result<core::AssignAnswer> assign_some(const Context& context, const core::AssignRequest& request,
                                                     const std::vector<core::PoolSpec>& specs, const Living* living,
                                                     OwnWork& own) {
  PastLiving past(request, living);
  return past.assign(context, [&] {
    return transact_with_pools(context, TurnTaking::first, specs,
                               [&](const core::Snapshot& snapshot, const Instant& now) {
                                 auto step = past.plan(snapshot, now);
                                 auto* plan = std::get_if<core::Plan<core::AssignAnswer>>(&step);
                                 if (plan != nullptr) own.note(plan->answer);
                                 return step;
                               });
  });
}

/// Whether no address was found because parts were read one after the other. While others release in one part and take
/// in the other, a pool looks full that never was. Nothing is written by a refusal, so no condition shows it. Where a
/// turn is taken nobody writes meanwhile.
[[nodiscard]] bool seems_full(const Context& context, const core::AssignAnswer& answer) {
  const auto* refusal = std::get_if<core::Refusal>(&answer);
  return refusal != nullptr && refusal->code == ErrorCode::exhausted && context.store.capabilities().late_commits;
}

[[nodiscard]] Result<core::AssignAnswer> assign_all(const Context& context, const core::AssignRequest& request,
                                                    const std::vector<core::PoolSpec>& pools, const Living* living,
                                                    OwnWork& own) {
  const bool is_atomic = context.store.capabilities().atomic_commit;
  for (bool is_first = true;; is_first = false) {
    TRY(core::AssignAnswer answer,
        assign_some(context, request, is_first ? pools : std::vector<core::PoolSpec>(), living, own));
    if (seems_full(context, answer)) {
      TRY(answer, assign_some(context, request, {}, living, own));
    }
    const auto* assigned = std::get_if<core::Assigned>(&answer);
    if (assigned != nullptr && assigned->unfinished) continue;
    const bool may_have_written = !is_first || !is_atomic;
    if (assigned == nullptr && may_have_written && own.has_planned()) TRY_VOID(own.give_back(context, request));
    return answer;
  }
}

}  // namespace

Result<core::AssignAnswer> assign(const Context& context, const core::AssignRequest& request,
                                  const std::vector<core::PoolSpec>& pools, const Living* living) {
  TRY_VOID(core::check_node_name(request.node.name));
  OwnWork own;
  return assign_all(context, request, pools, living, own);
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
    if (assigned == nullptr || assigned->unfinished || has_held(*assigned)) return core::Plan<bool>{false, {}};
    core::Missing unread;
    for (const auto& key : blocks_at_odds(snapshot, core::handle_of(request.owner))) {
      if (snapshot.find(key) == nullptr) {
        unread.records.insert(key);
      } else if (snapshot.unreadable(key) != nullptr) {
        return core::Plan<bool>{false, {}};  // damaged: nobody knows what it holds
      } else if (std::ranges::find(plan.writes, key, &core::PlannedWrite::key) == plan.writes.end()) {
        plan.writes.push_back(core::to_check(key));  // that the owner has nothing in it the commit proves
      }
    }
    if (unread.unread()) return unread;
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

}  // namespace croft::engine
