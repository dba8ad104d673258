#include "ipam/decide/release.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "ipam/decide/draft.h"
#include "ipam/decide/pool_choice.h"

namespace croft::core {
namespace {

/// The block without what is released; nobody's when its owner may not keep it empty.
Block released_from(Reader& reader, const PoolTable& pools, Block block, const std::vector<net::Ordinal>& ordinals,
                    const Instant& now) {
  const Cooldowns cooldowns = pools.cooldowns_of(block.cidr);
  block = release(std::move(block), ordinals, cooldowns, now);
  if (is_empty(block) && !keeps_affinity(reader, pools, block)) {
    block.affinity.reset();
    block.affinity_claim_time.reset();
  }
  return block;
}

}  // namespace

Step<Released> plan_release_owner(const Snapshot& snapshot, const Owner& owner, const Instant& now) {
  const std::string handle_id = handle_of(owner);
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Released>> {
    const Handle* handle = reader.get(handle_key(handle_id));
    TRY_VOID(reader.ready());
    if (handle == nullptr) return Plan<Released>{};  // two of the three DELs of a pod: they read the handle alone

    const std::vector<HandleBlock> blocks = blocks_of(*handle);
    const PoolTable pools(reader);
    for (const HandleBlock& one : blocks) reader.ask(block_key(one.cidr));
    TRY_VOID(reader.ready());

    Released released;
    Draft draft(reader, pools, now);
    for (const auto& [cidr, count, name] : blocks) {
      TRY(auto block, draft.block(cidr));
      if (!block) {
        draft.drop_count(handle_id, name);
        continue;
      }
      const std::vector<net::Ordinal> ordinals = held_by(*block, owner);
      if (ordinals.empty() && count_of_handle(*block, handle_id) >= count) continue;
      Block rest =
          ordinals.empty() ? *std::move(block) : released_from(reader, pools, *std::move(block), ordinals, now);
      draft.put(std::move(rest), {handle_id});
      for (const net::Ordinal ordinal : ordinals) released.addresses.push_back(net::address_at(cidr, ordinal));
    }
    return finish(draft, std::move(released));
  });
}

bool is_still_held_as_named(const AddressToRelease& wanted, const Block& block, net::Ordinal ordinal,
                            const Attribute& holder) {
  return (!wanted.handle_id || wanted.handle_id == holder.handle_id) &&
         (!wanted.sequence_number || *wanted.sequence_number == sequence_of(block, ordinal));
}

Step<AddressReleases> plan_release_addresses(const Snapshot& snapshot, const net::Prefix& cidr,
                                             const std::vector<AddressToRelease>& addresses, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<AddressReleases>> {
    const PoolTable pools(reader);
    Draft draft(reader, pools, now);
    TRY(auto block, draft.block(cidr));
    TRY_VOID(reader.ready());

    AddressReleases answer;
    std::vector<net::Ordinal> ordinals;
    std::vector<std::string> handle_ids;
    for (const AddressToRelease& wanted : addresses) {
      const auto ordinal = net::ordinal_of(cidr, wanted.address);
      CROFT_ASSERT(ordinal.has_value());
      if (!block || state_of(*block, *ordinal) != AddressState::held) {
        answer.not_held.push_back(wanted.address);
        continue;
      }
      const Attribute& holder = *attribute_of(*block, *ordinal);
      if (!is_still_held_as_named(wanted, *block, *ordinal, holder)) {
        answer.mismatched.push_back(wanted.address);
        continue;
      }
      if (std::find(ordinals.begin(), ordinals.end(), *ordinal) != ordinals.end()) continue;
      ordinals.push_back(*ordinal);
      if (holder.handle_id) handle_ids.push_back(*holder.handle_id);
      answer.released.push_back(wanted.address);
    }
    if (ordinals.empty()) return Plan<AddressReleases>{std::move(answer), {}};
    draft.put(released_from(reader, pools, *std::move(block), ordinals, now), handle_ids);
    return finish(draft, std::move(answer));
  });
}

}  // namespace croft::core
