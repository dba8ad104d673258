#include "core/block/keep_out.h"

#include <algorithm>

#include "core/block/draft.h"

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
      if (pools.reserved().covers(prefix)) continue;
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

}  // namespace croft::core
