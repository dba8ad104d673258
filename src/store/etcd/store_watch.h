#pragma once

#include <memory>

#include "store/etcd/kv.h"
#include "store/store.h"

namespace croft::store::etcd {

/// A watch of records over etcd's watches. It survives the loss of a connection. `store` reads what a change leaves
/// open; all arguments must outlive it.
[[nodiscard]] std::unique_ptr<Watch> make_watch(Store& store, Kv& kv, const Clock& clock, Random& random,
                                                const WatchScope& scope, store::Revision after);

}  // namespace croft::store::etcd
