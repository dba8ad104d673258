#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "register/snapshot.h"

namespace croft::core {

/// The fate of the gateway of a pool that is split: an address outside a part can't be the gateway of its pods.
enum class SplitGateways : std::uint8_t {
  refuse,         ///< a pool with a gateway is not split
  none,           ///< the parts have none: pods get /32 or /128
  first_address,  ///< each part's first address; the part that contains the old gateway keeps that
};

struct PoolSplit {
  std::string pool;  ///< by name or CIDR
  std::uint64_t parts = 2;
  SplitGateways gateways = SplitGateways::refuse;
};
/// One commit has room for so many: pool and reservation each, and what is taken away.
inline constexpr std::uint64_t kSplitPartsMax = 32;

struct PoolsSplit {
  std::string before;
  std::vector<Pool> parts;
  /// Addresses that the parts keep out of use and somebody holds: theirs until they are released.
  std::vector<net::Address> held_reserved;
};

/// Decides that a pool is replaced by parts of equal size, `split-<name>-<i>`, with the same settings
/// (docs/notes/calico-ipam.md#pool-split). One commit: the pool never is missing, and the guard on its set lets no
/// overlapping one come meanwhile. Blocks keep their size and so stay valid, each in the part that contains it, with
/// all their addresses. A claim under way fails, since the pool is gone, and is decided again. So nothing has to be
/// locked or emptied before. Errors: not_found; invalid_argument when the number is no power of two, too large, or the
/// parts would be smaller than a block; refused_by_configuration when the pool has a gateway and nothing is said of it;
/// already_exists for the name of a part; refused_for_safety when a new gateway is held or cooling.
[[nodiscard]] Step<PoolsSplit> plan_split_pool(const Snapshot& snapshot, const PoolSplit& split, const Instant& now);

}  // namespace croft::core
