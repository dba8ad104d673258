#pragma once

#include <memory>

#include "store/kube/calico_cluster.h"
#include "store/kube/objects.h"
#include "store/store.h"

namespace croft::store::kube {

/// One stream a listing, a single record and a followed one, each with a thread that waits for it. Keeps the readiness
/// known. Both must outlive it.
[[nodiscard]] std::unique_ptr<Watch> make_watch(Objects& objects, CalicoReadiness& readiness, const WatchScope& scope,
                                                Revision after);

}  // namespace croft::store::kube
