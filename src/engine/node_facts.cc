#include "engine/node_facts.h"

#include <utility>

#include "base/assert.h"

namespace croft::engine {

Result<core::collect::Facts> NodeFacts::facts() {
  core::collect::Facts facts;
  facts.taken_at = context_.clock.now();
  store::ListRequest request{core::Kind::node, "", "", store::kListLimitMax};
  for (bool more = true; more;) {
    const Deadline deadline = Deadline::after(context_.clock.now(), context_.time_limit);
    TRY(const store::Page page, context_.store.list(request, deadline));
    more = page.more && !page.records.empty();
    if (!page.records.empty()) request.after = page.records.back().key.name;
    for (const store::Record& record : page.records) {
      const auto* node = std::get_if<core::Node>(&record.value);
      CROFT_ASSERT(node != nullptr);
      core::collect::NodeFact fact{node->name, node->labels, {}};
      for (const core::TunnelAddress& tunnel : node->tunnels) fact.tunnel_addresses.push_back(tunnel.address);
      facts.add_node(fact);
    }
  }
  facts.complete = true;
  facts.freeze();
  return facts;
}

}  // namespace croft::engine
