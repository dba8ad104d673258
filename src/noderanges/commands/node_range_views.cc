#include "noderanges/commands/node_range_views.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cli/croft/json_output.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;

std::uint32_t free_of(const core::ClusterCidrUse& use) { return use.size - use.taken; }

std::string percent_taken(const core::ClusterCidrUse& use) {
  return fmt::format("{:.1f}", 100.0 * use.taken / use.size);
}

/// The nodes with ranges that have no record, each once.
std::vector<std::string> gone_in(const core::NodeRangeOverview& seen) {
  std::vector<std::string> gone;
  for (const core::NodeRangeSeen& one : seen.ranges) {
    const bool is_new = std::ranges::find(gone, one.range.node) == gone.end();
    if (!one.node_recorded && is_new) gone.push_back(one.range.node);
  }
  return gone;
}

/// A node whose object lacks a family of the cluster CIDRs. It takes no other range for as long as it lives.
struct Incomplete {
  std::string node;
  std::vector<net::Prefix> said;
};

std::vector<Incomplete> incomplete_in(const core::NodeRangeOverview& seen, const std::vector<core::NodeRange>& said) {
  std::vector<Incomplete> all;
  for (const core::NodeRange& one : said) {
    if (all.empty() || all.back().node != one.node) all.push_back({one.node, {}});
    all.back().said.push_back(one.cidr);
  }
  std::erase_if(all, [&](const Incomplete& one) {
    return std::ranges::all_of(seen.use, [&](const core::ClusterCidrUse& use) {
      return std::ranges::any_of(one.said,
                                 [&](const net::Prefix& cidr) { return cidr.family() == use.cluster.cidr.family(); });
    });
  });
  return all;
}

/// The nodes that get a range by being given one.
std::vector<std::string> bare_in(const core::NodeRangeOverview& seen, const std::vector<core::NodeRange>& said) {
  std::vector<std::string> bare = seen.bare;
  std::erase_if(bare, [&](const std::string& node) {
    return std::ranges::find(said, node, &core::NodeRange::node) != said.end();
  });
  return bare;
}

/// Ranges of a configuration before.
std::vector<core::NodeRange> outside_in(const core::NodeRangeOverview& seen) {
  std::vector<core::NodeRange> outside;
  for (const core::NodeRangeSeen& one : seen.ranges) {
    if (!one.cluster_cidr) outside.push_back(one.range);
  }
  return outside;
}

std::vector<core::NodeRange> unrecorded_in(const core::NodeRangeOverview& seen,
                                           const std::vector<core::NodeRange>& said) {
  return core::compare_said(said, seen.records()).unrecorded;
}

}  // namespace

Table table_of(const std::vector<core::NodeRangeSeen>& ranges, bool wide) {
  Table table({"NODE", "CIDR"}, {"CLUSTER-CIDR", "RECORD"}, wide);
  for (const core::NodeRangeSeen& one : ranges) {
    table.add({one.range.node, one.range.cidr.to_string(), one.cluster_cidr ? one.cluster_cidr->to_string() : "",
               one.node_recorded ? "yes" : "no"});
  }
  return table;
}

Data json_of(const std::vector<core::NodeRangeSeen>& ranges) {
  return Data(array_json(ranges, [](const core::NodeRangeSeen& one) -> Json {
    return {{"node", one.range.node},
            {"cidr", one.range.cidr.to_string()},
            {"clusterCidr", one.cluster_cidr ? Json(one.cluster_cidr->to_string()) : Json()},
            {"nodeRecorded", one.node_recorded}};
  }));
}

std::string text_of(const core::NodeRangeOverview& seen, const std::vector<core::NodeRange>& said) {
  if (!seen.set) return "node ranges are not configured\n";
  Table table({"CLUSTER-CIDR", "NODE-LENGTH", "RANGES", "TAKEN", "EXCLUDED", "FREE", "USED%"});
  for (const core::ClusterCidrUse& use : seen.use) {
    table.add({use.cluster.cidr.to_string(), std::to_string(use.cluster.node_length), std::to_string(use.size),
               std::to_string(use.taken), std::to_string(use.excluded), std::to_string(free_of(use)),
               percent_taken(use)});
  }
  std::string text = table.to_string();
  for (const net::Prefix& cidr : seen.set->excluded) text += fmt::format("excluded: {}\n", cidr);
  for (const Incomplete& one : incomplete_in(seen, said)) {
    text +=
        fmt::format("node/{} stays {} until the node is deleted and rejoins: its object says {} and takes no other\n",
                    one.node, net::name_of(one.said.front().family()), net::joined(one.said));
  }
  for (const std::string& node : bare_in(seen, said)) {
    text += fmt::format("node/{} lacks a range: `croft node range assign {}`\n", node, node);
  }
  for (const std::string& node : gone_in(seen)) {
    text +=
        fmt::format("node/{} has a range and no record: `croft node range release {}` when it is gone\n", node, node);
  }
  for (const core::NodeRange& one : outside_in(seen)) {
    text += fmt::format("node/{} keeps {}, which lies in no cluster CIDR\n", one.node, one.cidr);
  }
  for (const core::NodeRange& one : unrecorded_in(seen, said)) {
    text += fmt::format("node/{} says {}, which is not recorded; nobody else gets it\n", one.node, one.cidr);
  }
  return text;
}

Data json_of(const core::NodeRangeOverview& seen, const std::vector<core::NodeRange>& said) {
  const auto use_json = [](const core::ClusterCidrUse& use) -> Json {
    return {{"cidr", use.cluster.cidr.to_string()},
            {"nodeLength", use.cluster.node_length},
            {"ranges", use.size},
            {"taken", use.taken},
            {"excluded", use.excluded},
            {"free", free_of(use)}};
  };
  const auto incomplete_json = [](const Incomplete& one) -> Json {
    return {{"node", one.node}, {"said", prefixes_json(one.said)}};
  };
  const auto range_json = [](const core::NodeRange& one) -> Json {
    return {{"node", one.node}, {"cidr", one.cidr.to_string()}};
  };
  const Json json = {{"configured", seen.set.has_value()},
                     {"clusterCidrs", array_json(seen.use, use_json)},
                     {"excluded", prefixes_json(seen.set ? seen.set->excluded : std::vector<net::Prefix>())},
                     {"nodesWithoutRange", bare_in(seen, said)},
                     {"nodesOfOneFamily", array_json(incomplete_in(seen, said), incomplete_json)},
                     {"nodesGone", gone_in(seen)},
                     {"outside", array_json(outside_in(seen), range_json)},
                     {"saidUnrecorded", array_json(unrecorded_in(seen, said), range_json)}};
  return Data(Json::array({json}));
}

Data json_of(const core::NodeRangesAssigned& assigned) {
  const auto added = array_json(assigned.added, [](const core::NodeRangeAdded& one) { return one.cidr.to_string(); });
  const Json json = {{"node", assigned.node}, {"cidrs", prefixes_json(assigned.cidrs)}, {"added", added}};
  return Data(Json::array({json}));
}

Data json_of(const core::NodeRangesReleased& released) {
  const Json json = {{"node", released.node}, {"released", prefixes_json(released.cidrs)}};
  return Data(Json::array({json}));
}

Result<std::string> subnet_env_of(const core::NodeRangeOverview& seen, const std::string& node, int mtu,
                                  bool ip_masquerade, const std::vector<core::NodeRange>& said) {
  const bool is_said = std::ranges::find(said, node, &core::NodeRange::node) != said.end();
  std::string text;
  for (const net::Family family : {net::Family::v4, net::Family::v6}) {
    const auto found = std::ranges::find_if(seen.ranges, [&](const core::NodeRangeSeen& one) {
      return one.range.node == node && one.range.cidr.family() == family &&
             (!is_said || std::ranges::find(said, one.range) != said.end());
    });
    if (found == seen.ranges.end()) continue;
    const net::Prefix& range = found->range.cidr;
    std::string networks;
    for (const core::ClusterCidrUse& use : seen.use) {
      if (use.cluster.cidr.family() != family) continue;
      networks += (networks.empty() ? "" : ",") + use.cluster.cidr.to_string();
    }
    // The range is of a configuration before: only the node's own is known.
    if (networks.empty()) networks = range.to_string();
    const auto usable = range.first().next();
    if (!usable || !range.contains(*usable)) {
      return fail(ErrorCode::invalid_argument, "{} has one address only, and it would be the gateway's", range);
    }
    const char* prefix = family == net::Family::v4 ? "FLANNEL" : "FLANNEL_IPV6";
    text += fmt::format("{0}_NETWORK={1}\n{0}_SUBNET={2}/{3}\n", prefix, networks, *usable, range.length());
  }
  if (text.empty() && is_said) {
    return fail(ErrorCode::not_found,
                "no range that the object of node {} says is recorded: `croft node range show` tells them", echo(node));
  }
  if (text.empty()) {
    return fail(ErrorCode::not_found, "node {} has no range: `croft node range assign {}`", echo(node), node);
  }
  return text + fmt::format("FLANNEL_MTU={}\nFLANNEL_IPMASQ={}\n", mtu, ip_masquerade);
}

}  // namespace croft::app
