#include "engine/pools.h"

#include <algorithm>

#include "engine/inspect.h"

namespace croft::engine {

Result<core::PoolCreated> create_pool(const Context& context, const core::PoolSpec& spec) {
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
    if (existing != pools.end() && core::disagreement(*existing, spec).empty()) continue;
    // One that is there and damaged is not made anew; it serves nobody, and the others do.
    if (existing == pools.end()) {
      TRY(const auto record, context.store.get(core::pool_key(spec.name), deadline_of_use_case(context)));
      if (record && core::damage_of(record->value) != nullptr) continue;
    }
    const auto created = create_pool(context, spec);
    if (created) continue;
    Error error = created.error();
    if (error.code == ErrorCode::already_exists) error.code = ErrorCode::refused_by_configuration;
    return fail(std::move(error));
  }
  return {};
}

Result<core::Pool> set_pool_disabled(const Context& context, const std::string& name, bool disabled) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_set_pool_disabled(snapshot, name, disabled);
  });
}

Result<void> delete_pool(const Context& context, const std::string& name) {
  TRY(const std::vector<core::Pool> pools, list_pools(context));
  const auto before = std::find_if(pools.begin(), pools.end(), [&](const core::Pool& p) { return p.name == name; });
  const bool was_enabled = before != pools.end() && !before->disabled;
  TRY_VOID(set_pool_disabled(context, name, true));
  for (;;) {
    const auto step = transact(context, TurnTaking::first, [&](const core::Snapshot& snapshot, const Instant& now) {
      return core::plan_delete_pool(snapshot, name, now);
    });
    if (step && step->complete) return {};
    if (step) continue;
    if (step.error().code == ErrorCode::refused_for_safety && was_enabled) {
      TRY_VOID(set_pool_disabled(context, name, false));
    }
    return fail(step.error());
  }
}

Result<core::PoolsSplit> split_pool(const Context& context, const core::PoolSplit& split, bool apply) {
  if (!context.store.capabilities().atomic_commit) {
    return fail(ErrorCode::refused_by_configuration,
                "this store cannot replace a pool in one commit: a pool is not split there");
  }
  return transact(context, apply ? TurnTaking::first : TurnTaking::before_writing,
                  [&](const core::Snapshot& snapshot, const Instant& now) {
                    auto step = core::plan_split_pool(snapshot, split, now);
                    if (auto* plan = std::get_if<core::Plan<core::PoolsSplit>>(&step); plan != nullptr && !apply) {
                      plan->writes.clear();
                    }
                    return step;
                  });
}

}  // namespace croft::engine
