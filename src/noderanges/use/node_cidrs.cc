#include "noderanges/use/node_cidrs.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/prefix.h"

namespace croft::engine {
namespace {

using Ranges = std::map<std::string, std::vector<net::Prefix>>;

Ranges recorded_in(const core::NodeRangesSeen& seen) {
  Ranges ranges;
  for (const core::NodeRangeSeen& one : seen.ranges) ranges[one.range.node].push_back(one.range.cidr);
  return ranges;
}

std::vector<core::NodeRange> records_in(const core::NodeRangesSeen& seen) {
  std::vector<core::NodeRange> records;
  for (const core::NodeRangeSeen& one : seen.ranges) records.push_back(one.range);
  return records;
}

std::vector<net::Prefix> sorted(std::vector<net::Prefix> cidrs) {
  std::ranges::sort(cidrs);
  return cidrs;
}

const std::vector<net::Prefix>& ranges_of(const Ranges& ranges, const std::string& node) {
  static const std::vector<net::Prefix> kNone;
  const auto found = ranges.find(node);
  return found == ranges.end() ? kNone : found->second;
}

std::string rival_text(const NodeCidrs::OfNode& one) {
  return fmt::format(
      "node {} was given {} by another program{}: only one may give ranges to nodes, and this controller gives none "
      "from "
      "here on; end the other (kube-controller-manager: --allocate-node-cidrs=false), then start this one again",
      net::echo(one.node), net::joined(one.cidrs),
      one.written_by.empty() ? "" : fmt::format(" ({})", net::echo(one.written_by)));
}

std::vector<core::NodeRange> all_said(const std::vector<NodeCidrs::OfNode>& all) {
  std::vector<core::NodeRange> said;
  for (const NodeCidrs::OfNode& one : all) {
    for (const net::Prefix& cidr : one.cidrs) said.push_back({one.node, cidr});
  }
  return said;
}

/// Another node's word about these.
const core::NodeRange* said_by_another(const std::vector<core::NodeRange>& said, const std::string& node,
                                       const std::vector<net::Prefix>& cidrs) {
  for (const core::NodeRange& other : said) {
    const bool overlaps =
        std::ranges::any_of(cidrs, [&](const net::Prefix& cidr) { return other.cidr.overlaps(cidr); });
    if (overlaps && other.node != node) return &other;
  }
  return nullptr;
}

Error kept_back(const std::string& node, const std::vector<net::Prefix>& ours, const core::NodeRange& other) {
  return {ErrorCode::already_exists,
          fmt::format("its record says {}, and the object of node {} says {}: {} is not told its range; when nobody on "
                      "it has an address, `croft node range release {} --force` lets the next pass give it another",
                      net::joined(ours), net::echo(other.node), other.cidr.to_string(), net::echo(node), node),
          {}};
}

}  // namespace

Result<NodeCidrsLook> look_at_node_cidrs(NodeCidrs& cidrs) {
  TRY(const auto all, cidrs.all());
  NodeCidrsLook look{all_said(all), {}};
  for (const NodeCidrs::OfNode& one : all) {
    if (one.damage) look.unreadable.emplace_back(one.node, *one.damage);
  }
  return look;
}

core::SaidComparison compare(const NodeCidrsLook& look, const core::NodeRangesSeen& seen) {
  return core::compare_said(look.said, records_in(seen));
}

Result<NodeCidrsAdopted> adopt_node_cidrs(const Context& context, NodeCidrs& cidrs, NodeCidrsMemory& memory,
                                          bool dry_run) {
  NodeCidrsAdopted result;
  // The objects first: what is said after this look is compared with the records of after it too.
  TRY(const auto all, cidrs.all());
  TRY(const core::NodeRangesSeen seen, look_at_node_ranges(context));
  if (!seen.set) return result;
  const Ranges recorded = recorded_in(seen);
  result.said = all_said(all);
  result.overlaps = core::compare_said(result.said, records_in(seen)).overlaps;
  std::set<std::string> without;
  for (const NodeCidrs::OfNode& one : all) {
    if (one.damage) {
      result.failed.emplace_back(one.node, *one.damage);
      result.as_they_are.insert(one.node);
      continue;
    }
    if (one.cidrs.empty()) {
      without.insert(one.node);
      if (one.being_deleted) result.as_they_are.insert(one.node);
      continue;
    }
    result.as_they_are.insert(one.node);
    const std::vector<net::Prefix>& ours = ranges_of(recorded, one.node);
    if (sorted(ours) == sorted(one.cidrs)) continue;
    if (memory.without.contains(one.node)) memory.rival = rival_text(one);
    bool differs = false;
    for (const net::Prefix& cidr : one.cidrs) {
      if (std::ranges::find(ours, cidr) != ours.end() || dry_run) continue;
      const auto adopted = adopt_node_range(context, one.node, cidr);
      if (adopted) {
        result.adopted.emplace_back(one.node, cidr);
      } else if (!ours.empty()) {
        differs = true;
      } else {
        result.failed.emplace_back(one.node, adopted.error());
      }
    }
    if (differs) result.differing.push_back({one.node, one.cidrs, ours});
  }
  memory.without = std::move(without);
  result.rival = memory.rival;
  return result;
}

Result<NodeCidrsSaid> say_node_cidrs(const Context& context, NodeCidrs& cidrs) {
  NodeCidrsSaid result;
  TRY(const auto all, cidrs.all());
  TRY(core::NodeRangesSeen seen, look_at_node_ranges(context));
  if (!seen.set || seen.set->cluster_cidrs.empty()) return result;
  if (!seen.surplus.empty() || (!seen.collisions.empty() && !context.store.capabilities().atomic_commit)) {
    // Another gave one in the same moment, after the look at the records in this pass.
    TRY(result.surplus, give_back_surplus(context, all_said(all)));
    TRY(seen, look_at_node_ranges(context));
  }
  const Ranges recorded = recorded_in(seen);
  const net::Family first = seen.set->cluster_cidrs.front().cidr.family();
  const std::vector<core::NodeRange> said_before = all_said(all);
  for (const NodeCidrs::OfNode& one : all) {
    const bool waits = std::ranges::find(seen.bare, one.node) != seen.bare.end();
    std::vector<net::Prefix> ours = ranges_of(recorded, one.node);
    if (!one.cidrs.empty() || one.damage || one.being_deleted || waits || ours.empty()) continue;
    std::ranges::stable_partition(ours, [&](const net::Prefix& cidr) { return cidr.family() == first; });
    if (const core::NodeRange* other = said_by_another(said_before, one.node, ours)) {
      result.failed.emplace_back(one.node, kept_back(one.node, ours, *other));
      continue;
    }
    if (const auto said = cidrs.publish(one.node, ours); said) {
      result.said.emplace_back(one.node, std::move(ours));
    } else {
      result.failed.emplace_back(one.node, said.error());
    }
  }
  return result;
}

}  // namespace croft::engine
