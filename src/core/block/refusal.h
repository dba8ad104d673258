#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/prefix.h"

namespace croft::core {

/// Why one pool could not serve.
struct PoolVerdict {
  std::string pool;
  net::Prefix cidr;
  std::string reason;  ///< one clause, e.g. "disabled", "all 4 blocks are claimed: …"
  friend bool operator==(const PoolVerdict&, const PoolVerdict&) = default;
};

/// A request that cannot be granted, as a value: every pool considered and why it was rejected (DESIGN promise 7).
struct Refusal {
  /// exhausted, no_pool or refused_by_configuration.
  ErrorCode code = ErrorCode::exhausted;
  std::string summary;  ///< one line, e.g. "no IPv4 address is free for node node-a"
  std::vector<PoolVerdict> considered;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// The same text everywhere: CNI error, log, `croft explain`. `message` is the summary, `details` one clause a pool.
[[nodiscard]] Error to_error(const Refusal& refusal);

}  // namespace croft::core
