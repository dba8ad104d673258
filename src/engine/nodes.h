#pragma once

#include <string>
#include <vector>

#include "core/block/node_changes.h"
#include "engine/affinities.h"

namespace croft::engine {

/// A node as the register knows it: by its record, its blocks, or addresses held on it.
struct NodeView {
  core::Node node;
  bool recorded = false;  ///< it has a Node record; without one no label selects it
  std::size_t blocks = 0;
  std::uint64_t held = 0;      ///< addresses held on it, in whosever block
  std::uint64_t borrowed = 0;  ///< of these, in blocks that are not its own
};

/// All of them, ascending by name.
[[nodiscard]] Result<std::vector<NodeView>> list_nodes(const Context& context);

/// Changes labels of a node (core::plan_label_node).
[[nodiscard]] Result<core::Node> label_node(const Context& context, const std::string& name,
                                            const core::LabelChanges& changes);

struct NodeRemoved {
  AffinitiesReleased affinities;
  bool record_deleted = false;
};
/// Gives up the blocks of a node that is gone (remove_host), and its record. Addresses held on it stay held. When some
/// blocks could not be given up the record stays, so that doing it again goes on; and on a store shared with foreign
/// writers, who keep records of nodes themselves.
[[nodiscard]] Result<NodeRemoved> remove_node(const Context& context, const std::string& name);

}  // namespace croft::engine
