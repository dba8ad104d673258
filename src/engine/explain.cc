#include "engine/explain.h"

namespace croft::engine {

Result<core::Explanation> explain(const Context& context, const core::AssignRequest& request) {
  TRY_VOID(core::check_node_name(request.node.name));
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
    return core::plan_explain(snapshot, request, now);
  });
}

}  // namespace croft::engine
