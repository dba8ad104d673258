#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "register/snapshot.h"
#include "store/etcd/epoch.h"
#include "store/etcd/kv.h"
#include "store/etcd/place.h"
#include "store/store.h"

namespace croft::store::etcd {

/// Everything a decision asks for, as Store::read: in one request the first page of all, then what did not fit, as of
/// the same moment. Kinds that one request can't ask for are read apart, and its lists from `store`.
[[nodiscard]] Result<ReadAnswer> read_wanted(Store& store, Kv& kv, const Places& places, Epoch& epoch,
                                             const core::Missing& wanted, Deadline deadline);

/// As Store::position.
[[nodiscard]] Result<store::Revision> position_now(Kv& kv, Epoch& epoch, Deadline deadline);

}  // namespace croft::store::etcd
