#include "engine/node_facts.h"

#include <utility>

#include "base/assert.h"
#include "engine/each_record.h"

namespace croft::engine {

Result<core::collect::Facts> NodeFacts::facts() {
  core::collect::Facts facts;
  facts.taken_at = context_.clock.now();
  TRY_VOID(for_each_record(
      context_, {core::Kind::node, ""},
      [&](const store::Record& record) {
        const auto* node = std::get_if<core::Node>(&record.value);
        if (node == nullptr) {  // damaged: that the node is there is known all the same
          facts.add_node({record.key.name, {}, {}});
          return;
        }
        core::collect::NodeFact fact{node->name, node->labels, {}};
        for (const core::TunnelAddress& tunnel : node->tunnels) fact.tunnel_addresses.push_back(tunnel.address);
        facts.add_node(fact);
      },
      OnDamage::visit));
  facts.complete = true;
  facts.freeze();
  return facts;
}

}  // namespace croft::engine
