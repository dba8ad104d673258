#include "noderanges/decide/node_range_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "noderanges/decide/node_range_config.h"

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
