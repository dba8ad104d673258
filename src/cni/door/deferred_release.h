#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "base/result.h"
#include "cni/door/personality.h"
#include "cni/door/tombstones.h"
#include "cni/format/tombstone.h"
#include "ipam/use/transact.h"
#include "register/owner.h"

// The common part of the personalities on a store about tombstones (cni/door/tombstones.h).

namespace croft::edge {

/// The answer of a DEL that failed with `why`: left for later, where that failure may pass and a tombstone could be
/// left, else the failure. `sign` as Tombstones::leave has it.
[[nodiscard]] Result<GivenBack> defer_release(const Tombstones& tombstones, wire::Tombstone tombstone,
                                              Tombstones::Sign sign, const Error& why);

/// At the begin of an ADD (Tombstones::lift).
[[nodiscard]] Result<Tombstones::Lifted> lift_tombstone(const Tombstones& tombstones, const core::Owner& owner,
                                                        const Clock& clock);
/// The words about it for the log; mostly none.
[[nodiscard]] std::string lifted_text(const Tombstones::Lifted& lifted);

/// An agent looks after its node's tombstones every few seconds; one that leaves them so long can't see them.
inline constexpr std::chrono::seconds kAgentsTurn{60};
/// Makes up for a few earlier DELs once a call has opened the store with this URL and done its own work.
/// `behind_agent`: only for those whom the agent, which served this call, has left alone for kAgentsTurn.
enum class Replayer { alone, behind_agent };
void make_up_for_some(const Tombstones& tombstones, const engine::Context& context, const std::string& store_url,
                      const CniCall::WriteLine& write, Replayer replayer = Replayer::alone);

}  // namespace croft::edge
