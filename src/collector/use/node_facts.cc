#include "collector/use/node_facts.h"

#include <vector>

#include "ipam/use/transact.h"

namespace croft::engine {

Result<core::collect::Facts> NodeFacts::facts() {
  const Instant taken_at = context_.clock.now();
  std::vector<core::collect::NodeFact> nodes;
  const auto nodes_read = for_each_record(
      context_, {core::Kind::node, ""},
      [&](const store::Record& record) {
        const auto* node = record.get_if<core::Node>();
        if (node == nullptr) {  // damaged: that the node is there is known all the same
          nodes.push_back({record.key.name, {}, {}});
          return;
        }
        core::collect::NodeFact fact{node->name, node->labels, {}};
        for (const core::TunnelAddress& tunnel : node->tunnels) fact.tunnel_addresses.push_back(tunnel.address);
        nodes.push_back(std::move(fact));
      },
      OnDamage::visit);
  if (!nodes_read) {
    if (pods_ == nullptr || !may_pass_over(nodes_read.error())) return fail(nodes_read.error());
    are_nodes_hidden_ = true;
    denied_("nodes", nodes_read.error());
  }
  core::collect::Facts facts;
  const auto begin = [&] {
    facts = {};
    facts.taken_at = taken_at;
    for (const auto& node : nodes) facts.add_node(node);
  };
  begin();
  if (pods_ != nullptr) {
    // After the nodes: the node of a pod that is seen is listed, or it is of later.
    const auto revision = pods_->pods(begin, [&](const core::collect::PodFact& pod) {
      if (are_nodes_hidden_ && !pod.node.empty()) nodes_of_pods_.insert(pod.node);
      facts.add_pod(pod);
    });
    if (revision) {
      facts.pods_revision = *revision;
      facts.set_pods_known();
    } else if (are_nodes_hidden_ || !may_pass_over(revision.error())) {
      return fail(revision.error());
    } else {
      begin();
      denied_("pods", revision.error());
    }
  }
  for (const std::string& node : nodes_of_pods_) facts.add_node({node, {}, {}});
  facts.complete = true;
  facts.freeze();
  return facts;
}

Result<std::optional<core::collect::PodFact>> NodeFacts::pod(const std::string& namespace_name,
                                                             const std::string& name) {
  if (pods_ == nullptr) return std::optional<core::collect::PodFact>();
  return pods_->pod(namespace_name, name);
}

Result<bool> NodeFacts::has_node(const std::string& name) {
  if (are_nodes_hidden_) return nodes_of_pods_.contains(name);
  const auto record = context_.store.get(core::node_key(name), deadline_of_use_case(context_));
  if (record) return record->has_value();
  // That it is there is known of one that can't be read, too; and of a name that no record can have, that it is not.
  if (record.error().code == ErrorCode::corrupt || record.error().code == ErrorCode::newer_version) return true;
  if (record.error().code == ErrorCode::invalid_argument) return false;
  return fail(record.error());
}

}  // namespace croft::engine
