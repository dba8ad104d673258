#include "engine/assign.h"

namespace croft::engine {

Result<core::AssignAnswer> assign(const Context& context, const core::AssignRequest& request) {
  TRY_VOID(core::check_node_name(request.node.name));
  return transact(context, TurnTaking::first, [&](const core::Snapshot& snapshot, const Instant& now) {
    return core::plan_assign(snapshot, request, now);
  });
}

}  // namespace croft::engine
