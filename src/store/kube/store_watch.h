#pragma once

#include <memory>

#include "store/kube/objects.h"
#include "store/store.h"

namespace croft::store::kube {

/// The revision of the API's storage, by a list that asks it.
[[nodiscard]] Result<Revision> position_now(Objects& objects, Deadline deadline);

/// One stream a listing and a single record, each with a thread that waits for it. `objects` must outlive it.
[[nodiscard]] std::unique_ptr<Watch> make_watch(Objects& objects, const WatchScope& scope, Revision after);

}  // namespace croft::store::kube
