#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/net/prefix.h"
#include "collector/decide/facts.h"
#include "collector/decide/register_view.h"
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

/// Something a person should look at: the collector held back.
struct Alarm {
  enum class Kind : std::uint8_t {
    lists_do_not_fit,   ///< cut, old, empty, suddenly short or another cluster's: nothing is concluded from them
    nodes_unknown,      ///< addresses are held on nodes that were never in the list
    pods_differ,        ///< it leaves out pods that are there when they are asked for one by one
    clock_step,         ///< the wall clock was set, or the machine restarted, since the look before
    register_replaced,  ///< the register is another, or older, than in the look before
    too_many,           ///< more is dead than one pass may free
    block_corrupt,      ///< a block contradicts itself; it was left alone
    not_done,           ///< something could not be released or mended; the next pass tries again
  } kind;
  std::string text;
};
/// Stable lower-case name: "too_many".
[[nodiscard]] std::string_view name_of(Alarm::Kind kind);

/// How many addresses one pass may free (docs/notes/reliability.md#brake): the larger of 10 and 1 % of those held.
[[nodiscard]] std::size_t allowance(std::size_t held);

/// Whether a list shows so much less than in the look before that it proves nothing.
[[nodiscard]] bool is_shrunken(std::size_t before, std::size_t now);

/// Why nothing at all is concluded from these lists.
struct Distrust {
  std::string why;
  /// The lists are not whole, or old: the memory stays as it was. Else it begins anew.
  bool proves_nothing = false;
};
/// Absent: they may be judged.
[[nodiscard]] std::optional<Distrust> distrust(const RegisterView& view, const Facts& facts, const Memory& before,
                                               const Instant& register_read);

/// Whether somebody set the wall clock between two readings, or the boots differ. Slewing is no step.
[[nodiscard]] bool clock_stepped(const Instant& before, const Instant& now);

}  // namespace croft::core::collect
