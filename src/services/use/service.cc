#include "services/use/service.h"

#include <utility>
#include <variant>

#include "ipam/use/transact.h"

namespace croft::engine {
namespace {

using Answer = core::ServiceAnswer;

/// `plan(snapshot, now)` decides. A change takes its turn first: it decides once, and the bitmap of a /12 is not read
/// twice.
template <class Decide>
[[nodiscard]] Result<Answer> change(const Context& context, bool dry_run, Decide plan) {
  if (context.store.capabilities().services == core::System::kubernetes) {
    return fail(ErrorCode::read_only, "the Services of this store are Kubernetes' own and read-only here: use kubectl");
  }
  return transact(
      context, dry_run ? TurnTaking::before_writing : TurnTaking::first,
      [&](const core::Snapshot& snapshot, const Instant& now) { return written_if(!dry_run, plan(snapshot, now)); });
}

}  // namespace

Result<Answer> create_service(const Context& context, const core::Service& wanted, const core::ServiceRanges& ranges,
                              bool dry_run) {
  return change(context, dry_run, [&](const core::Snapshot& snapshot, const Instant& now) {
    return core::plan_create_service(snapshot, wanted, ranges, now, context.random);
  });
}

Result<Answer> update_service(const Context& context, const core::Service& wanted, const core::ServiceRanges& ranges,
                              bool dry_run, const std::optional<store::Revision>& as_of) {
  std::optional<core::Service> as_read;
  if (as_of) {
    TRY(auto stored, get_service(context, wanted.name));
    if (!stored) return Answer(core::refuse_not_found(wanted.name));
    if (stored->revision != *as_of) return Answer(core::refuse_stale(wanted.name));
    // From here on the value stands for the revision: the same value written again changes nothing.
    as_read = std::move(stored->service);
  }
  return change(context, dry_run, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_update_service(snapshot, wanted, as_read, ranges, context.random);
  });
}

Result<Answer> delete_service(const Context& context, const core::ServiceName& name, bool dry_run) {
  // After a lost reply the name may be gone, or another Service's.
  std::optional<core::Service> first;
  return change(context, dry_run, [&](const core::Snapshot& snapshot, const Instant&) -> core::Step<Answer> {
    auto step = core::plan_delete_service(snapshot, name, context.random);
    const auto* plan = std::get_if<core::Plan<Answer>>(&step);
    if (plan == nullptr) return step;
    const auto* changed = std::get_if<core::ServiceChanged>(&plan->answer);
    if (!first && changed != nullptr) first = changed->service;
    if (!first || (changed != nullptr && changed->service.uid == first->uid)) return step;
    return core::Plan<Answer>{Answer(core::ServiceChanged{*first, {}}), {}};
  });
}

Result<std::optional<StoredService>> get_service(const Context& context, const core::ServiceName& name) {
  if (core::check_service_name(name)) return std::optional<StoredService>();  // and no key either
  TRY(auto record, get_sound(context, core::service_key(name), deadline_of_use_case(context)));
  if (!record) return std::optional<StoredService>();
  return std::optional(StoredService{std::get<core::Service>(*std::move(record->value)), record->revision});
}

Result<std::vector<StoredService>> list_services(const Context& context, const std::string& name_space) {
  std::vector<StoredService> services;
  if (!name_space.empty() && core::check_service_name({name_space, "a"})) return services;
  const core::Listing listing{core::Kind::service, name_space.empty() ? "" : name_space + "/"};
  TRY_VOID(for_each_record(
      context, listing,
      [&](store::Record& record) {
        services.push_back({std::get<core::Service>(*std::move(record.value)), record.revision});
      },
      OnDamage::skip));
  return services;
}

}  // namespace croft::engine
