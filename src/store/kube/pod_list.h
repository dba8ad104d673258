#pragma once

#include <functional>

#include "base/clock.h"
#include "core/collect/facts.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// Reads all pods of the cluster, as new as can be, page by page, so that no more than a page of their text is in
/// memory. `begin` is called before the first pod, and again when the list has to be read anew: what was taken before
/// is void then. Errors: those of the API; permission_denied names what to allow; corrupt for a pod that can be none.
/// Without an error every pod that existed when this was called, and still does, was taken.
[[nodiscard]] Result<void> for_each_pod(Api& api, const Clock& clock, const std::function<void()>& begin,
                                        const std::function<void(const core::collect::PodFact&)>& take);

}  // namespace croft::store::kube
