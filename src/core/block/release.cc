#include "core/block/release.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "core/block/draft.h"

namespace croft::core {
namespace {

/// The common end of a decision that only drafts changes.
template <class Answer>
Step<Answer> finish(const Reader& reader, Draft& draft, Answer answer) {
  std::vector<PlannedWrite> writes = draft.writes();
  if (!reader.complete()) return reader.missing();
  return Plan<Answer>{std::move(answer), std::move(writes)};
}

}  // namespace

Step<Released> plan_release_owner(const Snapshot& snapshot, const Owner& owner, const Instant& now) {
  Reader reader(snapshot);
  const std::string handle_id = handle_of(owner);
  const Handle* handle = reader.get<Handle>(handle_key(handle_id));
  if (!reader.complete()) return reader.missing();
  if (handle == nullptr) return Plan<Released>{};

  const PoolTable pools(reader);
  std::vector<net::Prefix> cidrs;
  for (const auto& [text, count] : handle->blocks) {
    const auto cidr = net::Prefix::parse(text);
    if (!cidr) return Error{ErrorCode::corrupt, "handle " + handle_id + ": " + cidr.error().message, {}};
    cidrs.push_back(*cidr);
    static_cast<void>(reader.get<Block>(block_key(*cidr)));
  }
  if (!reader.complete()) return reader.missing();

  Draft draft(reader, pools, now);
  Released released;
  std::size_t blocks_changed = 0;
  for (const net::Prefix& cidr : cidrs) {
    auto block = draft.block(cidr);
    if (!block) return block.error();
    if (!*block) continue;
    const auto ordinals = held_by(**block, owner);
    if (ordinals.empty()) continue;
    for (const net::Ordinal ordinal : ordinals) released.addresses.push_back(net::address_at(cidr, ordinal));
    draft.put(release(*std::move(*block), ordinals, pools.cooldown_of(cidr), now), {handle_id});
    if (++blocks_changed == kReleaseBlocksMax) break;
  }
  return finish(reader, draft, std::move(released));
}

Step<AddressReleases> plan_release_addresses(const Snapshot& snapshot, const net::Prefix& cidr,
                                             const std::vector<AddressToRelease>& addresses, const Instant& now) {
  Reader reader(snapshot);
  const PoolTable pools(reader);
  Draft draft(reader, pools, now);
  auto block = draft.block(cidr);
  if (!block) return block.error();
  if (!reader.complete()) return reader.missing();

  AddressReleases answer;
  std::vector<net::Ordinal> ordinals;
  std::vector<std::string> handle_ids;
  for (const AddressToRelease& wanted : addresses) {
    const auto ordinal = net::ordinal_of(cidr, wanted.address);
    CROFT_ASSERT(ordinal.has_value());
    if (!*block || state_of(**block, *ordinal) != AddressState::held) {
      answer.not_held.push_back(wanted.address);
      continue;
    }
    const Attribute& holder = *attribute_of(**block, *ordinal);
    if ((wanted.handle_id && wanted.handle_id != holder.handle_id) ||
        (wanted.sequence_number && *wanted.sequence_number != sequence_of(**block, *ordinal))) {
      answer.mismatched.push_back(wanted.address);
      continue;
    }
    if (std::find(ordinals.begin(), ordinals.end(), *ordinal) != ordinals.end()) continue;
    ordinals.push_back(*ordinal);
    if (holder.handle_id) handle_ids.push_back(*holder.handle_id);
    answer.released.push_back(wanted.address);
  }
  if (ordinals.empty()) return Plan<AddressReleases>{std::move(answer), {}};
  draft.put(release(*std::move(*block), ordinals, pools.cooldown_of(cidr), now), handle_ids);
  return finish(reader, draft, std::move(answer));
}

}  // namespace croft::core
