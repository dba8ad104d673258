#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collector/decide/facts.h"
#include "ipam/audit/runtime_comparison.h"
#include "store/kube/api.h"

namespace croft::app {

/// A pod as one that lives, or seems to, with addresses of its own; nothing for any other.
[[nodiscard]] std::optional<core::audit::RunningPod> running_pod(const core::collect::PodFact& pod);

/// The pods of a cluster that live, or seem to, with addresses of their own. Errors: of for_each_pod().
[[nodiscard]] Result<std::vector<core::audit::RunningPod>> list_running_pods(store::kube::Api& api, const Clock& clock);

}  // namespace croft::app
