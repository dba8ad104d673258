#include "noderanges/decide/node_range_overview.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "noderanges/decide/node_range_changes.h"
#include "register/address_claims.h"

namespace croft::core {

std::vector<NodeRange> NodeRangeOverview::records() const {
  std::vector<NodeRange> records;
  for (const NodeRangeSeen& one : ranges) records.push_back(one.range);
  return records;
}

std::map<std::string, std::vector<net::Prefix>> NodeRangeOverview::by_node() const {
  std::map<std::string, std::vector<net::Prefix>> cidrs;
  for (const NodeRangeSeen& one : ranges) cidrs[one.range.node].push_back(one.range.cidr);
  return cidrs;
}

Step<NodeRangeOverview> read_node_range_overview(const Snapshot& snapshot) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<NodeRangeOverview>> {
    const NodeRangeTable table(reader, AddressClaims::For::to_look);
    const auto& nodes = reader.keys({Kind::node, ""});
    TRY_VOID(table.check(reader));
    TRY(const auto sets, table.sets());

    NodeRangeOverview seen;
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
    return Plan<NodeRangeOverview>{std::move(seen), {}};
  });
}

namespace {

using Ranges = std::map<std::string, std::vector<net::Prefix>>;

Ranges by_node(const std::vector<NodeRange>& ranges) {
  Ranges result;
  for (const NodeRange& one : ranges) result[one.node].push_back(one.cidr);
  for (auto& [node, cidrs] : result) {
    std::ranges::sort(cidrs);
    const auto doubles = std::ranges::unique(cidrs);
    cidrs.erase(doubles.begin(), doubles.end());
  }
  return result;
}

struct Claim {
  const NodeRange* range;
  bool is_recorded;
};

std::vector<SaidOverlap> overlaps_of(const std::vector<NodeRange>& said, const std::vector<NodeRange>& recorded) {
  std::vector<Claim> claims;
  for (const NodeRange& one : said) claims.push_back({&one, false});
  for (const NodeRange& one : recorded) claims.push_back({&one, true});
  // Sorted, what lies inside a prefix comes behind it; of equal ones, what is said first.
  std::ranges::sort(claims, {}, [](const Claim& one) {
    return std::tuple(one.range->cidr, one.is_recorded, std::string_view(one.range->node));
  });
  std::vector<SaidOverlap> overlaps;
  const Claim* outer = nullptr;
  for (const Claim& claim : claims) {
    if (outer == nullptr || !outer->range->cidr.contains(claim.range->cidr)) {
      outer = &claim;
      continue;
    }
    // Two records that overlap are told by who looks at records.
    const bool is_told = outer->is_recorded && claim.is_recorded;
    if (is_told || outer->range->node == claim.range->node) continue;
    SaidOverlap found = outer->is_recorded ? SaidOverlap{*claim.range, *outer->range, true}
                                           : SaidOverlap{*outer->range, *claim.range, claim.is_recorded};
    // A node's record beside its own word is one fault, not two.
    const bool is_same = std::ranges::any_of(
        overlaps, [&](const SaidOverlap& before) { return before.said == found.said && before.other == found.other; });
    if (!is_same) overlaps.push_back(std::move(found));
  }
  return overlaps;
}

}  // namespace

SaidComparison compare_said(const std::vector<NodeRange>& said, const std::vector<NodeRange>& recorded) {
  SaidComparison result;
  result.overlaps = overlaps_of(said, recorded);
  const Ranges ours = by_node(recorded);
  for (const auto& [node, cidrs] : by_node(said)) {
    const auto found = ours.find(node);
    if (found == ours.end()) {
      for (const net::Prefix& cidr : cidrs) result.unrecorded.push_back({node, cidr});
    } else if (!std::ranges::includes(found->second, cidrs)) {
      result.differing.push_back({node, cidrs, found->second});
    }
  }
  return result;
}

std::vector<SurplusRange> surplus_ranges(const std::vector<RecordedRange>& recorded,
                                         const std::vector<NodeRange>& said) {
  std::map<std::pair<std::string, net::Family>, std::vector<const RecordedRange*>> by_family;
  for (const RecordedRange& one : recorded) {
    by_family[{one.range.node, one.range.cidr.family()}].push_back(&one);
  }
  const auto is_said = [&](const RecordedRange& one) { return std::ranges::find(said, one.range) != said.end(); };
  std::vector<SurplusRange> surplus;
  for (auto& [of, ranges] : by_family) {
    if (ranges.size() == 1) continue;
    std::ranges::sort(
        ranges, {}, [&](const RecordedRange* one) { return std::tuple(!is_said(*one), one->since, one->range.cidr); });
    for (const RecordedRange* one : ranges) {
      if (one != ranges.front() && !is_said(*one)) surplus.push_back({one->range, ranges.front()->range.cidr});
    }
  }
  // One of two that overlap stays: the one that is said, else the first. It does so also beside one that goes itself,
  // since another pass may see that one alone. Sorted, what lies inside a prefix comes behind it, so that only the
  // prefixes around a range have to be kept at hand.
  std::vector<const RecordedRange*> sorted;
  for (const RecordedRange& one : recorded) sorted.push_back(&one);
  std::ranges::sort(sorted, {}, [](const RecordedRange* one) { return one->range.cidr; });
  std::vector<const RecordedRange*> around;
  const auto is_given_back = [&](const RecordedRange& one) {
    return std::ranges::any_of(surplus, [&](const SurplusRange& other) { return other.range == one.range; });
  };
  for (const RecordedRange* one : sorted) {
    std::erase_if(around, [&](const RecordedRange* outer) { return !outer->range.cidr.contains(one->range.cidr); });
    for (const RecordedRange* outer : around) {
      if (outer->range.node == one->range.node) continue;
      const bool outer_stays = std::tuple(!is_said(*outer), outer->since) < std::tuple(!is_said(*one), one->since);
      const RecordedRange& goes = outer_stays ? *one : *outer;
      if (!is_said(goes) && !is_given_back(goes))
        surplus.push_back({goes.range, (outer_stays ? *outer : *one).range.cidr});
    }
    around.push_back(one);
  }
  return surplus;
}

}  // namespace croft::core
