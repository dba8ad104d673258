#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/kv.h"
#include "store/store.h"

namespace croft::store {

/// A store in an etcd cluster, in Calico's own formats, so that Calico may work on the same data at the same time.
/// Calls go to `kv`; a read of several records is one request as of one moment, a commit is one request. Nothing is
/// kept in memory. There is no queue of writers. `clock` and `random` must outlive the store and its watches.
///
/// A record that can't be read makes the call that finds it fail (corrupt, naming the key); a key under Calico's
/// prefixes that is none of Calico's is passed over.
[[nodiscard]] std::unique_ptr<Store> make_etcd_store(std::unique_ptr<etcd::Kv> kv, const Clock& clock, Random& random);

}  // namespace croft::store
