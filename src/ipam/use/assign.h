#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/explain.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/use/batch.h"
#include "ipam/use/transact.h"
#include "register/snapshot.h"

// A register that was put back to an older state has as free what living pods have. The kernel of the node knows those
// of its own: it is asked between decision and commit, and an address that lives is passed over.

namespace croft::engine {

/// The device over which the kernel of this node leads to somebody who lives with the address (os/host_route.h);
/// nothing: it leads to nobody. May be called from several threads.
using DeviceOf = std::function<Result<std::optional<std::string>>(const net::Address& address)>;

/// How an ADD learns who lives on its node.
struct Living {
  DeviceOf device_of = nullptr;  ///< null: nobody is asked
  /// Takes one line: what was passed over, or that the kernel could not be asked. May be called from several threads.
  std::function<void(const std::string& line)> warn = [](const std::string& /*line*/) {};
};

/// How many addresses one decision passes over: more than a node has pods.
inline constexpr std::size_t kLivingMax = 512;
/// Decides an ADD so that it gets no address that somebody on its node lives with: what it holds already may be its own
/// and is not asked about. Living addresses join AssignRequest::living, and it is decided again. Nothing is written for
/// it. Where the kernel can't be asked the ADD goes on without, and a line says so.
class PastLiving {
 public:
  /// Both must outlive it; `living` may be null.
  PastLiving(const core::AssignRequest& request, const Living* living) : request_(request), living_(living) {}

  /// As core::plan_assign. A refusal after something was passed over is `unavailable`, and says what lives.
  [[nodiscard]] core::Step<core::AssignAnswer> plan(const core::Snapshot& snapshot, const Instant& now);

 private:
  [[nodiscard]] bool add_living(const core::Assigned& assigned);
  void tell_once();
  [[nodiscard]] core::Refusal refusal_of(core::Refusal refusal) const;

  const core::AssignRequest& request_;
  const Living* const living_;
  std::optional<core::AssignRequest> narrowed_;  ///< the request with what lives; absent: nothing does
  bool is_deaf_ = false;                         ///< the kernel can't be asked
  bool has_told_ = false;
};

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
