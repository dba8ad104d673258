#include "engine/audit.h"

#include <algorithm>
#include <utility>

#include "engine/register.h"

namespace croft::engine {

Result<void> wait_for_first_answer(const Context& context) {
  const auto limit = std::min<std::chrono::nanoseconds>(context.time_limit, kFirstAnswerMax);
  const auto there = context.store.position(Deadline::after(context.clock.now(), limit));
  if (there) return {};
  const ErrorCode code = there.error().code;
  if (code != ErrorCode::deadline_exceeded && code != ErrorCode::unavailable) return {};
  return fail(there.error().in("the store does not answer"));
}

Result<AuditReport> audit(const Context& context, const std::optional<core::audit::LiveAttachments>& live,
                          std::chrono::seconds grace, const std::string& live_node,
                          std::vector<core::audit::RunningPod> pods) {
  const store::Capabilities can = context.store.capabilities();
  core::Missing everything = core::audit::wanted_by_audit(can.foreign_writers, !can.kubernetes_services);
  const auto leave_out_ranges = [&] {
    std::erase_if(everything.records, [](const core::Key& key) { return key.kind == core::Kind::range_allocation; });
  };
  if (!can.sees_kubernetes) leave_out_ranges();
  auto found = read_register(context, everything);
  if (!found && found.error().code == ErrorCode::permission_denied) {
    // A node may not read the ranges of Services in a cluster's store (docs/runbooks/etcd-roles.md); the rest it may.
    leave_out_ranges();
    found = read_register(context, everything);
  }
  if (!found) return fail(std::move(found).error());
  AuditReport report{core::audit::audit_register(found->snapshot, found->unreadable,
                                                 {live, grace, live_node, std::move(pods)}, context.clock.now()),
                     {}};
  for (const auto& [key, id] : report.empty_handles) {
    const auto revision = found->revisions.find(key);
    if (revision != found->revisions.end()) report.leaked_handles.push_back({id, revision->second});
  }
  return report;
}

}  // namespace croft::engine
