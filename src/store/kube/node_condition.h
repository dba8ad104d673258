#pragma once

#include <string>

#include "base/clock.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// Takes back what a node says of its network: the condition NetworkUnavailable, which cloud controllers set on new
/// nodes and which keeps pods away by a taint (Kubernetes, "Node status"). One that is not there, or says False, is
/// left. Whether it was changed. Errors: not_found; of the API; permission_denied says what to allow. An unknown
/// outcome is an error: ask again.
[[nodiscard]] Result<bool> clear_network_unavailable(Api& api, const std::string& node, WallTime now,
                                                     Deadline deadline);

}  // namespace croft::store::kube
