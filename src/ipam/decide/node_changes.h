#pragma once

#include <map>
#include <optional>
#include <string>

#include "register/records.h"
#include "register/snapshot.h"

namespace croft::core {

/// Labels to set, or, with nothing, to take away.
using LabelChanges = std::map<std::string, std::optional<std::string>>;

/// Decides new labels of a node; a node without a record gets one. The rest of the record stays. Error:
/// invalid_argument for a name or label that Kubernetes would not take; not_found when there is no record and nothing
/// is to be set.
[[nodiscard]] Step<Node> plan_label_node(const Snapshot& snapshot, const std::string& name,
                                         const LabelChanges& changes);

/// Decides that it is written down what a node held that is taken away; adds to what was written down before. False:
/// it was there already.
[[nodiscard]] Step<bool> plan_note_removed(const Snapshot& snapshot, const RemovedNode& removed);

/// Decides that such a record goes, if it still is as it was seen.
[[nodiscard]] Step<bool> plan_forget_removed(const Snapshot& snapshot, const RemovedNode& seen);

/// Decides that a node's record goes; false: there was none.
[[nodiscard]] Step<bool> plan_delete_node(const Snapshot& snapshot, const std::string& name);

}  // namespace croft::core
