#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/decide/facts.h"
#include "collector/decide/memory.h"
#include "collector/decide/register_view.h"

namespace croft::core::collect {

/// Something a person should look at: the collector held back.
struct Alarm {
  enum class Kind : std::uint8_t {
    facts_incomplete,   ///< the lists of nodes or pods are not whole
    facts_stale,        ///< they are older than what was read of the register
    nodes_empty,        ///< no node exists, and the register knows some
    pods_empty,         ///< no pod exists, and the register holds addresses for some
    nodes_differ,       ///< no address is held on any node of the list: it names other nodes, or names them otherwise
    nodes_unknown,      ///< addresses are held on nodes that were never in the list
    nodes_shrunken,     ///< less than half the nodes of the look before
    pods_shrunken,      ///< the same of pods
    pods_went_back,     ///< the list of pods is older than that of the look before
    pods_differ,        ///< it leaves out pods that are there when they are asked for one by one
    clock_step,         ///< the wall clock was set, or the machine restarted, since the look before
    register_replaced,  ///< the register is another, or older, than in the look before
    too_many,           ///< more is dead than one pass may free
    block_corrupt,      ///< a block contradicts itself; it was left alone
    not_done,           ///< something could not be released or mended; the next pass tries again
  } kind;
  std::string text;
};
/// Stable lower-case name: "pods_shrunken".
[[nodiscard]] std::string_view name_of(Alarm::Kind kind);

/// How many addresses one pass may free (docs/notes/reliability.md#brake): the larger of 10 and 1 % of those held.
[[nodiscard]] std::size_t allowance(std::size_t held);

/// Whether a list shows so much less than in the look before that it proves nothing.
[[nodiscard]] bool is_shrunken(std::size_t before, std::size_t now);

/// Why a look at these facts proves nothing at all; absent: it may be judged.
[[nodiscard]] std::optional<Alarm> distrust(const RegisterView& view, const Facts& facts, const Memory& before,
                                            const Instant& register_read);

/// Whether somebody set the wall clock between two readings, or the boots differ. Slewing is no step.
[[nodiscard]] bool clock_stepped(const Instant& before, const Instant& now);

}  // namespace croft::core::collect
