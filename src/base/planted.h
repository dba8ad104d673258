#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

// Bugs that are planted on purpose, one at a time, to see that the simulated cluster finds them (docs/planted-bugs.md).
// No program that is shipped has them: without CROFT_PLANTED_BUGS each question is `false` at compile time.

namespace croft {

inline constexpr auto kPlantedNames = std::to_array<std::string_view>({
    "compare_dropped",          ///< a block is written whoever wrote it meanwhile
    "claim_unguarded",          ///< a record is made over one that is there
    "unknown_taken_as_done",    ///< a lost reply counts as a success
    "lost_taken_as_applied",    ///< reading back finds another's write and takes it for its own
    "cooldown_by_wall_clock",   ///< a cooldown is counted by clocks that people set
    "cooldown_across_boots",    ///< time since one boot is compared with time since another
    "cooling_forgotten",        ///< a released address is free at once
    "cooling_counts_as_empty",  ///< a block is given up while addresses in it rest
    "one_look",                 ///< the collector frees at the first look
    "brake_off",                ///< the collector frees all at once
    "pods_not_asked",           ///< the collector believes lists, and asks for no pod by itself
    "empty_list_believed",      ///< an API without pods means that no pod lives
    "pending_taken_as_dead",    ///< a pod that reports no address has none
    "handle_after_block",       ///< an address is taken before its handle counts it
    "batch_blind",              ///< calls of one commit do not see each other's plans
    "strict_ignored",           ///< strict affinity does not keep nodes from borrowing
    "repeat_forgotten",         ///< an ADD that is repeated gets other addresses
    "sequence_restarts",        ///< a block that is made anew counts from the beginning
    "sync_after_answer",        ///< a store answers before the commit is on disk
    "holders_overlooked",       ///< a block is given up though addresses in it are held
    "released_an_hour_early",   ///< the time of a release is written an hour too early
    "disabled_ignored",         ///< a disabled pool gives new addresses
    "reservation_ignored",      ///< reserved addresses are given
    "claim_left",               ///< the row of a claim stays when its block is another's, or gone
    "claim_forgotten",          ///< a block is claimed without a row of its claim
    "deadline_ignored",         ///< a DEL does not end with its time
    "rest_for_ever",            ///< a cooldown never ends
});

/// One of them. A name that is not in the list does not compile.
struct Planted {
  // NOLINTNEXTLINE: is_planted("one_look")
  consteval Planted(const char* name)
      : index(static_cast<std::size_t>(std::ranges::find(kPlantedNames, std::string_view(name)) -
                                       kPlantedNames.begin())) {
    static_cast<void>(kPlantedNames.at(index));
  }
  std::size_t index;
};

#ifdef CROFT_PLANTED_BUGS
/// The place in the list; none at first.
inline std::size_t planted_bug = kPlantedNames.size();  // NOLINT: set once, before anything runs
[[nodiscard]] inline bool is_planted(Planted bug) { return planted_bug == bug.index; }
#else
[[nodiscard]] constexpr bool is_planted(Planted /*bug*/) { return false; }
#endif

}  // namespace croft
