#include "core/block/node_changes.h"

#include <algorithm>

#include <fmt/format.h>

#include "net/echo.h"

namespace croft::core {

Step<Node> plan_label_node(const Snapshot& snapshot, const std::string& name, const LabelChanges& changes) {
  if (const auto valid = check_node_name(name); !valid) return valid.error();
  Reader reader(snapshot);
  const Node* stored = reader.get<Node>(node_key(name));
  if (!reader.complete()) return reader.missing();
  const bool sets_some = std::ranges::any_of(changes, [](const auto& change) { return change.second.has_value(); });
  if (stored == nullptr && !sets_some) {
    return Error{ErrorCode::not_found, fmt::format("the register has no record of node {}", net::echo(name)), {}};
  }
  Node node;
  node.name = name;
  if (stored != nullptr) node = *stored;
  for (const auto& [key, value] : changes) {
    if (!value) {
      node.labels.erase(key);
      continue;
    }
    if (const auto valid = check_label(key, *value); !valid) return valid.error();
    node.labels[key] = *value;
  }
  if (stored != nullptr && *stored == node) return Plan<Node>{std::move(node), {}};
  return Plan<Node>{node, {{node_key(name), node, Guard::as_read, false}}};
}

Step<bool> plan_note_removed(const Snapshot& snapshot, const RemovedNode& removed) {
  Reader reader(snapshot);
  const Key key = removed_node_key(removed.node);
  const auto* stored = reader.get<RemovedNode>(key);
  if (!reader.complete()) return reader.missing();
  RemovedNode both = removed;
  if (stored != nullptr) {
    for (const auto& [block, sequence] : stored->held) both.held[block] = std::max(both.held[block], sequence);
  }
  if (stored != nullptr && *stored == both) return Plan<bool>{false, {}};
  return Plan<bool>{true, {{key, std::move(both), Guard::as_read, false}}};
}

Step<bool> plan_forget_removed(const Snapshot& snapshot, const RemovedNode& seen) {
  Reader reader(snapshot);
  const Key key = removed_node_key(seen.node);
  const auto* stored = reader.get<RemovedNode>(key);
  if (!reader.complete()) return reader.missing();
  if (stored == nullptr || *stored != seen) return Plan<bool>{false, {}};
  return Plan<bool>{true, {{key, std::nullopt, Guard::as_read, false}}};
}

Step<bool> plan_delete_node(const Snapshot& snapshot, const std::string& name) {
  if (const auto valid = check_node_name(name); !valid) return valid.error();
  Reader reader(snapshot);
  const Node* stored = reader.get<Node>(node_key(name));
  if (!reader.complete()) return reader.missing();
  if (stored == nullptr) return Plan<bool>{false, {}};
  return Plan<bool>{true, {{node_key(name), std::nullopt, Guard::as_read, false}}};
}

}  // namespace croft::core
