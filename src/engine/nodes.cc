#include "engine/nodes.h"

#include <map>

#include "engine/inspect.h"

namespace croft::engine {

Result<std::vector<NodeView>> list_nodes(const Context& context) {
  std::map<std::string, NodeView> nodes;
  Loader loader(context.store, Deadline::after(context.clock.now(), context.time_limit));
  const core::Listing listing{core::Kind::node, ""};
  core::Missing missing;
  missing.lists.insert(listing);
  TRY_VOID(loader.load(missing));
  for (const auto& [key, value] : *loader.snapshot().list(listing)) {
    NodeView& view = nodes[key.name];
    view.node = std::get<core::Node>(value);
    view.recorded = true;
  }
  for (const auto& [key, damage] : *loader.snapshot().damaged(listing)) nodes[key.name].recorded = true;
  TRY_VOID(for_each_block(context, [&](const core::Block& block) {
    const bool is_hosts = block.affinity && block.affinity->type == core::AffinityOwner::Type::host;
    if (is_hosts) ++nodes[block.affinity->name].blocks;
    for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
      const core::Attribute* holder = core::attribute_of(block, net::Ordinal(i));
      if (holder == nullptr || holder->cooling) continue;
      const auto node = holder->secondary.find(core::kNodeKey);
      if (node == holder->secondary.end()) continue;
      NodeView& view = nodes[node->second];
      ++view.held;
      if (!is_hosts || block.affinity->name != node->second) ++view.borrowed;
    }
  }));
  std::vector<NodeView> result;
  for (auto& [name, view] : nodes) {
    view.node.name = name;
    result.push_back(std::move(view));
  }
  return result;
}

Result<core::Node> label_node(const Context& context, const std::string& name, const core::LabelChanges& changes) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_label_node(snapshot, name, changes);
  });
}

Result<NodeRemoved> remove_node(const Context& context, const std::string& name) {
  NodeRemoved result;
  TRY(result.affinities, remove_host(context, {core::AffinityOwner::Type::host, name}));
  if (result.affinities.failure || context.store.capabilities().foreign_writers) return result;
  TRY(result.record_deleted,
      transact(context, TurnTaking::before_writing,
               [&](const core::Snapshot& snapshot, const Instant&) { return core::plan_delete_node(snapshot, name); }));
  return result;
}

}  // namespace croft::engine
