#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/epoch.h"
#include "store/etcd/kv.h"
#include "store/etcd/place.h"
#include "store/store.h"

namespace croft::store::etcd {

/// One page of a list, as Store::list. The data beside its records is of the same moment as they are.
[[nodiscard]] Result<Page> list_page(Kv& kv, const Places& places, Epoch& epoch, const ListRequest& request,
                                     Deadline deadline);

}  // namespace croft::store::etcd
