#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "calico/crd.h"
#include "store/kube/api.h"
#include "store/kube/objects.h"
#include "store/look_only.h"
#include "store/pause.h"

// A cluster's statements about its Calico (docs/notes/calico-ipam.md).
namespace croft::store::kube {

/// The group that has Calico's objects, chosen as Calico chooses (libcalico-go/lib/backend/k8s/discovery.go): v3 only
/// where projectcalico.org is there and crd.projectcalico.org is not; v1 also where the caller may not ask. Errors:
/// what kept it from being asked; unavailable for an answer that is no list of groups.
[[nodiscard]] Result<wire::calico::ApiGroup> discover_calico_group(Api& api, Deadline deadline);

/// For a program that only looks: whether Croft's own kinds can be read. False where the API does not serve their
/// group, and where this account may not list them, which `denied` is told. RBAC refuses what is not there as well, so
/// discovery is asked too. Errors: what kept it from being asked.
[[nodiscard]] Result<bool> may_read_own_kinds(Api& api, const OwnDenied& denied, Deadline deadline);

/// Whether Calico's data may be written, as it was when it was last asked. Safe to use from several threads.
struct CalicoReadiness {
  std::mutex mutex;
  std::optional<std::chrono::nanoseconds> ready_at;  ///< guarded by mutex: since boot; nothing: never, or not any more
  bool is_filling = false;                           ///< guarded by mutex: Pausable::fill
  /// Guarded by mutex: since boot, when crd.projectcalico.org had no ClusterInformation, and whether the newer group
  /// has one is to be asked yet.
  std::optional<std::chrono::nanoseconds> absent_at;
};
/// For how long what was seen of it counts: who pauses waits so long, and for the requests that are on their way then.
/// Calico's migration between its groups waits ten seconds between the lock and the first copy (defaultDrainPeriod in
/// kube-controllers/pkg/controllers/migration/controller.go): a write that began in time must have ended by then.
inline constexpr std::chrono::seconds kReadyFor{7};
/// How old it is when it is asked for again, also by an agent that has nothing to do: each of a cluster's does.
inline constexpr std::chrono::seconds kReadyAskedAfter{5};

/// A question for who has other requests to send along.
struct ReadinessQuestion {
  Request request;
  bool of_newer_group = false;
};
/// Asks for Calico's ClusterInformation, unless what is known is younger than `age_max`; and takes in the answer.
/// Error: nothing may be written.
[[nodiscard]] std::optional<ReadinessQuestion> readiness_question(const Objects& objects, CalicoReadiness& readiness,
                                                                  std::chrono::nanoseconds age_max = kReadyAskedAfter);
[[nodiscard]] Result<void> take_readiness(const Objects& objects, CalicoReadiness& readiness,
                                          const ReadinessQuestion& asked, const Answer& answer);

/// Looks at Calico's ClusterInformation, unless what is known is younger than kReadyFor. Error: unavailable when it
/// says `datastoreReady: false`, as while Calico is upgraded or its data moved, or is paused: nothing may be written
/// then. A cluster without one is ready, unless the newer group has one. Then the older group is being deleted after a
/// migration, and the rest of it must not be written.
[[nodiscard]] Result<void> check_calico_is_ready(Objects& objects, CalicoReadiness& readiness, Deadline deadline);

// The pause (Pausable): an annotation of the same object, which says `datastoreReady: false` besides, for Calico's own
// programs. Existing content there stays. The revision is the object's.

[[nodiscard]] Result<std::optional<StoredPause>> read_pause(Objects& objects, Deadline deadline);
/// Errors beside Pausable's: unavailable when the object says datastoreReady: false and there is no pause, so that
/// somebody else is at work; refused_by_configuration when the API has no such kind.
[[nodiscard]] Result<void> change_pause(Objects& objects, const std::optional<StoredPause>& there,
                                        const std::optional<core::Pause>& next, Deadline deadline);

/// A watch with one stream for each listing, single record and followed one, each with a thread that waits for it.
/// Keeps the readiness known. Both must outlive it.
[[nodiscard]] std::unique_ptr<Watch> make_watch(Objects& objects, CalicoReadiness& readiness, const WatchScope& scope,
                                                Revision after);

}  // namespace croft::store::kube
