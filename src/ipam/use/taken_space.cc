#include "ipam/use/taken_space.h"

#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/lenient.h"
#include "ipam/decide/draft.h"
#include "ipam/use/each_record.h"
#include "register/service.h"

namespace croft::engine {
namespace {

void add_addresses(const core::Service& service, std::vector<TakenSpace>& taken) {
  for (const std::string& text : service.cluster_ips) {
    const auto address = net::parse_address_leniently(text);  // or kHeadless
    if (!address) continue;
    taken.push_back({fmt::format("address {} of Service {}, whose range nothing tells", address->to_string(),
                                 net::echo(service.name.to_string())),
                     net::Prefix::containing(*address, net::bit_length(address->family()))});
  }
}

}  // namespace

Result<void> check_space(const core::PoolSpec& spec, const std::vector<TakenSpace>& taken) {
  for (const TakenSpace& one : taken) {
    if (!one.cidr.overlaps(spec.cidr)) continue;
    return fail(ErrorCode::refused_by_configuration, fmt::format("cidr {} of pool {} overlaps {}; give another CIDR",
                                                                 spec.cidr.to_string(), spec.name, one.whose));
  }
  return {};
}

Result<ServiceSpace> service_space(const Context& context) {
  const store::Capabilities can = context.store.capabilities();
  const bool sees_services = can.services == core::System::kubernetes && !can.lacks.contains(core::Kind::service_cidr);
  if (!sees_services || !can.lacks.contains(core::Kind::range_allocation)) return ServiceSpace{};
  TRY(const store::Page ranges,
      context.store.list({core::Kind::service_cidr, "", "", 1}, deadline_of_use_case(context)));
  if (!ranges.records.empty()) return ServiceSpace{};
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
          taken.push_back({fmt::format("ServiceCIDR {} ({})", net::echo(record.key.name), cidr.to_string()), cidr});
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

}  // namespace croft::engine
