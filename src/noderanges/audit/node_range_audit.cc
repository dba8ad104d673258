#include "noderanges/audit/node_range_audit.h"

#include <map>

#include "base/net/prefix.h"
#include "base/printable.h"

namespace croft::core::audit {
namespace {

/// `name`: a case of node_range_twice.
Finding twice(FindingName name, const NodeRange& one, const NodeRange& other) {
  return found(name, one.cidr, echo(one.node), other.cidr, echo(other.node), other.node);
}

}  // namespace

std::vector<Finding> audit_node_ranges(const NodeRangeOverview& seen, const SaidComparison& said,
                                       const std::vector<std::pair<std::string, Error>>& unreadable) {
  std::vector<Finding> findings;
  for (const auto& [outer, inner] : seen.collisions) findings.push_back(twice("node_range_twice", outer, inner));
  for (const auto& [node, cidrs] : seen.surplus) {
    findings.push_back(found("node_range_surplus", echo(node), net::joined(cidrs)));
  }
  for (const SaidOverlap& one : said.overlaps) {
    findings.push_back(one.other_is_recorded ? twice("node_range_twice.recorded", one.said, one.other)
                                             : twice("node_range_twice.said", one.said, one.other));
  }
  for (const DifferingCidrs& one : said.differing) {
    findings.push_back(
        found("node_range_differs", echo(one.node), net::joined(one.said), net::joined(one.recorded), one.node));
  }
  for (const auto& [node, error] : unreadable) {
    findings.push_back(found("node_range_unreadable", echo(node), error.message));
  }
  return findings;
}

std::vector<Finding> audit_pod_ranges(const std::vector<BlockOfNode>& blocks, const std::vector<NodeRange>& said) {
  std::map<net::Prefix, std::string> node_of;
  for (const NodeRange& range : said) node_of.emplace(range.cidr, range.node);
  std::vector<Finding> findings;
  bool is_by_ranges = false;
  for (const BlockOfNode& block : blocks) {
    const auto its = node_of.find(block.cidr);
    if (its == node_of.end()) continue;
    if (its->second == block.node) {
      is_by_ranges = true;
      continue;
    }
    const std::string& other = its->second;
    findings.push_back(found("pod_range_overlap", block.cidr, echo(block.node), echo(other), block.node, other));
  }
  if (!is_by_ranges) findings.clear();
  return findings;
}

}  // namespace croft::core::audit
