#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "store/kube/api.h"
#include "store/kube/objects.h"
#include "wire/calico/crd.h"

// What a cluster says of its Calico (docs/reference/calico-ipam.md).
namespace croft::store::kube {

/// The group that has Calico's objects, chosen as Calico chooses (libcalico-go/lib/backend/k8s/discovery.go): v3 only
/// where projectcalico.org is there and crd.projectcalico.org is not; v1 also where the API does not tell. Error: what
/// kept it from being asked: unavailable, deadline_exceeded.
[[nodiscard]] Result<wire::calico::ApiGroup> discover_calico_group(Api& api, Deadline deadline);

/// Whether Calico's data may be written, as it was when it was last asked. Safe to use from several threads.
struct CalicoReadiness {
  std::mutex mutex;
  std::optional<std::chrono::nanoseconds> ready_at;  ///< guarded by mutex: since boot; nothing: never, or not any more
};

/// Asks for Calico's ClusterInformation, unless what is known is younger than five seconds; and takes in the answer: an
/// answer that is none leaves what was known. For who has other requests to send along.
[[nodiscard]] std::optional<Request> readiness_request(const Objects& objects, CalicoReadiness& readiness);
void take_readiness(const Objects& objects, CalicoReadiness& readiness, const Answer& answer);

/// Looks at Calico's ClusterInformation, at most every ten seconds. Error: unavailable when it says
/// `datastoreReady: false`, as while Calico is upgraded or its data moved: nothing may be written then. A cluster
/// without one is ready.
[[nodiscard]] Result<void> check_calico_is_ready(Objects& objects, CalicoReadiness& readiness, Deadline deadline);

}  // namespace croft::store::kube
