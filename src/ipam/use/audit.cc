#include "ipam/use/audit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ipam/use/each_record.h"
#include "ipam/use/register.h"

namespace croft::engine {
namespace {

/// Notes the revisions of those that are empty.
[[nodiscard]] Result<void> add_handles(const Context& context, core::audit::RegisterAudit& look,
                                       std::map<core::Key, store::Revision>& empty,
                                       std::map<core::Kind, Error>& not_allowed) {
  const auto done = for_each_in_any_order(
      context, {core::Kind::handle, "", "", store::kListLimitMax},
      [&](store::Record& record) {
        if (!record.value) {
          look.add_unreadable({record.key, record.value.error()});
        } else if (look.add_handle(record.key, std::get<core::Handle>(*record.value))) {
          empty[record.key] = record.revision;
        }
      },
      OnDamage::visit);
  if (!done && done.error().code == ErrorCode::permission_denied) {
    look.add_unreadable({{core::Kind::handle, ""}, done.error()});
    not_allowed.emplace(core::Kind::handle, done.error());
    return {};
  }
  return done;
}

}  // namespace

Result<void> wait_for_first_answer(const Context& context) {
  const auto limit = std::min<std::chrono::nanoseconds>(context.time_limit, kFirstAnswerMax);
  const auto there = context.store.position(Deadline::after(context.clock.now(), limit));
  if (there) return {};
  const ErrorCode code = there.error().code;
  if (code != ErrorCode::deadline_exceeded && code != ErrorCode::unavailable) return {};
  return fail(there.error().in("the store does not answer"));
}

Result<AuditReport> audit(const Context& context, const std::optional<core::audit::LiveAttachments>& live,
                          std::chrono::seconds grace, const std::string& live_node, const RunningPods& pods,
                          std::vector<core::NodeRange> pod_ranges, std::string asked_with) {
  const store::Capabilities can = context.store.capabilities();
  const bool has_own_services = can.services != core::System::kubernetes && !can.lacks.contains(core::Kind::service);
  core::Missing everything = core::audit::wanted_by_audit(can.foreign_writers, has_own_services);
  if (can.lacks.contains(core::Kind::service_cidr)) {
    std::erase_if(everything.records, [](const core::Key& key) { return key.kind == core::Kind::range_allocation; });
  }
  // Where what is read is of no common moment anyhow, handles are looked at one by one.
  const bool are_handles_apart = !can.atomic_commit;
  if (are_handles_apart) everything.lists.erase({core::Kind::handle, ""});
  MayLack may_lack;
  for (const core::Listing& listing : everything.lists) may_lack.insert(listing.kind);
  for (const core::Key& key : everything.records) may_lack.insert(key.kind);
  may_lack.erase(core::Kind::pool);
  may_lack.erase(core::Kind::block);
  auto found = read_register(context, everything, may_lack);
  if (!found) return fail(std::move(found).error());
  std::map<core::Kind, Error> not_allowed;
  for (const core::audit::Unreadable& one : found->unreadable) {
    // A node's user of a cluster's etcd never may read the ranges of Services (docs/runbooks/etcd-roles.md).
    const bool is_told = one.error.code == ErrorCode::permission_denied && one.key.kind != core::Kind::range_allocation;
    if (is_told) not_allowed.emplace(one.key.kind, one.error);
  }
  std::vector<core::audit::RunningPod> running;
  if (pods != nullptr) {
    TRY(running, pods());
  }
  const core::audit::Runtime runtime{
      live, grace, live_node, std::move(running), std::move(pod_ranges), std::move(asked_with)};
  const Instant now = context.clock.now();
  AuditReport report;
  if (are_handles_apart) {
    core::audit::RegisterAudit look(found->snapshot, found->unreadable, runtime, now);
    TRY_VOID(add_handles(context, look, found->revisions, not_allowed));
    report = {look.report(), {}, {}};
  } else {
    report = {core::audit::audit_register(found->snapshot, found->unreadable, runtime, now), {}, {}};
  }
  report.not_allowed = std::move(not_allowed);
  for (const auto& [key, id] : report.empty_handles) {
    const auto revision = found->revisions.find(key);
    if (revision != found->revisions.end()) report.leaked_handles.push_back({id, revision->second});
  }
  return report;
}

}  // namespace croft::engine
