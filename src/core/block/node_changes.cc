#include "core/block/node_changes.h"

namespace croft::core {

Step<Node> plan_label_node(const Snapshot& snapshot, const std::string& name, const LabelChanges& changes) {
  if (const auto valid = check_node_name(name); !valid) return valid.error();
  Reader reader(snapshot);
  const Node* stored = reader.get<Node>(node_key(name));
  if (!reader.complete()) return reader.missing();
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

Step<bool> plan_delete_node(const Snapshot& snapshot, const std::string& name) {
  if (const auto valid = check_node_name(name); !valid) return valid.error();
  Reader reader(snapshot);
  const Node* stored = reader.get<Node>(node_key(name));
  if (!reader.complete()) return reader.missing();
  if (stored == nullptr) return Plan<bool>{false, {}};
  return Plan<bool>{true, {{node_key(name), std::nullopt, Guard::as_read, false}}};
}

}  // namespace croft::core
