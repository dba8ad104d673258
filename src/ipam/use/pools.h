#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ipam/decide/pool_changes.h"
#include "ipam/decide/pool_split.h"
#include "ipam/use/taken_space.h"
#include "ipam/use/transact.h"

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

}  // namespace croft::engine
