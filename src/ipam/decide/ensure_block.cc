#include <utility>

#include "ipam/decide/assign.h"
#include "ipam/decide/assignment.h"
#include "ipam/decide/blocks_of_others.h"
#include "ipam/decide/claim.h"
#include "ipam/decide/family_search.h"
#include "ipam/decide/own_blocks.h"

namespace croft::core {
namespace {

using net::Prefix;

[[nodiscard]] AssignFlow<Prefix> ensure_block(Assignment& in, net::Family family) {
  const AffinityOwner& node = in.request.node;
  static_cast<void>(in.node_labels());
  prefetch_own_blocks(in.reader, node, family);
  TRY_VOID(in.reader.ready());
  FamilySearch search(in, family, 1);
  TRY_VOID(search.choose());
  TRY(const auto own, search.own().any(in.reader, node, family, search.usable()));
  if (own) return *own;
  TRY_VOID(search.check_may_claim());
  for (const Pool* pool : search.usable()) {
    TRY(const ClaimChoice choice, choose_block_to_claim(in.reader, in.pools, *pool, node));
    if (!choice.block) {
      search.note_reason(*pool, choice.reason);
      continue;
    }
    TRY(Block made, in.make_block(*choice.block));
    in.draft.put_claimed(std::move(made), *pool, {});
    return *choice.block;
  }
  for (const Pool* pool : search.usable()) {
    TRY(auto found, find_abandoned(in, search, *pool, kAllBlocks));
    if (!found) continue;
    const Prefix cidr = found->cidr;
    in.draft.put_claimed(*std::move(found), *pool, {});
    return cidr;
  }
  return refuse(search.exhaustion());
}

}  // namespace

Step<EnsureAnswer> plan_ensure_block(const Snapshot& snapshot, const AssignRequest& request, net::Family family,
                                     const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<EnsureAnswer>> {
    Assignment in(reader, request, now);
    auto block = ensure_block(in, family);
    if (block) return Plan<EnsureAnswer>{*block, in.draft.writes()};
    if (Refusal* refusal = block.error().refusal()) return Plan<EnsureAnswer>{std::move(*refusal), {}};
    if (Error* error = block.error().error()) return fail(std::move(*error));
    return fail(Stop<>(*block.error().not_read()));
  });
}

}  // namespace croft::core
