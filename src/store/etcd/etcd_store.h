#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/client.h"
#include "store/etcd/registry.h"
#include "store/look_only.h"
#include "store/store.h"

namespace croft::store {

/// A store in an etcd cluster, in Calico's own formats, so that Calico may work on the same data at the same time.
/// Calls go to `client`; a read of several records is one request as of one moment, a commit is one request. Nothing is
/// kept in memory. There is no queue of writers. `clock` and `random` must outlive the store and its watches.
///
/// A record that can't be read makes the call that finds it fail (corrupt, naming the key); a key under Calico's
/// prefixes that is none of Calico's is passed over.
///
/// `registry` has the records of Kubernetes; without one their kinds are refused (invalid_argument). A commit of a
/// range allocation alone whose reply was lost is recognised by its bytes: somebody else may have written the same.
/// Commit it with a record of Croft's own where that matters.
///
/// An etcd that was restored is refused until its register has another epoch (etcd/epoch.h, HasEpoch).
///
/// With `own_denied` it is for looking (LookOnly): a user that may not read below /croft/v1/ finds nothing there, and a
/// register that was restored is shown.
[[nodiscard]] std::unique_ptr<Store> make_etcd_store(std::unique_ptr<etcd::Client> client, const Clock& clock,
                                                     Random& random, std::unique_ptr<etcd::Registry> registry = nullptr,
                                                     OwnDenied own_denied = nullptr);

}  // namespace croft::store
