#include "noderanges/audit/node_range_audit.h"

#include <map>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/joined.h"

namespace croft::core::audit {
namespace {

using Kind = Finding::Kind;

Finding twice(const NodeRange& one, const NodeRange& other, std::string what, std::string remedy) {
  return {Kind::node_range_twice,
          fmt::format("{} of node {} and {} of node {}", one.cidr.to_string(), net::echo(one.node),
                      other.cidr.to_string(), net::echo(other.node)),
          std::move(what),
          std::move(remedy),
          {}};
}

Finding of_overlap(const SaidOverlap& overlap) {
  const std::string& one = overlap.said.node;
  const std::string& other = overlap.other.node;
  if (overlap.other_is_recorded) {
    return twice(
        overlap.said, overlap.other,
        fmt::format("the object of node {} says what is recorded for node {}", net::echo(one), net::echo(other)),
        fmt::format("find out whose pods live in it; if not those of node {}, `croft node range release {} "
                    "--force`, and the controller's next pass takes down what node {} says; else drain node "
                    "{} and delete its object: its kubelet makes it anew, and it gets another",
                    net::echo(other), other, net::echo(one), net::echo(one)));
  }
  return twice(overlap.said, overlap.other, "their objects say so: pods of both may get one address",
               fmt::format("drain one of the two nodes, say {}, and delete its object; `croft node range release {} "
                           "--force` gives up its record, if it has one. Its kubelet makes the object anew, and it "
                           "gets another",
                           net::echo(other), other));
}

}  // namespace

std::vector<Finding> audit_node_ranges(const NodeRangesSeen& seen, const SaidComparison& said,
                                       const std::vector<std::pair<std::string, Error>>& unreadable) {
  std::vector<Finding> findings;
  for (const auto& [outer, inner] : seen.collisions) {
    findings.push_back(
        twice(outer, inner, "they are recorded so: pods of both may get one address",
              fmt::format("drain one of the two nodes, say {}; `croft node range release {} --force` and `croft node "
                          "range assign {}` give it another",
                          net::echo(inner.node), inner.node, inner.node)));
  }
  for (const auto& [node, cidrs] : seen.surplus) {
    findings.push_back({Kind::node_range_surplus,
                        fmt::format("node {}", net::echo(node)),
                        fmt::format("its records are {}: two programs gave it one at once", net::joined(cidrs)),
                        fmt::format("the controller's next pass, or `croft node range assign {}`, gives back all but "
                                    "the one that its object says, else the first",
                                    net::echo(node)),
                        {}});
  }
  for (const SaidOverlap& overlap : said.overlaps) findings.push_back(of_overlap(overlap));
  for (const NodeRange& one : said.too_wide) {
    findings.push_back({Kind::node_range_too_wide,
                        fmt::format("{} of node {}", one.cidr.to_string(), net::echo(one.node)),
                        "its object says so, and it can't be one node's: others get ranges in it all the same",
                        fmt::format("find out who made the object of node {} so (its kubelet may, when it registers); "
                                    "drain the node and delete the object, and the controller gives it a range",
                                    net::echo(one.node)),
                        {}});
  }
  for (const DifferingCidrs& one : said.differing) {
    findings.push_back({Kind::node_range_differs,
                        fmt::format("node {}", net::echo(one.node)),
                        fmt::format("its object says {}, and its record {}; nobody else gets either",
                                    net::joined(one.said), net::joined(one.recorded)),
                        fmt::format("if its pods live in what the object says, `croft node range release {} --force`: "
                                    "the controller's next pass takes that down; else delete its object once it is "
                                    "drained, and its kubelet makes it anew",
                                    one.node),
                        {}});
  }
  for (const auto& [node, error] : unreadable) {
    findings.push_back({Kind::node_range_unreadable,
                        fmt::format("node {}", net::echo(node)),
                        error.message,
                        "drain the node and delete its object: its kubelet makes it anew, and the controller gives it "
                        "a range",
                        {}});
  }
  return findings;
}

std::vector<Finding> audit_pod_ranges(const std::vector<BlockOfNode>& blocks, const std::vector<NodeRange>& said) {
  std::map<net::Prefix, std::string> node_of;
  for (const NodeRange& range : said) node_of.emplace(range.cidr, range.node);
  std::vector<Finding> findings;
  bool is_by_ranges = false;
  for (const BlockOfNode& block : blocks) {
    const auto found = node_of.find(block.cidr);
    if (found == node_of.end()) continue;
    if (found->second == block.node) {
      is_by_ranges = true;
      continue;
    }
    const std::string& other = found->second;
    findings.push_back(
        {Kind::pod_range_overlap,
         fmt::format("block {} of node {}", block.cidr.to_string(), net::echo(block.node)),
         fmt::format("it is the podCIDR of node {}, by its object: where host-local gives that node's addresses, pods "
                     "of both get the same",
                     net::echo(other)),
         fmt::format(
             "`croft config set --auto-allocate-blocks false`, that no node takes a block by itself; drain node "
             "{1}, `croft affinity release --node {1} --cidr {0}`, `croft affinity claim {0} --node {2}`, and "
             "claim its own podCIDR for node {1} (docs/runbooks/migrate.md, From host-local)",
             block.cidr.to_string(), block.node, other),
         {}});
  }
  if (!is_by_ranges) findings.clear();
  return findings;
}

}  // namespace croft::core::audit
