#pragma once

#include <cstdint>
#include <map>

namespace croft::store {

/// How one commit goes wrong.
enum class Fault : std::uint8_t {
  lose_reply,      ///< applied, but the caller gets unknown_outcome
  lose_request,    ///< not applied, and the caller gets unknown_outcome
  conflict,        ///< not applied, conflict: somebody else wrote first
  unavailable,     ///< not applied, unavailable
  storage_full,    ///< not applied, storage_full
  repeat_request,  ///< applied, and done a second time by an intermediary, which gives that answer: conflict
};
[[nodiscard]] constexpr bool is_applied(Fault fault) {
  return fault == Fault::lose_reply || fault == Fault::repeat_request;
}

/// Which commits of a store go wrong and how. Commits are counted from 1 at the construction of the store.
class FaultScript {
 public:
  /// The commit number `nth` meets `fault`; a later call for the same number replaces an earlier one.
  FaultScript& on_commit(std::uint64_t nth, Fault fault) {
    by_commit_[nth] = fault;
    return *this;
  }
  /// Every commit from number `nth` on meets `fault`, unless on_commit says otherwise for it.
  FaultScript& from_commit(std::uint64_t nth, Fault fault) {
    from_[nth] = fault;
    return *this;
  }

  /// The fault of a commit, or null when it goes well.
  [[nodiscard]] const Fault* fault_of(std::uint64_t nth) const {
    if (const auto it = by_commit_.find(nth); it != by_commit_.end()) return &it->second;
    const auto after = from_.upper_bound(nth);
    return after == from_.begin() ? nullptr : &std::prev(after)->second;
  }

 private:
  std::map<std::uint64_t, Fault> by_commit_;
  std::map<std::uint64_t, Fault> from_;
};

/// How often each operation was called, so that tests can hold the engine to its number of reads.
struct CallCounts {
  std::uint64_t list = 0;
  std::uint64_t list_keys = 0;  ///< lists of keys only, which `list` does not count
  std::uint64_t read = 0;
  std::uint64_t commit = 0;
  std::uint64_t take_turn = 0;
};

}  // namespace croft::store
