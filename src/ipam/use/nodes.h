#pragma once

#include <string>
#include <vector>

#include "ipam/decide/node_changes.h"
#include "ipam/use/affinities.h"

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

/// Whether the register knows a node: by its record, a block, or an address held on it. Error: not_found, naming some
/// that it knows.
[[nodiscard]] Result<void> check_node_known(const Context& context, const std::string& name);

struct NodeRemoval {
  std::string name;
  bool force = false;    ///< also when addresses are held on it, or it has a record and a node range
  bool dry_run = false;  ///< only say what would come
};
struct NodeRemoved {
  std::uint64_t held = 0;  ///< addresses held on it, which stay held
  AffinitiesReleased affinities;
  bool record_deleted = false;
};
/// Gives up the blocks of a node that is gone (release_host_affinities), and its record. Refused for safety, in a dry
/// run too, when addresses are held on it, or a damaged block leaves that open, or when it has a record and a node
/// range (whoever gives ranges back does so behind this). With `force` they stay held, and the removal is written down
/// (core::RemovedNode). So the collector may free them as it frees those of a node that is gone. A node that the
/// register does not know is no error: its ranges may be somebody else's to give back. When some blocks could not be
/// given up the record stays, so that doing it again goes on. It stays too on a store shared with foreign writers, who
/// keep records of nodes themselves.
[[nodiscard]] Result<NodeRemoved> remove_node(const Context& context, const NodeRemoval& removal);

}  // namespace croft::engine
