#include "ipam/decide/node_changes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::core {

Step<Node> plan_label_node(const Snapshot& snapshot, const std::string& name, const LabelChanges& changes) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Node>> {
    TRY_VOID(check_node_name(name));
    const Node* stored = reader.get(node_key(name));
    TRY_VOID(reader.ready());
    const bool sets_some = std::ranges::any_of(changes, [](const auto& change) { return change.second.has_value(); });
    if (stored == nullptr && !sets_some) {
      return fail(ErrorCode::not_found, fmt::format("the register has no record of node {}", net::echo(name)));
    }
    Node node;
    node.name = name;
    if (stored != nullptr) node = *stored;
    for (const auto& [key, value] : changes) {
      if (!value) {
        node.labels.erase(key);
        continue;
      }
      TRY_VOID(check_label(key, *value));
      node.labels[key] = *value;
    }
    if (stored != nullptr && *stored == node) return Plan<Node>{std::move(node), {}};
    return Plan<Node>{node, {to_put(node_key(name), node)}};
  });
}

Step<bool> plan_note_removed(const Snapshot& snapshot, const RemovedNode& removed) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    const auto key = removed_node_key(removed.node);
    const auto* stored = reader.get(key);
    TRY_VOID(reader.ready());
    RemovedNode both = removed;
    if (stored != nullptr) {
      for (const auto& [block, sequence] : stored->held) both.held[block] = std::max(both.held[block], sequence);
    }
    if (stored != nullptr && *stored == both) return Plan<bool>{false, {}};
    return Plan<bool>{true, {to_put(key, std::move(both))}};
  });
}

Step<bool> plan_forget_removed(const Snapshot& snapshot, const RemovedNode& seen) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    const auto key = removed_node_key(seen.node);
    const auto* stored = reader.get(key);
    TRY_VOID(reader.ready());
    if (stored == nullptr || *stored != seen) return Plan<bool>{false, {}};
    return Plan<bool>{true, {to_delete(key)}};
  });
}

Step<bool> plan_delete_node(const Snapshot& snapshot, const std::string& name) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    TRY_VOID(check_node_name(name));
    const Node* stored = reader.get(node_key(name));
    TRY_VOID(reader.ready());
    if (stored == nullptr) return Plan<bool>{false, {}};
    return Plan<bool>{true, {to_delete(node_key(name))}};
  });
}

}  // namespace croft::core
