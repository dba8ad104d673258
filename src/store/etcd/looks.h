#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/kv.h"

namespace croft::store::etcd {

/// Marks of those who conclude something from two looks at the register, under one key (`/croft/v1/looks`): each look
/// leaves a random number there and finds the one it left before. An etcd that was put back to a state before that does
/// not have it, also when its revisions have come beyond what was seen meanwhile, and through any proxy.
///
/// The value is lines of 16 hex digits, the newest first, kMarksMax at most: each who looks has one. Who does not find
/// its own among them because that many others looked since takes that for a register put back; it concludes nothing
/// this time.
class Looks {
 public:
  static constexpr std::size_t kMarksMax = 64;

  explicit Looks(Random& random) : random_(random) {}

  /// Leaves a mark. How often the one before was gone, by now. Errors: of Kv::txn, but for unknown_outcome, which is
  /// read back; conflict when others were faster each time.
  [[nodiscard]] Result<std::uint64_t> renew(Kv& kv, Deadline deadline);

 private:
  [[nodiscard]] bool has_mine(const std::string& value) const;
  [[nodiscard]] std::string with(const std::string& mark, const std::string& value) const;

  std::mutex mutex_;
  Random& random_;
  std::vector<std::string> mine_;  ///< more than one while it is unknown which of them was written
  std::uint64_t gone_ = 0;
};

}  // namespace croft::store::etcd
