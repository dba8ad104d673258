#include "ipam/decide/keep_out.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/joined.h"
#include "ipam/decide/draft.h"

namespace croft::core {
Step<KeptOut> plan_keep_out(const Snapshot& snapshot, const std::string& name,
                            const std::vector<net::Prefix>& addresses) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<KeptOut>> {
    const auto key = reservation_key(name);
    const Reservation* const there = reader.get(key);
    const PoolTable pools(reader);
    TRY_VOID(reader.ready());
    Plan<KeptOut> plan;
    Reservation reservation = there != nullptr ? *there : Reservation{name, {}};
    for (const net::Prefix& prefix : addresses) {
      if (pools.reserved()->covers(prefix)) continue;
      plan.answer.added.push_back(prefix);
      reservation.cidrs.push_back(prefix);
    }
    if (!plan.answer.added.empty()) plan.writes.push_back(to_put(key, std::move(reservation)));
    return plan;
  });
}

std::string reservation_name_of_range(const net::Prefix& range) {
  std::string name = "host-local-" + range.to_string();
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == ':' || c == '/'; }, '-');
  return name;
}

Step<bool> plan_create_reservation(const Snapshot& snapshot, const Reservation& wanted) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    TRY_VOID(check_object_name("reservation", wanted.name));
    const std::string of_pools = reservation_name_of("");
    if (wanted.name.starts_with(of_pools)) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("reservation {}: names that begin with {} are of pools; choose another name", wanted.name,
                              of_pools));
    }
    if (wanted.cidrs.empty()) {
      return fail(ErrorCode::invalid_argument, fmt::format("reservation {} keeps nothing: give a prefix", wanted.name));
    }
    const auto key = reservation_key(wanted.name);
    const Reservation* const there = reader.get(key);
    TRY_VOID(reader.ready());
    if (there == nullptr) return Plan<bool>{false, {to_put(key, wanted)}};
    auto has = there->cidrs, wants = wanted.cidrs;
    std::ranges::sort(has);
    std::ranges::sort(wants);
    if (has == wants) return Plan<bool>{true, {}};
    return fail(ErrorCode::already_exists, fmt::format("reservation {} exists and keeps other addresses: {}",
                                                       wanted.name, net::joined(there->cidrs)));
  });
}

Step<ReservationDeleted> plan_delete_reservation(const Snapshot& snapshot, const std::string& name) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<ReservationDeleted>> {
    const auto key = reservation_key(name);
    const Reservation* const there = reader.get(key);
    const PoolTable pools(reader);
    TRY_VOID(reader.ready());
    if (there == nullptr) return fail(ErrorCode::not_found, fmt::format("there is no reservation {}", net::echo(name)));
    for (const Pool* pool : pools.pools()) {
      if (reservation_name_of(pool->name) != name) continue;
      return fail(ErrorCode::refused_for_safety,
                  fmt::format("reservation {} keeps pods from the gateway and the ends of pool {}: it goes with the "
                              "pool",
                              name, pool->name));
    }
    return Plan<ReservationDeleted>{{}, {to_delete(key)}};
  });
}

}  // namespace croft::core
