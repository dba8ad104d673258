#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ipam/decide/assign.h"
#include "ipam/decide/explain.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/use/batch.h"
#include "ipam/use/past_living.h"
#include "ipam/use/transact.h"

namespace croft::engine {

/// Assigns addresses to an owner, durably, or says why not as a value. Asked again with the same owner it gives the
/// same answer and writes nothing. On a store without atomic commits each record is a commit: what a call that failed
/// has got by then its DEL releases. The absent ones among `pools` are made first, as ensure_pools does; when all are
/// there that costs no read of its own. With `living` no address is
/// given that somebody on the node lives with (PastLiving).
[[nodiscard]] Result<core::AssignAnswer> assign(const Context& context, const core::AssignRequest& request,
                                                const std::vector<core::PoolSpec>& pools = {},
                                                const Living* living = nullptr);

/// The same as a call of a batch: what is refused, held before, or needs pools that are absent goes alone, by assign().
/// `request`, `pools` and `living` must outlive the call, and so must `answer`, which is set when it is done.
[[nodiscard]] BatchedCall assign_in_batch(const core::AssignRequest& request, const std::vector<core::PoolSpec>& pools,
                                          Deadline not_after, core::Assigned& answer, const Living* living = nullptr);

/// Claims the node's next block before it is needed (core::plan_claim_ahead), by what a memory says; nothing when it is
/// not needed, or somebody else was quicker. Only the node, pools, namespace and limits of `like` count.
[[nodiscard]] std::optional<core::ClaimedAhead> claim_ahead(const Context& direct, store::Store& cached,
                                                            const core::AssignRequest& like, net::Family family,
                                                            std::uint32_t least_free);
/// Gives such a block back if it was not used since. False: it was, or is the node's no more. Errors: of the store.
[[nodiscard]] Result<bool> give_back_ahead(const Context& context, const core::AffinityOwner& node,
                                           const core::ClaimedAhead& ahead);

/// Explains the address that an ADD would get now, or its refusal; changes nothing (core::plan_explain). The owner is
/// made up: that it holds nothing is not asked. Without the right to read the node it is told as far as no pool selects
/// nodes; error: permission_denied where one does.
[[nodiscard]] Result<core::Explanation> explain(const Context& context, const core::AssignRequest& request);

}  // namespace croft::engine
