#include "engine/node_facts.h"

#include <utility>
#include <vector>

#include "base/assert.h"
#include "engine/each_record.h"

namespace croft::engine {

Result<core::collect::Facts> NodeFacts::facts() {
  const Instant taken_at = context_.clock.now();
  std::vector<core::collect::NodeFact> nodes;
  TRY_VOID(for_each_record(
      context_, {core::Kind::node, ""},
      [&](const store::Record& record) {
        const auto* node = std::get_if<core::Node>(&record.value);
        if (node == nullptr) {  // damaged: that the node is there is known all the same
          nodes.push_back({record.key.name, {}, {}});
          return;
        }
        core::collect::NodeFact fact{node->name, node->labels, {}};
        for (const core::TunnelAddress& tunnel : node->tunnels) fact.tunnel_addresses.push_back(tunnel.address);
        nodes.push_back(std::move(fact));
      },
      OnDamage::visit));
  core::collect::Facts facts;
  const auto begin = [&] {
    facts = {};
    facts.taken_at = taken_at;
    for (const auto& node : nodes) facts.add_node(node);
  };
  begin();
  if (pods_ != nullptr) {
    // After the nodes: the node of a pod that is seen is listed, or it is of later.
    TRY_VOID(pods_->pods(begin, [&](const core::collect::PodFact& pod) { facts.add_pod(pod); }));
    facts.set_pods_known();
  }
  facts.complete = true;
  facts.freeze();
  return facts;
}

}  // namespace croft::engine
