#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "core/audit/register_report.h"
#include "core/audit/runtime_comparison.h"
#include "core/register/block.h"
#include "net/address.h"

namespace croft::core::audit {

/// How many pods whose address nobody holds are named.
inline constexpr std::size_t kPodsNamedMax = 10;

/// Compares the addresses that somebody lives with, as the runtime and the pods of the cluster say, with what is held:
/// after the register was put back to an older state, what it has as free, or gave to another since, may be in use.
/// `runtime` must outlive it.
class LivingComparison {
 public:
  explicit LivingComparison(const Runtime& runtime);

  /// An address that is held, or cools.
  void see(const net::Address& address, const Attribute& attribute);
  /// Once all have been seen: who lives with an address that he does not hold. Only addresses are told that are Croft's
  /// to give, and whose block could be read.
  [[nodiscard]] std::vector<Finding> findings(
      const std::function<bool(const net::Address&)>& is_known_to_be_given_here) const;

 private:
  /// Somebody who lives and has an address.
  struct Living {
    const CachedAttachment* attachment = nullptr;  ///< or the pod
    const RunningPod* pod = nullptr;
    bool holds = false;
    std::string holder = {};  ///< who has it otherwise; empty: nobody
    bool cools = false;
    std::string quarantine = {};  ///< since when and why it is in quarantine; empty: it is not
  };
  [[nodiscard]] static bool is_of(const Living& living, const Attribute& attribute);
  [[nodiscard]] static Finding finding_of(const net::Address& address, const Living& living);

  std::unordered_multimap<net::Address, Living> living_;
};

}  // namespace croft::core::audit
