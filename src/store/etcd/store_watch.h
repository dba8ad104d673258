#pragma once

#include <memory>

#include "store/etcd/epoch.h"
#include "store/etcd/kv.h"
#include "store/etcd/place.h"
#include "store/store.h"

namespace croft::store::etcd {

/// A watch of records over etcd's watches. It survives the loss of a connection, and
/// ends with the epoch of `after`. `store` reads what a change leaves
/// open; all arguments but the scope must outlive it. Its kinds must be such as `places` has.
[[nodiscard]] std::unique_ptr<Watch> make_watch(Store& store, Kv& kv, const Places& places, Epoch& epoch,
                                                const Clock& clock, Random& random, const WatchScope& scope,
                                                store::Revision after);

}  // namespace croft::store::etcd
