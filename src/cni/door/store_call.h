#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "cni/door/personality.h"
#include "cni/door/tombstones.h"
#include "cni/format/tombstone.h"
#include "ipam/use/transact.h"
#include "os/file_lock.h"
#include "register/owner.h"

// The common part of the personalities on a cluster's register: the queue of a node's calls, and DELs that
// wait for a store (cni/door/tombstones.h).

namespace croft::edge {

/// The turn of a call among those of its node that go to the store themselves: 110 at once are a queue then, and no
/// race for one block. The kernel drops it with the process. Nothing rests on it: who can't have it until `deadline`
/// goes on without, and a line in the log says why. The file's directory is made when it is missing.
/// `before_waiting` is called once where another has the turn: for what then need not be done in it.
class NodeTurn {
 public:
  NodeTurn(const CniCall& call, const Clock& clock, std::string lock_file, Deadline deadline,
           const std::function<void()>& before_waiting = {});

 private:
  os::FileLock lock_;
};

/// The answer of a DEL that failed with `why`: left for later, where that failure may pass and a tombstone could be
/// left, else the failure. `sign` as Tombstones::leave has it.
[[nodiscard]] Result<GivenBack> defer_release(const Tombstones& tombstones, wire::Tombstone tombstone,
                                              Tombstones::Sign sign, const Error& why);

/// At the begin of an ADD (Tombstones::lift).
[[nodiscard]] Result<bool> lift_tombstone(const Tombstones& tombstones, const core::Owner& owner, const Clock& clock);
/// The words about it for the log; mostly none.
[[nodiscard]] std::string lifted_text(bool was_lifted);

/// Makes up for a few earlier DELs once a call has opened the store with this URL and done its own work.
void make_up_for_some(const Tombstones& tombstones, const engine::Context& context, const std::string& store_url,
                      const CniCall::WriteLine& write);

}  // namespace croft::edge
