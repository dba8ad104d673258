#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/net/prefix.h"

namespace croft::core {

/// Why one pool could not serve.
struct PoolVerdict {
  std::string pool;
  net::Prefix cidr;
  std::string reason;   ///< one clause, e.g. "disabled", "all 4 blocks are claimed: …"
  bool usable = false;  ///< the request might have used it, had there been an address
  friend bool operator==(const PoolVerdict&, const PoolVerdict&) = default;
};

/// The obstacle, for callers that speak another system's language (ipam/door/calico_ipam.h).
enum class RefusalCause : std::uint8_t {
  other,
  no_pool_enabled,        ///< there is no enabled pool of the family
  pool_not_usable,        ///< a pool that was asked for does not exist, is not enabled or of the other family
  no_pool_for_node,       ///< no enabled pool selects the node (and namespace)
  no_pool_qualified,      ///< pools there are, but none for this use or with blocks of this size
  full,                   ///< every address of the usable pools is taken
  full_and_strict,        ///< the node's own blocks are full, and strict affinity forbids others
  block_limit,            ///< another block would be one more than a node may have
  no_block_to_claim,      ///< claiming blocks is switched off (autoAllocateBlocks)
  address_in_no_pool,     ///< no enabled pool has the address that was asked for
  address_taken,          ///< that address is held, or cooling
  address_out_of_bounds,  ///< its block is not the node's own, and affinity is strict
};
/// As it is written here: stable, for metrics.
[[nodiscard]] std::string_view name_of(RefusalCause cause);

/// A request that cannot be granted, as a value: every pool considered and why it was rejected
/// (docs/promises.md#promise-7).
struct Refusal {
  /// exhausted, no_pool, refused_by_configuration; or that of a damaged record for which addresses were passed over.
  ErrorCode code = ErrorCode::exhausted;
  std::string summary;  ///< one line, e.g. "no IPv4 address is free for node node-a"
  std::vector<PoolVerdict> considered;
  RefusalCause cause = RefusalCause::other;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

inline constexpr std::size_t kVerdictsToldApart = 8;
/// The same text everywhere: CNI error, log, `croft explain`. `message` is the summary, `details` one clause a pool; of
/// more than kVerdictsToldApart pools those with one reason have one clause, which names the first and counts the rest.
[[nodiscard]] Error to_error(const Refusal& refusal);

}  // namespace croft::core
