#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "core/audit/runtime_comparison.h"
#include "store/kube/api.h"

namespace croft::app {

/// The pods of a cluster that live, or seem to, with addresses of their own. Errors: of for_each_pod().
[[nodiscard]] Result<std::vector<core::audit::RunningPod>> list_running_pods(store::kube::Api& api, const Clock& clock);

}  // namespace croft::app
