#include "noderanges/decide/node_range_table.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/net/echo.h"
#include "noderanges/decide/node_range_changes.h"

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

namespace croft::core {

std::vector<net::Family> families_of(const std::vector<ClusterCidr>& cluster_cidrs) {
  std::vector<net::Family> families;
  for (const ClusterCidr& cluster : cluster_cidrs) {
    if (std::ranges::find(families, cluster.cidr.family()) == families.end()) families.push_back(cluster.cidr.family());
  }
  return families;
}

std::optional<net::Prefix> cluster_cidr_of(const net::Prefix& cidr, const std::vector<ClusterCidr>& cluster_cidrs) {
  for (const ClusterCidr& cluster : cluster_cidrs) {
    if (cluster.cidr.contains(cidr)) return cluster.cidr;
  }
  return std::nullopt;
}

NodeRangeTable::NodeRangeTable(Reader& reader, AddressClaims::For purpose) {
  // Before the lists: what changes after it then shows as a conflict on it.
  if (const auto* stored = reader.get(node_range_set_key())) stored_ = *stored;
  claims_.emplace(reader, purpose);
  if (!reader.ready()) return;
  for (const auto& [key, value] : reader.list({Kind::node_range, ""})) {
    const auto& range = std::get<NodeRange>(value);
    if (key != node_range_key(range.cidr)) {
      fault_ = Error{ErrorCode::corrupt,
                     fmt::format("node range {} says that it is {}", net::echo(key.name), range.cidr.to_string()),
                     {}};
      return;
    }
    ranges_.push_back(range);
    by_node_[range.node].push_back(range.cidr);
  }
  std::ranges::sort(ranges_, {}, &NodeRange::cidr);
}

Flow<void> NodeRangeTable::check(const Reader& reader) const {
  TRY_VOID(reader.ready());
  if (fault_) return fail(*fault_);
  return {};
}

std::vector<net::Prefix> NodeRangeTable::excluded() const {
  std::vector<net::Prefix> result = claims_->not_for_nodes();
  if (stored_) result.insert(result.end(), stored_->excluded.begin(), stored_->excluded.end());
  return result;
}

std::vector<net::Prefix> NodeRangeTable::ranges_of(const std::string& node) const {
  const auto found = by_node_.find(node);
  if (found == by_node_.end()) return {};
  std::vector<net::Prefix> result = found->second;
  put_in_order(result);
  return result;
}

void NodeRangeTable::put_in_order(std::vector<net::Prefix>& cidrs) const {
  const auto families = families_of(stored_ ? stored_->cluster_cidrs : std::vector<ClusterCidr>());
  std::ranges::sort(cidrs, {}, [&](const net::Prefix& cidr) {
    return std::pair(std::ranges::find(families, cidr.family()) - families.begin(), cidr);
  });
}

Result<std::vector<node_range::CidrSet>> NodeRangeTable::sets(const std::vector<NodeRange>& said) const {
  std::vector<node_range::CidrSet> result;
  if (!stored_) return result;
  const auto excluded_ranges = excluded();
  for (std::size_t i = 0; i < stored_->cluster_cidrs.size(); ++i) {
    auto set =
        node_range::CidrSet::make(stored_->cluster_cidrs[i], i < stored_->cursors.size() ? stored_->cursors[i] : 0);
    if (!set) return fail(ErrorCode::corrupt, "stored configuration of node ranges: " + set.error().message);
    for (const net::Prefix& cidr : excluded_ranges) set->exclude(cidr);
    for (const std::vector<NodeRange>* taken : {&ranges_, &said}) {
      for (const NodeRange& range : *taken) {
        if (set->cluster().cidr.overlaps(range.cidr)) TRY_VOID(set->occupy(range.cidr));
      }
    }
    result.push_back(*std::move(set));
  }
  return result;
}

PlannedWrite NodeRangeTable::next_set(const std::vector<node_range::CidrSet>& sets) const {
  NodeRangeSet next = stored_.value_or(NodeRangeSet());
  ++next.generation;
  if (!sets.empty()) next.cursors.clear();
  for (const node_range::CidrSet& set : sets) next.cursors.push_back(set.cursor());
  return to_put(node_range_set_key(), std::move(next));
}

}  // namespace croft::core
