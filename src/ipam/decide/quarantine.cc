#include "ipam/decide/quarantine.h"

#include <utility>

#include "base/time_text.h"
#include "ipam/decide/draft.h"
#include "register/quarantine.h"

namespace croft::core {

Step<std::vector<net::Address>> plan_quarantine(const Snapshot& snapshot, const Owner& owner, const std::string& node,
                                                const std::vector<FoundAlive>& found, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<std::vector<net::Address>>> {
    const PoolTable pools(reader);
    for (const FoundAlive& one : found) reader.ask(block_key(one.assigned.block));
    TRY_VOID(reader.ready());
    Draft draft(reader, pools, now);
    std::vector<net::Address> kept;
    for (const FoundAlive& one : found) {
      const net::Address& address = one.assigned.address;
      TRY(auto block, draft.block(one.assigned.block));
      const auto ordinal = net::ordinal_of(one.assigned.block, address);
      if (!block || !ordinal || state_of(*block, *ordinal) != AddressState::held) continue;
      const Attribute& holder = *attribute_of(*block, *ordinal);
      if (!holder.handle_id || !matches(owner, *holder.handle_id, holder.secondary)) continue;
      if (sequence_of(*block, *ordinal) != one.assigned.sequence_number) continue;
      const Attribute quarantined = in_quarantine(address, node, one.device, now.wall);
      auto taken =
          take_address(without_unused_attributes(with_freed(*std::move(block), *ordinal)), address, quarantined);
      if (!taken) return fail(taken.error());
      draft.put(std::move(taken->block), {handle_of(owner), *quarantined.handle_id});
      kept.push_back(address);
    }
    return finish(draft, std::move(kept));
  });
}

void add_quarantined_by(const std::string& node, const Block& block, std::vector<InQuarantine>& found) {
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    const net::Ordinal ordinal(i);
    const Attribute* holder = attribute_of(block, ordinal);
    if (holder == nullptr || !is_in_quarantine(*holder)) continue;
    const auto where = holder->secondary.find(kNodeKey);
    if (where == holder->secondary.end() || where->second != node) continue;
    const auto recorded = holder->secondary.find(kTimestampKey);
    std::optional<WallTime> since;
    if (recorded != holder->secondary.end()) {
      if (const auto time = parse_go_utc_text(recorded->second)) since = *time;
    }
    found.push_back(
        {{net::address_at(block.cidr, ordinal), holder->handle_id, sequence_of(block, ordinal), block.cidr}, since});
  }
}

}  // namespace croft::core
