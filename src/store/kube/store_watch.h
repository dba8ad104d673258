#pragma once

#include <memory>

#include "store/kube/calico_cluster.h"
#include "store/kube/objects.h"
#include "store/store.h"

namespace croft::store::kube {

/// One stream a listing and a single record, each with a thread that waits for it, and one for all blocks that have the
/// label of the owner whose listings are in the scope; a followed block without the label has a stream of its own.
/// Keeps the readiness known. Both must outlive it.
[[nodiscard]] std::unique_ptr<Watch> make_watch(Objects& objects, CalicoReadiness& readiness, const WatchScope& scope,
                                                Revision after);

}  // namespace croft::store::kube
