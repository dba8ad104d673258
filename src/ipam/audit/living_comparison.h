#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "ipam/audit/register_report.h"
#include "ipam/audit/runtime_comparison.h"
#include "register/block.h"

namespace croft::core::audit {

/// How many pods whose address nobody holds are named.
inline constexpr std::size_t kPodsNamedMax = 10;

/// Compares the addresses that somebody lives with, as the runtime and the pods of the cluster say, with what is held.
/// After the register was put back to an older state, addresses that it has as free, or gave to another since, may be
/// in use. `runtime` must outlive it.
class LivingComparison {
 public:
  explicit LivingComparison(const Runtime& runtime);

  /// An address that is held, or cools.
  void see(const net::Address& address, const Attribute& attribute);
  /// The program that gave an address which nobody holds.
  enum class Giver : std::uint8_t {
    unknown,    ///< it is not Croft's to give, or its block could not be read
    here,       ///< it is
    not_yet,    ///< it is in a range of its node, of which nothing was ever given: host-local's until the node moves
    unclaimed,  ///< the same, and the node has not claimed it
  };
  /// `node` may be empty: not known.
  using GiverOf = std::function<Giver(const net::Address& address, const std::string& node)>;
  /// Once all have been seen: who lives with an address that he does not hold. A node whose addresses host-local still
  /// gives is told once.
  [[nodiscard]] std::vector<Finding> findings(const GiverOf& giver_of) const;

 private:
  /// Somebody who lives and has an address.
  struct Living {
    const CachedAttachment* attachment = nullptr;  ///< or the pod
    const RunningPod* pod = nullptr;
    bool holds = false;
    std::string holder = {};  ///< who has it otherwise; empty: nobody
    bool cools = false;
  };
  /// Those of one node that host-local gave.
  struct NotMoved {
    std::size_t addresses = 0;
    net::Address first;
    std::optional<net::Address> unclaimed;  ///< the first one
  };
  [[nodiscard]] const std::string& node_of(const Living& living) const;
  [[nodiscard]] static Finding finding_of(const std::string& node, const NotMoved& some);
  [[nodiscard]] static bool is_of(const Living& living, const Attribute& attribute);
  [[nodiscard]] static Finding finding_of(const net::Address& address, const Living& living);

  const std::string& node_;  ///< whose cache it is
  std::unordered_multimap<net::Address, Living> living_;
};

}  // namespace croft::core::audit
