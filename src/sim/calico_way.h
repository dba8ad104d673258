#pragma once

#include <vector>

#include "base/result.h"
#include "ipam/decide/assign.h"
#include "ipam/use/transact.h"
#include "register/pool.h"
#include "sim/server.h"

namespace croft::sim {

/// An ADD with the requests of Calico's library (docs/notes/calico-ipam.md#requests), one after the other: the
/// configuration, the node, lists of reservations, pools and the node's claims; claim and block of each own block until
/// one has room; handle and block written. A claim lists all blocks of the cluster and takes the first one that is
/// nobody's, in the node's rotation; without any, blocks are read one by one to borrow. Blocks and their addresses are
/// the production's (register/block.h). `claims`: how many there are in the cluster. A Kubernetes API that answers a
/// list by label from etcd, as the measured one does, goes through all of them.
[[nodiscard]] Result<core::AssignAnswer> calico_add(const engine::Context& context, Server& server,
                                                    const std::vector<core::Pool>& pools, bool strict,
                                                    std::size_t claims, const core::AssignRequest& request);

/// The DEL of a handle, likewise.
void calico_del(const engine::Context& context, const std::string& handle_id);

}  // namespace croft::sim
