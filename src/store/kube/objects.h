#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calico/crd.h"
#include "store/forwarding_store.h"
#include "store/kube/api.h"
#include "store/kube/object_list.h"
#include "store/kube/object_mapping.h"
#include "store/pause.h"

namespace croft::store::kube {

/// Records as objects of an API, one at a time: what the parts of the store share. Safe to use from several threads.
class Objects {
 public:
  /// Both must outlive it.
  Objects(Api& api, std::vector<std::unique_ptr<ObjectMapping>> mappings, const Clock& clock);

  /// Error: invalid_argument for a kind that this store has not.
  [[nodiscard]] Result<const ObjectMapping*> mapping_of(Kind kind) const;
  /// Whether there are records of a kind at all. Data beside a block is in the block's own object here, and goes with
  /// it. Hints are not kept (Capabilities::lacks), nor any of Croft's own kinds without a form for them.
  [[nodiscard]] bool keeps(Kind kind) const;
  [[nodiscard]] Api& api() const { return api_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// The record; nothing where there is none. An object that is only marked as deleted is none.
  [[nodiscard]] Result<std::optional<Record>> get(const Key& key, Deadline deadline);
  /// All keys of a listing; of blocks without those of a length, if one is given, from what the server has in memory.
  struct Keys {
    core::Listing listing;
    std::optional<int> but_length{};
    friend auto operator<=>(const Keys&, const Keys&) = default;
  };
  /// The objects that are asked for together.
  struct Wanted {
    std::vector<Key> records;
    std::set<core::Listing> lists;  ///< all records
    std::set<Keys> keys;
    /// Lists of one node's claims may be as old as what the server has in memory.
    bool claims_may_lag = false;
    std::optional<Request> beside{};  ///< something else
  };
  /// In the same order; lists ascending by name.
  struct Together {
    std::vector<std::optional<Record>> records;
    std::map<core::Listing, std::vector<Record>> lists;
    std::map<Keys, std::vector<Key>> keys;
    std::optional<Answer> beside{};
  };
  [[nodiscard]] Result<Together> read(const Wanted& wanted, Deadline deadline);

  /// Store::for_each, by the API's pages.
  [[nodiscard]] Result<void> for_each(const core::Listing& listing, std::size_t page_max,
                                      const std::function<Deadline()>& until,
                                      const std::function<Result<void>(Record&)>& take);

  // Single writes, whose condition is a revision, or for a put that there is none. Errors, beside those of every call:
  // conflict, naming the key, when the API says that what is there is another object than the condition says;
  // unknown_outcome. An intermediary may have sent a request twice: with a conflict the write may be in what is there
  // (ipam/use/ordered_commit.cc).

  [[nodiscard]] Result<Revision> write(const Write& write, const WriteToken& token, Deadline deadline);
  /// The request that a write makes first, where that most likely is all; nothing for other conditions and kinds that
  /// are not kept. For sending several writes together. Error: as of the write.
  [[nodiscard]] Result<std::optional<Request>> first_request(const Write& write, const WriteToken& token) const;
  /// The outcome that the answer means for the write; nothing when the write is to be made as if it had not been asked.
  [[nodiscard]] std::optional<Result<Revision>> settled_by(const Write& write, const Answer& answer);

  /// The position of the storage. Asks the API.
  [[nodiscard]] Result<Revision> position(Deadline deadline);

 private:
  /// The error of an answer that is none of what was hoped for.
  [[nodiscard]] Error error_of(const Answer& answer, Kind kind, std::string_view name) const;
  /// An object as it is; nothing where there is none.
  [[nodiscard]] Result<std::optional<Stored>> look(const Key& key, Deadline deadline);
  [[nodiscard]] Result<std::optional<Stored>> found_in(const ObjectMapping& mapping, const Key& key,
                                                       const Answer& answer);
  /// One selection of a listing, and where what it finds goes.
  struct Part {
    const core::Listing* listing = nullptr;
    const ObjectMapping* mapping = nullptr;
    ListAsked asked;
    std::vector<Record>* records = nullptr;
    std::vector<Key>* keys = nullptr;
  };
  [[nodiscard]] Result<std::vector<Part>> parts_of(const core::Listing& listing, bool claims_may_lag,
                                                   bool only_names) const;
  /// Reads the pages of a part; `take` gets each record, or its key alone. `begin` as ListUse's.
  [[nodiscard]] Result<void> read_part(const Part& part, std::optional<Answer> first,
                                       const std::function<void()>& begin, const std::function<Deadline()>& until,
                                       const std::function<Result<void>(Record&)>& take);
  /// Error also: refused_by_configuration, when what the API has kept is not what was sent.
  [[nodiscard]] Result<Revision> written(const ObjectMapping& mapping, const Write& put, const Answer& answer);
  void remember(const Key& key, const wire::kube::ApiObject& object);
  /// Empty: not known.
  [[nodiscard]] std::string uid_of(const Key& key) const;

  Api& api_;
  const std::vector<std::unique_ptr<ObjectMapping>> mappings_;
  const bool keeps_own_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  /// The UIDs of the objects seen last. A write says whose it is by the UID, so that it can't meet one made anew.
  /// Guarded by mutex_.
  std::map<Key, std::string> uids_;
};

// A cluster's statements about its Calico (docs/notes/calico-ipam.md).

/// The group that has Calico's objects, chosen as Calico chooses (libcalico-go/lib/backend/k8s/discovery.go): v3 only
/// where projectcalico.org is there and crd.projectcalico.org is not; v1 also where the caller may not ask. Errors:
/// what kept it from being asked; unavailable for an answer that is no list of groups.
[[nodiscard]] Result<wire::calico::ApiGroup> discover_calico_group(Api& api, Deadline deadline);

/// For a program that only looks: whether Croft's own kinds can be read. False where the API does not serve their
/// group, and where this account may not list them, which `denied` is told. RBAC refuses what is not there as well, so
/// discovery is asked too. Errors: what kept it from being asked.
[[nodiscard]] Result<bool> may_read_croft_kinds(Api& api, const OnOwnDenied& denied, Deadline deadline);

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

}  // namespace croft::store::kube
