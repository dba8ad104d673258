#include "noderanges/decide/cidr_set.h"

#include <fmt/format.h>

#include "base/assert.h"

namespace croft::core::node_range {

using space::Ordinal;

Result<CidrSet> CidrSet::make(const ClusterCidr& cluster, std::uint64_t cursor) {
  CROFT_ASSERT(cluster.cidr.is_valid());
  const net::Family family = cluster.cidr.family();
  if (cluster.node_length < cluster.cidr.length() || cluster.node_length > net::bit_length(family)) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("node ranges of cluster CIDR {} must be of length {} to {}, not {}", cluster.cidr.to_string(),
                    cluster.cidr.length(), net::bit_length(family), cluster.node_length));
  }
  const int bits = cluster.cidr.subprefix_count_log2(cluster.node_length);
  const int bits_max = family == net::Family::v6 ? kIndexBitsMaxV6 : kIndexBitsMaxV4;
  if (bits > bits_max) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("New CIDR set failed; the node CIDR size is too big: {} cut into /{} makes 2^{} node "
                            "ranges, and 2^{} is the most",
                            cluster.cidr.to_string(), cluster.node_length, bits, bits_max));
  }
  const std::uint32_t size = std::uint32_t{1} << bits;
  return CidrSet(cluster, size, static_cast<std::uint32_t>(cursor % size));
}

std::optional<CidrSet::Found> CidrSet::take_next() {
  const auto found = bits_.next_free(Ordinal{cursor_});
  if (!found) return std::nullopt;
  const bool was_free = bits_.take(*found);
  CROFT_ASSERT(was_free);
  // All between the cursor and what was found are taken. The size is a power of two: the mask is the remainder.
  const std::uint32_t tries = (found->value - cursor_) & (size() - 1);
  cursor_ = (found->value + 1) & (size() - 1);
  return Found{at(found->value), tries};
}

Result<std::pair<std::uint32_t, std::uint32_t>> CidrSet::indices_of(const net::Prefix& cidr) const {
  if (!cluster_.cidr.overlaps(cidr)) {
    return fail(ErrorCode::invalid_argument, fmt::format("cidr {} is out the range of cluster cidr {}",
                                                         cidr.to_string(), cluster_.cidr.to_string()));
  }
  if (cidr.length() <= cluster_.cidr.length()) return std::pair{std::uint32_t{0}, size() - 1};
  const auto index = [&](const net::Address& address) {
    return static_cast<std::uint32_t>(
        cluster_.cidr.subprefix_index(net::Prefix::containing(address, cluster_.node_length)).lo);
  };
  return std::pair{index(cidr.first()), index(cidr.last())};
}

Result<std::uint32_t> CidrSet::occupy(const net::Prefix& cidr) {
  TRY(const auto indices, indices_of(cidr));
  // Whole words: a prefix may overlap 2^24 node ranges, and a hundred prefixes the same ones.
  return bits_.take_all(Ordinal{indices.first}, Ordinal{indices.second});
}

void CidrSet::exclude(const net::Prefix& cidr) {
  if (const auto changed = occupy(cidr)) excluded_ += *changed;
}

}  // namespace croft::core::node_range
