#pragma once

#include "base/result.h"
#include "cni/door/personality.h"
#include "ipam/use/transact.h"
#include "register/affinity.h"
#include "register/owner.h"

namespace croft::edge {

/// For a DEL that found nothing, or less than the handle counts. Looks into the blocks of the node: what the owner
/// holds there all the same, of a handle that was deleted or edited by hand, is given back. When there is nothing at
/// all, says " elsewhere=<network>:<addresses>…" if the container holds addresses in networks of other names, as after
/// the network was renamed. Where the look fails nothing is said. Error: what was found could not be given back.
[[nodiscard]] Result<void> look_on_node(const engine::Context& context, const core::Owner& owner,
                                        const core::AffinityOwner& node, GivenBack& given_back);

}  // namespace croft::edge
