#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/clock.h"
#include "base/net/prefix.h"
#include "register/block.h"

namespace croft::core::collect {

/// When something was seen so for the first time, all looks since agreeing.
struct Sighting {
  std::chrono::nanoseconds since_boot{};  ///< what counts
  WallTime wall{};                        ///< for people
  friend bool operator==(const Sighting&, const Sighting&) = default;
};

/// The memory that earlier looks leave to the next one. It has not the register, only what looked dead or left over in
/// it, and which nodes the list of nodes has had. Kept by one process; a collector that starts anew starts with its
/// first look, and knows of no node that it is gone but those an operator removed (RemovedNode). About 100 bytes an
/// entry.
struct Memory {
  struct Suspect {
    SequenceNumber sequence;
    std::uint64_t handle = 0;  ///< handle_identity()
    Sighting first;
    /// Since when it looks dead; absent: it does not, its node is absent.
    std::optional<Sighting> dead_since;
  };
  struct EmptyBlock {
    SequenceNumber sequence;
    Sighting first;
  };
  /// Allocations that look dead, and all of nodes that are absent.
  std::unordered_map<net::Address, Suspect> suspects;
  std::map<std::string, Sighting> absent_nodes;
  /// Nodes that some list had, as far as the last one has them or the register names them. Only of these does absence
  /// say that they are gone: one that was never listed may live on under another name, or where nobody keeps records.
  std::unordered_set<std::string> listed_nodes;
  std::unordered_map<net::Prefix, EmptyBlock> empty_blocks;
  std::unordered_map<std::string, Sighting> stray_affinities;  ///< by the name of their key
  std::unordered_map<std::uint64_t, Sighting> stray_handles;   ///< by handle_identity()

  /// The epoch of the register (store::Store::epoch) that all this was seen in.
  std::uint64_t epoch = 0;

  /// The look before, if it counted.
  std::optional<Instant> last_look;
  std::size_t node_count = 0;
  std::size_t bound_pod_count = 0;
  std::optional<std::uint64_t> pods_revision{};  ///< Facts::pods_revision
};

}  // namespace croft::core::collect
