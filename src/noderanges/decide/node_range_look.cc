#include "noderanges/decide/node_range_look.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "noderanges/decide/node_range_table.h"
#include "register/address_claims.h"

namespace croft::core {

Step<NodeRangesSeen> look_at_node_ranges(const Snapshot& snapshot) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<NodeRangesSeen>> {
    const NodeRangeTable table(reader, AddressClaims::For::to_look);
    const auto& nodes = reader.keys({Kind::node, ""});
    TRY_VOID(table.check(reader));
    TRY(const auto sets, table.sets());

    NodeRangesSeen seen;
    if (table.is_configured()) seen.set = table.stored();
    for (const node_range::CidrSet& set : sets) {
      seen.use.push_back({set.cluster(), set.size(), set.taken(), set.excluded_count()});
    }
    std::set<std::string> recorded;
    for (const Key& key : nodes) recorded.insert(key.name);
    seen.nodes = recorded.size();
    const auto cluster_cidrs = table.stored().value_or(NodeRangeSet()).cluster_cidrs;
    const NodeRange* outer = nullptr;
    std::map<std::pair<std::string, net::Family>, std::vector<net::Prefix>> by_family;
    for (const NodeRange& range : table.ranges()) {
      seen.ranges.push_back({range, recorded.contains(range.node), cluster_cidr_of(range.cidr, cluster_cidrs)});
      by_family[{range.node, range.cidr.family()}].push_back(range.cidr);
      // Sorted, what lies inside a prefix comes behind it.
      if (outer != nullptr && outer->cidr.contains(range.cidr)) {
        seen.collisions.emplace_back(*outer, range);
      } else {
        outer = &range;
      }
    }
    for (auto& [of, cidrs] : by_family) {
      if (cidrs.size() > 1) seen.surplus.emplace_back(of.first, std::move(cidrs));
    }
    const auto families = families_of(cluster_cidrs);
    for (const std::string& node : recorded) {
      const auto has = table.ranges_of(node);
      const bool lacks = std::ranges::any_of(families, [&](net::Family family) {
        return std::ranges::none_of(has, [&](const net::Prefix& cidr) { return cidr.family() == family; });
      });
      if (lacks) seen.bare.push_back(node);
    }
    return Plan<NodeRangesSeen>{std::move(seen), {}};
  });
}

}  // namespace croft::core
