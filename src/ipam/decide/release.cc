#include "ipam/decide/release.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "base/assert.h"
#include "base/planted.h"
#include "base/time_text.h"
#include "ipam/decide/draft.h"
#include "ipam/decide/pool_choice.h"
#include "register/handle_blocks.h"

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

/// What plan_release_old_handle means of that which bears the handle.
bool is_of_old_form(const Attribute& holder, const std::string& handle_id) {
  const auto pod = holder.secondary.find(kPodKey);
  const auto name_space = holder.secondary.find(kNamespaceKey);
  const bool names_a_pod = pod != holder.secondary.end() && name_space != holder.secondary.end();
  if (names_a_pod) return name_space->second + "." + pod->second == handle_id;
  return holder.secondary.empty();
}

/// Whether the store has no place for such a handle, so that nobody could ever get anything by it.
bool can_never_be(const Snapshot& snapshot, const Key& handle) {
  const std::optional<Value>* stored = snapshot.find(handle);
  const Error* why = stored != nullptr && stored->has_value() ? damage_of(**stored) : nullptr;
  return why != nullptr && why->code == ErrorCode::invalid_argument;
}

/// Of what the owner holds in a block, that which is meant; the rest is noted as kept.
std::vector<net::Ordinal> meant_of(const Block& block, std::vector<net::Ordinal> held, const ReleaseScope& scope,
                                   Released& released) {
  const auto seen = scope.found.find(block.cidr);
  const auto is_meant = [&](net::Ordinal ordinal) {
    if (is_planted("sequence_ignored")) return true;
    if (seen == scope.found.end()) return !is_made_since(*attribute_of(block, ordinal), scope);
    const auto known = seen->second.find(ordinal);
    return known != seen->second.end() && known->second == sequence_of(block, ordinal);
  };
  const auto kept = std::stable_partition(held.begin(), held.end(), is_meant);
  for (auto it = kept; it != held.end(); ++it) released.kept.push_back(net::address_at(block.cidr, *it));
  held.erase(kept, held.end());
  HeldNumbers& found = released.found[block.cidr];
  for (const net::Ordinal ordinal : held) found.emplace(ordinal, sequence_of(block, ordinal));
  return held;
}

/// The blocks to look at, in their order: what the handle named at the first look.
[[nodiscard]] Result<std::vector<net::Prefix>> blocks_to_look_at(const Handle* handle, const ReleaseScope& scope,
                                                                 Released& released) {
  std::vector<net::Prefix> all;
  if (scope.blocks) {
    const std::size_t end = std::min(scope.blocks->size(), scope.done + kReleaseBlocksMax);
    all.assign(scope.blocks->begin() + static_cast<std::ptrdiff_t>(scope.done),
               scope.blocks->begin() + static_cast<std::ptrdiff_t>(end));
    released.unfinished = end < scope.blocks->size();
    return all;
  }
  if (handle == nullptr) return all;
  const HandleBlocks named = blocks_of(*handle);
  if (named.damage) return fail(*named.damage);
  for (const auto& [cidr, count, name] : named.blocks) released.named.push_back(cidr);
  all.assign(released.named.begin(),
             released.named.begin() + static_cast<std::ptrdiff_t>(std::min(released.named.size(), kReleaseBlocksMax)));
  released.unfinished = all.size() < released.named.size();
  return all;
}

/// Whether a handle that names a block counts otherwise than that has it.
bool counts_otherwise(const Handle* handle, const std::optional<Block>& block, const net::Prefix& cidr) {
  if (handle == nullptr) return false;
  const auto counted = handle->blocks.find(cidr.to_string());
  if (counted == handle->blocks.end()) return false;
  return counted->second != (block ? count_of_handle(*block, handle->id) : 0);
}

/// Releases the ordinals that `held` finds in the blocks of a handle.
template <class Held>
Step<Released> release_from_handle(const Snapshot& snapshot, const std::string& handle_id, const Instant& now,
                                   const ReleaseScope& scope, Held held) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Released>> {
    if (can_never_be(snapshot, handle_key(handle_id))) return Plan<Released>{};
    const Handle* handle = reader.get(handle_key(handle_id));
    TRY_VOID(reader.ready());

    Released released;
    TRY(const auto blocks, blocks_to_look_at(handle, scope, released));
    if (blocks.empty()) {  // two of the three DELs of a pod: they read the handle alone
      released.ends_handle = handle == nullptr;
      return Plan<Released>{std::move(released), {}};
    }
    const PoolTable pools(reader);
    for (const net::Prefix& cidr : blocks) reader.ask(block_key(cidr));
    TRY_VOID(reader.ready());

    Draft draft(reader, pools, now);
    for (const net::Prefix& cidr : blocks) {
      TRY(auto block, draft.block(cidr));
      released.at_odds |= counts_otherwise(handle, block, cidr);
      std::vector<net::Ordinal> ordinals;
      if (block) {
        ordinals = meant_of(*block, held(*block), scope, released);
      } else {
        released.found[cidr] = {};
      }
      if (!ordinals.empty()) {
        Block after = released_from(reader, pools, *std::move(block), ordinals, now);
        if (draft.size() == 0) {
          draft.put(std::move(after), {handle_id});
        } else if (!draft.put_if_it_fits(std::move(after), nullptr, {handle_id})) {
          released.unfinished = true;
          break;
        }
        for (const net::Ordinal ordinal : ordinals) released.addresses.push_back(net::address_at(cidr, ordinal));
      }
      ++released.done;
    }
    Plan<Released> plan = finish(draft, std::move(released));
    plan.answer.ends_handle = std::ranges::any_of(plan.writes, [&](const PlannedWrite& write) {
      return write.key == handle_key(handle_id) && !write.value && !write.only_check;
    });
    return plan;
  });
}

}  // namespace

void ReleaseScope::note_look(const Released& decided) {
  if (!blocks) blocks = decided.named;
  // Of a block that was looked at before, the first look counts.
  found.insert(decided.found.begin(), decided.found.end());
}

bool is_made_since(const Attribute& holder, const ReleaseScope& scope) {
  if (!scope.began) return false;
  const auto text = holder.secondary.find(kTimestampKey);
  const auto made = text != holder.secondary.end() ? parse_go_utc_text(text->second)
                                                   : Result<WallTime>(fail(ErrorCode::not_found, ""));
  if (!made) return false;
  const Instant& began = *scope.began;
  if (!scope.looked_at || scope.looked_at->boot != began.boot) return *made > began.wall;
  const Instant& looked_at = *scope.looked_at;
  const std::chrono::nanoseconds span = looked_at.since_boot - began.since_boot;
  const auto is_within = [&](WallTime after, WallTime until) { return *made > after && *made <= until; };
  return is_within(began.wall, began.wall + span) || is_within(looked_at.wall - span, looked_at.wall);
}

Step<Released> plan_release_owner(const Snapshot& snapshot, const Owner& owner, const Instant& now,
                                  const ReleaseScope& scope) {
  return release_from_handle(snapshot, handle_of(owner), now, scope,
                             [&](const Block& block) { return held_by(block, owner); });
}

Step<Released> plan_release_old_handle(const Snapshot& snapshot, const std::string& handle_id, const Instant& now,
                                       const ReleaseScope& scope) {
  return release_from_handle(snapshot, handle_id, now, scope, [&](const Block& block) {
    std::vector<net::Ordinal> ordinals = held_by_handle(block, handle_id);
    std::erase_if(ordinals, [&](net::Ordinal o) { return !is_of_old_form(*attribute_of(block, o), handle_id); });
    return ordinals;
  });
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
      if ((wanted.handle_id && wanted.handle_id != holder.handle_id) ||
          (wanted.sequence_number && *wanted.sequence_number != sequence_of(*block, *ordinal))) {
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
