#pragma once

#include <array>
#include <cstdint>
#include <string_view>

// Bugs that are planted on purpose, one at a time, to see that the simulated cluster finds them (docs/planted-bugs.md).
// No program that is shipped has them: without CROFT_PLANTED_BUGS each question is `false` at compile time.

namespace croft {

enum class Planted : std::uint8_t {
  none,
  compare_dropped,          ///< a block is written whoever wrote it meanwhile
  claim_unguarded,          ///< a record is made over one that is there
  unknown_taken_as_done,    ///< a lost reply counts as a success
  lost_taken_as_applied,    ///< reading back finds another's write and takes it for its own
  cooldown_by_wall_clock,   ///< a cooldown is counted by clocks that people set
  cooldown_across_boots,    ///< time since one boot is compared with time since another
  cooling_forgotten,        ///< a released address is free at once
  cooling_counts_as_empty,  ///< a block is given up while addresses in it rest
  one_look,                 ///< the collector frees at the first look
  brake_off,                ///< the collector frees all at once
  pods_not_asked,           ///< the collector believes lists, and asks for no pod by itself
  empty_list_believed,      ///< an API without pods means that no pod lives
  pending_taken_as_dead,    ///< a pod that reports no address has none
  sequence_ignored,         ///< a DEL frees what its container got after it began
  handle_after_block,       ///< an address is taken before its handle counts it
  batch_blind,              ///< calls of one commit do not see each other's plans
  strict_ignored,           ///< strict affinity does not keep nodes from borrowing
  repeat_forgotten,         ///< an ADD that is repeated gets other addresses
  sequence_restarts,        ///< a block that is made anew counts from the beginning
  sync_after_answer,        ///< a store answers before the commit is on disk
  holders_overlooked,       ///< a block is given up though addresses in it are held
};
inline constexpr std::array kPlantedNames{std::string_view("none"),
                                          std::string_view("compare_dropped"),
                                          std::string_view("claim_unguarded"),
                                          std::string_view("unknown_taken_as_done"),
                                          std::string_view("lost_taken_as_applied"),
                                          std::string_view("cooldown_by_wall_clock"),
                                          std::string_view("cooldown_across_boots"),
                                          std::string_view("cooling_forgotten"),
                                          std::string_view("cooling_counts_as_empty"),
                                          std::string_view("one_look"),
                                          std::string_view("brake_off"),
                                          std::string_view("pods_not_asked"),
                                          std::string_view("empty_list_believed"),
                                          std::string_view("pending_taken_as_dead"),
                                          std::string_view("sequence_ignored"),
                                          std::string_view("handle_after_block"),
                                          std::string_view("batch_blind"),
                                          std::string_view("strict_ignored"),
                                          std::string_view("repeat_forgotten"),
                                          std::string_view("sequence_restarts"),
                                          std::string_view("sync_after_answer"),
                                          std::string_view("holders_overlooked")};

#ifdef CROFT_PLANTED_BUGS
inline Planted planted_bug = Planted::none;  // NOLINT: set once, before anything runs
[[nodiscard]] inline bool is_planted(Planted bug) { return planted_bug == bug; }
#else
[[nodiscard]] constexpr bool is_planted(Planted /*bug*/) { return false; }
#endif

}  // namespace croft
