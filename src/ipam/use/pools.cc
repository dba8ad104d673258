#include "ipam/use/pools.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>

#include "ipam/decide/keep_out.h"
#include "ipam/use/each_record.h"
#include "ipam/use/inspect.h"

namespace croft::engine {

namespace {

/// A maker that lives has enabled its pool by then; it may be completed before all the same.
constexpr std::chrono::milliseconds kMakerTime{500};

}  // namespace

Result<core::PoolCreated> create_pool(const Context& context, const core::PoolSpec& spec,
                                      const std::function<Result<std::vector<TakenSpace>>()>& taken) {
  if (taken) {
    TRY(const std::vector<core::Pool> pools, list_pools(context));
    const bool serves =
        std::ranges::any_of(pools, [&](const core::Pool& p) { return p.name == spec.name && !p.being_made; });
    if (!serves) {
      TRY(const std::vector<TakenSpace> others, taken());
      TRY_VOID(check_space(spec, others));
    }
  }
  bool is_begun = false;
  const auto look = [&](const core::Snapshot& snapshot, const Instant&) {
    auto step = core::plan_create_pool(snapshot, spec);
    auto* const plan = std::get_if<core::Plan<core::PoolCreated>>(&step);
    is_begun = plan != nullptr && plan->answer.was_completed;
    if (is_begun) plan->writes.clear();
    return step;
  };
  auto created = transact(context, TurnTaking::first, look);
  if (!created || !is_begun) return created;
  std::this_thread::sleep_for(kMakerTime);
  return transact(context, TurnTaking::first, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_create_pool(snapshot, spec);
  });
}

Result<void> ensure_pools(const Context& context, const std::vector<core::PoolSpec>& specs) {
  if (specs.empty()) return {};
  TRY(const std::vector<core::Pool> pools, list_pools(context));
  for (const core::PoolSpec& spec : specs) {
    const auto existing =
        std::find_if(pools.begin(), pools.end(), [&](const core::Pool& p) { return p.name == spec.name; });
    const bool is_there = existing != pools.end() && core::disagreement(*existing, spec).empty();
    if (is_there && !core::is_to_be_completed(*existing, spec)) continue;
    // One that is there and damaged is not made anew; it serves nobody, and the others do.
    if (existing == pools.end()) {
      TRY(const auto record, context.store.get(core::pool_key(spec.name), deadline_of_use_case(context)));
      if (record && !record->value) continue;
    }
    const auto created = create_pool(context, spec);
    if (created) continue;
    Error error = created.error();
    if (error.code == ErrorCode::already_exists) error.code = ErrorCode::refused_by_configuration;
    return fail(std::move(error));
  }
  return {};
}

Result<core::Pool> change_pool(const Context& context, const core::PoolSpec& change) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_change_pool(snapshot, change);
  });
}

Result<core::Pool> set_pool_disabled(const Context& context, const std::string& name, bool disabled) {
  core::PoolSpec change;
  change.name = name;
  change.disabled = disabled;
  return change_pool(context, change);
}

namespace {

[[nodiscard]] Result<core::Pool> begin_deletion(const Context& context, const std::string& name) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_begin_deletion(snapshot, name);
  });
}

/// One commit of a deletion. Gone is gone, whoever did it in the end: its reply may have been lost.
[[nodiscard]] Result<core::PoolDeleted> delete_step(const Context& context, const std::string& name) {
  using Answer = core::PoolDeleted;
  bool was_there = false;
  const auto decide = [&](const core::Snapshot& snapshot, const Instant& now) -> core::Step<Answer> {
    auto step = core::plan_delete_pool(snapshot, name, now);
    const auto* const error = std::get_if<Error>(&step);
    const bool is_gone = error != nullptr && error->code == ErrorCode::not_found;
    if (was_there && is_gone) return core::Plan<Answer>{{true}, {}};
    was_there |= std::holds_alternative<core::Plan<Answer>>(step);
    return step;
  };
  return transact(context, TurnTaking::first, decide);
}

}  // namespace

Result<void> delete_pool(const Context& context, const std::string& name) {
  TRY(const std::vector<core::Pool> pools, list_pools(context));
  const auto before = std::find_if(pools.begin(), pools.end(), [&](const core::Pool& p) { return p.name == name; });
  const bool was_begun = before != pools.end() && before->being_deleted;
  const bool was_disabled = before != pools.end() && before->disabled;
  const auto begun = begin_deletion(context, name);
  // A pool that is gone may have left something.
  if (!begun && begun.error().code != ErrorCode::not_found) return fail(begun.error());
  for (;;) {
    const auto step = delete_step(context, name);
    if (step && step->complete) return {};
    if (step) continue;
    const bool is_in_use = begun && step.error().code == ErrorCode::refused_for_safety;
    if (is_in_use && !was_begun) TRY_VOID(set_pool_disabled(context, name, was_disabled));
    return fail(step.error());
  }
}

Result<core::PoolsSplit> split_pool(const Context& context, const core::PoolSplit& split, bool apply) {
  if (!context.store.capabilities().atomic_commit) {
    return fail(ErrorCode::refused_by_configuration,
                "this store cannot replace a pool in one commit: a pool is not split there");
  }
  return transact(context, apply ? TurnTaking::first : TurnTaking::before_writing,
                  [&](const core::Snapshot& snapshot, const Instant& now) -> core::Step<core::PoolsSplit> {
                    auto step = core::plan_split_pool(snapshot, split, now);
                    if (auto* plan = std::get_if<core::Plan<core::PoolsSplit>>(&step); plan != nullptr && !apply) {
                      plan->writes.clear();
                    }
                    return step;
                  });
}

Result<std::vector<core::Reservation>> list_reservations(const Context& context) {
  std::vector<core::Reservation> found;
  TRY_VOID(for_each_record(
      context, {core::Kind::reservation, ""},
      [&](store::Record& record) { found.push_back(std::move(std::get<core::Reservation>(*record.value))); },
      OnDamage::skip));
  return found;
}

Result<bool> create_reservation(const Context& context, const core::Reservation& wanted) {
  return transact(context, TurnTaking::first, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_create_reservation(snapshot, wanted);
  });
}

Result<void> delete_reservation(const Context& context, const std::string& name) {
  using Answer = core::ReservationDeleted;
  bool was_there = false;
  const auto decide = [&](const core::Snapshot& snapshot, const Instant&) -> core::Step<Answer> {
    auto step = core::plan_delete_reservation(snapshot, name);
    const auto* const error = std::get_if<Error>(&step);
    // Gone is gone, whoever did it in the end: its reply may have been lost.
    if (was_there && error != nullptr && error->code == ErrorCode::not_found) return core::Plan<Answer>{{}, {}};
    was_there |= std::holds_alternative<core::Plan<Answer>>(step);
    return step;
  };
  TRY_VOID(transact(context, TurnTaking::first, decide));
  return {};
}

}  // namespace croft::engine
