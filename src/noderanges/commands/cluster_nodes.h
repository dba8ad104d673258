#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cli/stores/open_store.h"
#include "collector/use/node_facts.h"

namespace croft::app {

/// The ranges that the nodes' objects say, in the Kubernetes API of a `kube:` store; null for another store, whose
/// nodes have no objects. Connects nothing. Error: as open_kube_api. `clock` must outlive it.
[[nodiscard]] Result<std::unique_ptr<engine::NodeCidrs>> open_node_cidrs(const std::string& store_url,
                                                                         const Clock& clock, const StoreParts& parts);

}  // namespace croft::app
