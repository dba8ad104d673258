#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/decide/brake.h"
#include "collector/decide/evidence.h"
#include "collector/decide/facts.h"
#include "collector/decide/memory.h"
#include "collector/decide/register_view.h"
#include "ipam/decide/affinity_changes.h"

namespace croft::core::collect {

struct Settings {
  /// How far the two looks are apart that something must look dead in (docs/notes/calico-ipam.md#collector:
  /// leakGracePeriod). 0: nothing is collected, what looks dead is counted all the same.
  std::chrono::nanoseconds grace = std::chrono::minutes(15);
};

/// An allocation that looked dead in two looks a grace apart, unchanged in between, as have all others of its handle.
/// The releaser reads its block again and asks prove() (evidence.h).
struct Leak {
  /// Why its node, when it is not in the list, counts as gone.
  enum class NodeEnd : std::uint8_t {
    none,     ///< it does not
    listed,   ///< an earlier list had it
    removed,  ///< an operator took it away
  };
  net::Prefix block;
  net::Address address;
  SequenceNumber sequence;
  std::uint64_t handle = 0;
  Sighting first;
  NodeEnd node_end = NodeEnd::none;
};

/// A block that its owner is to give up: only when still empty and unchanged.
struct BlockToRelease {
  AffinityRelease release;
  bool node_gone = false;  ///< else: surplus, the node has another of the family and could claim it again by itself
  Sighting first;
};

/// A claim on a block that does not exist or is somebody else's.
struct StrayAffinity {
  Affinity affinity;
  Sighting first;
};

/// A handle record that no allocation bears.
struct StrayHandle {
  std::string id;
  Sighting first;
};

/// The conclusion of one look.
struct Verdict {
  Memory memory;  ///< for the next look

  std::vector<Leak> leaks;  ///< to release, longest dead first, no more than the brake lets through
  std::vector<BlockToRelease> blocks;
  std::vector<StrayAffinity> affinities;
  std::vector<StrayHandle> handles;
  std::vector<net::Prefix> cooled;  ///< blocks with ended cooldowns to write down

  std::size_t candidates = 0;          ///< allocations that look dead, those to release included
  std::size_t confirmed = 0;           ///< of them, for a grace and unchanged
  std::size_t waiting_for_handle = 0;  ///< confirmed, but their handle holds another that is not
  std::size_t kept_by_brake = 0;
  std::vector<Alarm> alarms;
};

/// Decides what may be collected. `register_read` is when reading the register ended; `now` is after the facts came.
/// A look that proves nothing (brake.h) leaves everything alone but ended cooldowns. Incomplete or old facts leave the
/// memory as it was. An empty, shrunken or older list makes it begin anew, so that two whole looks must follow. A node
/// is gone when the list lacks it and an earlier list of the same source had it, or an operator removed it. About what
/// is held on a node that was never listed nothing is concluded, whatever the list of pods says: alarm.
[[nodiscard]] Verdict judge(const RegisterView& view, const Facts& facts, const Memory& before,
                            const Settings& settings, const Instant& register_read, const Instant& now);

}  // namespace croft::core::collect
