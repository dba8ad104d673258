#include "engine/default_pools.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/inspect.h"
#include "engine/pools.h"

namespace croft::engine {
namespace {

[[nodiscard]] Result<std::optional<core::Pool>> pool_of_family(const Context& context, net::Family family) {
  TRY(std::vector<core::Pool> pools, list_pools(context));
  const auto found =
      std::find_if(pools.begin(), pools.end(), [&](const core::Pool& pool) { return pool.cidr.family() == family; });
  if (found == pools.end()) return std::optional<core::Pool>();
  return std::optional(std::move(*found));
}

[[nodiscard]] Result<void> check_space(const core::PoolSpec& spec, const DefaultPoolsOptions& options) {
  if (!options.taken) return {};
  TRY(const std::vector<TakenSpace> taken, options.taken());
  for (const TakenSpace& one : taken) {
    if (!one.cidr.overlaps(spec.cidr)) continue;
    return fail(ErrorCode::refused_by_configuration, fmt::format("cidr {} of pool {} overlaps {}; give another CIDR",
                                                                 spec.cidr.to_string(), spec.name, one.whose));
  }
  return {};
}

[[nodiscard]] Result<DefaultPool> ensure_one(const Context& context, const core::PoolSpec& spec,
                                             const DefaultPoolsOptions& options) {
  using Outcome = DefaultPool::Outcome;
  const net::Family family = spec.cidr.family();
  TRY(auto there, pool_of_family(context, family));
  if (there) return DefaultPool{Outcome::there, *std::move(there)};
  TRY(core::Pool pool, core::make_pool(spec));
  TRY_VOID(check_space(spec, options));
  if (options.only_look) return DefaultPool{Outcome::to_be_made, std::move(pool)};
  auto created = create_pool(context, spec);
  if (created) {
    return DefaultPool{created->existed_before ? Outcome::there : Outcome::made, std::move(created->pool)};
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
