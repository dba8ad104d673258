#include "ipam/use/default_pools.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"

namespace croft::engine {
namespace {

/// One that is half made only where there is no other.
[[nodiscard]] Result<std::optional<core::Pool>> pool_of_family(const Context& context, net::Family family) {
  TRY(std::vector<core::Pool> pools, list_pools(context));
  std::optional<core::Pool> begun;
  for (core::Pool& pool : pools) {
    if (pool.cidr.family() != family) continue;
    if (!pool.being_made) return std::optional(std::move(pool));
    if (!begun) begun = std::move(pool);
  }
  return begun;
}

/// A half made pool of the family, where there is no other: what to do with it.
[[nodiscard]] Error is_half_made(const core::Pool& pool, const core::PoolSpec& wanted) {
  return {ErrorCode::refused_by_configuration,
          fmt::format("pool {} ({}) was begun and never enabled, and is not the one that is wanted ({}): `croft pool "
                      "enable {}` completes it, `croft pool disable {}` and `croft pool delete {}` make room",
                      pool.name, pool.cidr.to_string(),
                      pool.name != wanted.name ? fmt::format("pool {}", wanted.name) : core::disagreement(pool, wanted),
                      pool.name, pool.name, pool.name),
          {}};
}

[[nodiscard]] Result<DefaultPool> ensure_one(const Context& context, const core::PoolSpec& spec,
                                             const DefaultPoolsOptions& options) {
  using Outcome = DefaultPool::Outcome;
  const net::Family family = spec.cidr.family();
  TRY(auto there, pool_of_family(context, family));
  const bool is_begun = there && there->being_made;
  if (there && !is_begun) return DefaultPool{Outcome::there, *std::move(there)};
  if (is_begun && (there->name != spec.name || !core::is_to_be_completed(*there, spec))) {
    return fail(is_half_made(*there, spec));
  }
  TRY(core::Pool pool, core::make_pool(spec));
  if (options.taken) {
    TRY(const std::vector<TakenSpace> taken, options.taken());
    TRY_VOID(check_space(spec, taken));
  }
  if (options.only_look) return DefaultPool{Outcome::to_be_made, std::move(pool)};
  auto created = create_pool(context, spec);
  if (created) {
    const bool was_there = created->existed_before && !created->was_completed;
    return DefaultPool{was_there ? Outcome::there : Outcome::made, std::move(created->pool)};
  }
  // Another one was first, maybe with another CIDR; or it is our own, which could not be enabled: that is no success.
  TRY(there, pool_of_family(context, family));
  const bool is_lost_race =
      created.error().code == ErrorCode::conflict || created.error().code == ErrorCode::already_exists;
  if (there && (is_lost_race || !there->disabled)) return DefaultPool{Outcome::there, *std::move(there)};
  return fail(std::move(created.error()));
}

}  // namespace

Result<std::vector<DefaultPool>> ensure_default_pools(const Context& context, const std::vector<core::PoolSpec>& specs,
                                                      const DefaultPoolsOptions& options) {
  std::vector<DefaultPool> all;
  for (const core::PoolSpec& spec : specs) {
    TRY(DefaultPool one, ensure_one(context, spec, options));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace croft::engine
