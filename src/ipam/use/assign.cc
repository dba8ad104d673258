#include "ipam/use/assign.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "ipam/use/inspect.h"
#include "ipam/use/nodes.h"
#include "ipam/use/pools.h"
#include "store/forwarding_store.h"

namespace croft::engine {

Result<core::AssignAnswer> assign(const Context& context, const core::AssignRequest& request,
                                  const std::vector<core::PoolSpec>& pools, const Living* living) {
  TRY_VOID(core::check_node_name(request.node.name));
  PastLiving past(request, living);
  return transact_with_pools(
      context, TurnTaking::first, pools,
      [&](const core::Snapshot& snapshot, const Instant& now) { return past.plan(snapshot, now); });
}

BatchedCall assign_in_batch(const core::AssignRequest& request, const std::vector<core::PoolSpec>& pools,
                            Deadline not_after, core::Assigned& answer, const Living* living) {
  const auto decide = [&request, &pools, &answer, past = PastLiving(request, living)](
                          const core::Snapshot& snapshot, const Instant& now) mutable -> core::Step<bool> {
    auto step = past.plan(snapshot, now);
    if (core::are_pools_there(snapshot, pools) == false) return core::Plan<bool>{false, {}};
    if (auto* error = std::get_if<Error>(&step)) return std::move(*error);
    if (auto* missing = std::get_if<core::Missing>(&step)) return std::move(*missing);
    auto& plan = std::get<core::Plan<core::AssignAnswer>>(step);
    auto* assigned = std::get_if<core::Assigned>(&plan.answer);
    if (assigned == nullptr || std::ranges::any_of(assigned->addresses, &core::AssignedAddress::held_before)) {
      return core::Plan<bool>{false, {}};
    }
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

namespace {

/// The store of who is made up. That the owner holds nothing is known without asking for a handle, and so without the
/// right to. A node that this account may not read has no labels here.
class MadeUp final : public store::ForwardingStore {
 public:
  MadeUp(store::Store& beneath, const core::AssignRequest& request)
      : ForwardingStore(beneath),
        node_(core::node_key(request.node.name)),
        absent_{core::handle_key(core::handle_of(request.owner))} {}

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    core::Missing rest = wanted;
    for (const core::Key& key : absent_) rest.records.erase(key);
    auto answer = beneath().read(rest, deadline);
    const bool may_be_the_node =
        !answer && answer.error().code == ErrorCode::permission_denied && rest.records.contains(node_);
    if (may_be_the_node) {
      node_denied_ = answer.error();
      absent_.insert(node_);
      return read(wanted, deadline);
    }
    if (!answer) return answer;
    std::vector<std::optional<store::Record>> records;
    auto next = answer->records.begin();
    for (const core::Key& key : wanted.records) {
      records.push_back(absent_.contains(key) ? std::nullopt : std::move(*next++));
    }
    answer->records = std::move(records);
    return answer;
  }
  [[nodiscard]] const std::optional<Error>& node_denied() const { return node_denied_; }

 private:
  const core::Key node_;
  std::set<core::Key> absent_;
  std::optional<Error> node_denied_;
};

/// "10.1.0.1 (device veth1)", or with "and 2 more" behind.
std::string text_of(const std::map<net::Address, std::string>& living) {
  const auto& [address, device] = *living.begin();
  const std::string more = living.size() > 1 ? fmt::format(" and {} more", living.size() - 1) : std::string();
  return fmt::format("{} (device {}){}", address.to_string(), device, more);
}

}  // namespace

Result<core::Explanation> explain(const Context& context, const core::AssignRequest& request) {
  TRY_VOID(core::check_node_name(request.node.name));
  MadeUp store(context.store, request);
  TRY(auto explanation, transact(Context{store, context.clock, context.random, context.time_limit},
                                 TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
                                   return core::plan_explain(snapshot, request, now);
                                 }));
  if (!store.node_denied()) return explanation;
  TRY(const std::vector<core::Pool> pools, list_pools(context));
  if (!std::ranges::all_of(pools, core::is_for_all_nodes)) return fail(*store.node_denied());
  return explanation;
}

core::Step<core::AssignAnswer> PastLiving::plan(const core::Snapshot& snapshot, const Instant& now) {
  for (;;) {
    auto step = core::plan_assign(snapshot, narrowed_ ? *narrowed_ : request_, now);
    auto* plan = std::get_if<core::Plan<core::AssignAnswer>>(&step);
    if (plan == nullptr) return step;
    if (auto* refusal = std::get_if<core::Refusal>(&plan->answer)) {
      if (narrowed_) *refusal = refusal_of(std::move(*refusal));
      return step;
    }
    if (!add_living(std::get<core::Assigned>(plan->answer))) {
      tell_once();
      return step;
    }
    if (narrowed_->living.size() > kLivingMax) {
      core::Refusal refusal;
      refusal.summary =
          fmt::format("no address for node {}: one decision passes over {} at most", request_.node.name, kLivingMax);
      return core::Plan<core::AssignAnswer>{refusal_of(std::move(refusal)), {}};
    }
  }
}

/// Whether some of what was assigned lives.
bool PastLiving::add_living(const core::Assigned& assigned) {
  if (living_ == nullptr || !living_->device_of) return false;
  bool is_any = false;
  for (const core::AssignedAddress& one : assigned.addresses) {
    if (one.held_before || is_deaf_) continue;
    const auto device = living_->device_of(one.address);
    if (!device) {
      is_deaf_ = true;
      living_->warn("the kernel of this node does not say who lives on it, and addresses are given without asking: " +
                    device.error().message);
    } else if (*device) {
      if (!narrowed_) narrowed_ = request_;
      narrowed_->living.emplace(one.address, **device);
      is_any = true;
    }
  }
  return is_any;
}

void PastLiving::tell_once() {
  if (!narrowed_ || std::exchange(has_told_, true)) return;
  living_->warn(fmt::format("passed over {}: the register has it as free, and somebody on this node lives with it",
                            text_of(narrowed_->living)));
}

core::Refusal PastLiving::refusal_of(core::Refusal refusal) const {
  refusal.code = ErrorCode::unavailable;
  refusal.cause = core::RefusalCause::other;
  refusal.summary = fmt::format(
      "{}; somebody on this node lives with {}, which the register has as free: its interface may be about to go, and "
      "the runtime asks again. If an older register was put back, follow docs/runbooks/restore-kubernetes-api.md",
      refusal.summary, text_of(narrowed_->living));
  return refusal;
}

}  // namespace croft::engine
