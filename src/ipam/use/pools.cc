#include "ipam/use/pools.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "ipam/decide/draft.h"
#include "ipam/use/inspect.h"
#include "register/service.h"

namespace croft::engine {
namespace {

void add_addresses(const core::Service& service, std::vector<TakenSpace>& taken) {
  for (const std::string& text : service.cluster_ips) {
    const auto address = net::parse_address_leniently(text);  // or kHeadless
    if (!address) continue;
    taken.push_back({fmt::format("address {} of Service {}, whose range nothing tells", address->to_string(),
                                 echo(service.name.to_string())),
                     net::Prefix::containing(*address, net::bit_length(address->family()))});
  }
}

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

[[nodiscard]] Result<DefaultPool> ensure_one(const Context& context, const core::PoolSpec& spec,
                                             const DefaultPoolsOptions& options) {
  using Outcome = DefaultPool::Outcome;
  const net::Family family = spec.cidr.family();
  TRY(auto there, pool_of_family(context, family));
  const bool is_begun = there && there->being_made;
  if (there && !is_begun) return DefaultPool{Outcome::there, *std::move(there)};
  if (is_begun && (there->name != spec.name || !core::is_to_be_completed(*there, spec))) {
    // Half made, where there is no other: what to do with it.
    return fail(
        ErrorCode::refused_by_configuration,
        "pool {0} ({1}) was begun and never enabled, and is not the one that is wanted ({2}): `croft pool enable "
        "{0}` completes it, `croft pool disable {0}` and `croft pool delete {0}` make room",
        there->name, there->cidr,
        there->name != spec.name ? "pool " + spec.name : core::contradictions_between(*there, spec));
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
  return transact(context, TurnTaking::first, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_create_pool(snapshot, spec);
  });
}

Result<void> ensure_pools(const Context& context, const std::vector<core::PoolSpec>& specs) {
  Loader loader(context.store, deadline_of_use_case(context));
  core::Missing pools;
  pools.lists = {{core::Kind::pool, ""}};
  TRY_VOID(loader.load(pools));
  for (const core::PoolSpec& spec : specs) {
    if (core::are_pools_there(loader.snapshot(), {spec}) == true) continue;
    const auto created = create_pool(context, spec);
    if (created) continue;
    Error error = created.error();
    if (error.code == ErrorCode::already_exists) error.code = ErrorCode::refused_by_configuration;
    return fail(std::move(error));
  }
  return {};
}

Result<core::Pool> change_pool(const Context& context, const core::PoolSpec& change) {
  return decided(context, core::plan_change_pool, change);
}

Result<core::Pool> set_pool_disabled(const Context& context, const std::string& name, bool disabled) {
  core::PoolSpec change;
  change.name = name;
  change.disabled = disabled;
  return change_pool(context, change);
}

Result<void> delete_pool(const Context& context, const std::string& name) {
  TRY(const std::vector<core::Pool> pools, list_pools(context));
  const auto before = std::ranges::find(pools, name, &core::Pool::name);
  const bool was_begun = before != pools.end() && before->being_deleted;
  const bool was_disabled = before != pools.end() && before->disabled;
  const auto begun = decided(context, core::plan_begin_deletion, name);
  // A pool that is gone may have left something.
  if (!begun && begun.error().code != ErrorCode::not_found) return fail(begun.error());
  for (;;) {
    const auto step = transact_away(context, core::PoolDeleted{true}, [&](const auto& snapshot, const Instant& now) {
      return core::plan_delete_pool(snapshot, name, now);
    });
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
                  [&](const core::Snapshot& snapshot, const Instant& now) {
                    return written_if(apply, core::plan_split_pool(snapshot, split, now));
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
  return decided(context, core::plan_create_reservation, wanted);
}

Result<void> delete_reservation(const Context& context, const std::string& name, bool apply) {
  TRY_VOID(
      transact_away(context, core::ReservationDeleted(), [&](const core::Snapshot& snapshot, const Instant& /*now*/) {
        return written_if(apply, core::plan_delete_reservation(snapshot, name));
      }));
  return {};
}

Result<void> check_space(const core::PoolSpec& spec, const std::vector<TakenSpace>& taken) {
  for (const TakenSpace& one : taken) {
    if (!one.cidr.overlaps(spec.cidr)) continue;
    return fail(ErrorCode::refused_by_configuration, "cidr {} of pool {} overlaps {}; give another CIDR", spec.cidr,
                spec.name, one.whose);
  }
  return {};
}

Result<ServiceSpace> service_space(const Context& context) {
  const store::Capabilities can = context.store.capabilities();
  const bool sees_services = can.services == core::System::kubernetes && !can.lacks.contains(core::Kind::service_cidr);
  if (!sees_services || !can.lacks.contains(core::Kind::range_allocation)) return ServiceSpace{};
  TRY(const auto ranges, context.store.list({core::Kind::service_cidr, ""}, deadline_of_use_case(context)));
  if (!ranges.empty()) return ServiceSpace{};
  ServiceSpace space;
  auto done = for_each_record(
      context, {core::Kind::service, ""},
      [&](const store::Record& record) { add_addresses(std::get<core::Service>(*record.value), space.taken); },
      OnDamage::skip);
  if (done) return space;
  if (done.error().code != ErrorCode::permission_denied) return fail(std::move(done.error()));
  return ServiceSpace{{}, std::move(done.error())};
}

Result<std::vector<TakenSpace>> service_cidrs(const Context& context) {
  std::vector<TakenSpace> taken;
  if (context.store.capabilities().lacks.contains(core::Kind::service_cidr)) return taken;
  TRY_VOID(for_each_record(
      context, {core::Kind::service_cidr, ""},
      [&](const store::Record& record) {
        for (const net::Prefix& cidr : std::get<core::ServiceCidrObject>(*record.value).cidrs) {
          taken.push_back({fmt::format("ServiceCIDR {} ({})", echo(record.key.name), cidr.to_string()), cidr});
        }
      },
      OnDamage::skip));
  return taken;
}

Result<std::vector<PoolInTakenSpace>> pools_in_taken_space(const Context& context,
                                                           const std::vector<TakenSpace>& taken) {
  std::vector<PoolInTakenSpace> found;
  if (taken.empty()) return found;
  Loader loader(context.store, deadline_of_use_case(context));
  TRY_VOID(read_for(context.clock, loader, [&](core::Reader& reader) {
    const core::PoolTable pools(reader);
    found.clear();
    for (const core::Pool* pool : pools.pools()) {
      if (pool->disabled) continue;
      for (const TakenSpace& one : taken) {
        if (!one.cidr.overlaps(pool->cidr)) continue;
        const net::Prefix& shared = one.cidr.length() > pool->cidr.length() ? one.cidr : pool->cidr;
        if (!pools.reserved()->covers(shared)) found.push_back({pool->name, shared, one.whose});
      }
    }
  }));
  return found;
}

Result<std::vector<DefaultPool>> ensure_default_pools(const Context& context, const std::vector<core::PoolSpec>& specs,
                                                      const DefaultPoolsOptions& options) {
  std::vector<DefaultPool> all;
  for (const core::PoolSpec& spec : specs) {
    TRY(DefaultPool one, ensure_one(context, spec, options));
    all.push_back(std::move(one));
  }
  return all;
}

Result<core::IpamConfig> read_config(const Context& context) {
  const Deadline deadline = Deadline::after(context.clock.now(), context.time_limit);
  TRY(const auto record, get_sound(context, core::ipam_config_key(), deadline));
  return record ? std::get<core::IpamConfig>(*record->value) : core::IpamConfig();
}

Result<core::IpamConfig> set_config(const Context& context, const core::ConfigChange& change) {
  return decided(context, core::plan_set_config, change);
}

}  // namespace croft::engine
