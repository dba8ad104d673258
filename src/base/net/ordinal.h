#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/assert.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/strong.h"

namespace croft::net {

/// The place of an address in its prefix, counted from 0 at the network address.
using Ordinal = Strong<struct OrdinalTag, std::uint32_t>;

/// nullopt when the address is outside the prefix, or inside but 2^32 or more places up.
[[nodiscard]] constexpr std::optional<Ordinal> ordinal_of(const Prefix& prefix, const Address& address) {
  if (!prefix.contains(address)) return std::nullopt;
  const U128 offset = address.value() - prefix.address().value();
  if (offset > U128{std::numeric_limits<std::uint32_t>::max()}) return std::nullopt;
  return Ordinal{static_cast<std::uint32_t>(offset.lo)};
}

/// The inverse. The ordinal must lie inside the prefix.
[[nodiscard]] constexpr Address address_at(const Prefix& prefix, Ordinal ordinal) {
  CROFT_ASSERT(U128{ordinal.value} <= prefix.last_offset());
  return Address::from(prefix.family(), prefix.address().value() | U128{ordinal.value});
}

}  // namespace croft::net
