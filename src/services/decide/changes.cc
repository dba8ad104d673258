#include "services/decide/changes.h"

#include <utility>

#include <fmt/format.h>

#include "services/decide/service_rules.h"

namespace croft::core {
namespace {

using Answer = ServiceAnswer;

[[nodiscard]] Plan<Answer> refuse(ServiceRefusal refusal) { return {std::move(refusal), {}}; }

/// The Service first: its token is the witness of a commit whose reply is lost.
[[nodiscard]] Plan<Answer> finish(RangeChanges& changes, Service service, std::vector<PlannedWrite> writes) {
  for (PlannedWrite& write : changes.settle()) writes.push_back(std::move(write));
  return {ServiceChanged{std::move(service), changes.notes()}, std::move(writes)};
}

/// A random (version 4) UUID.
[[nodiscard]] std::string new_uid(Random& random) {
  const std::uint64_t high = (random.next() & ~std::uint64_t{0xf000}) | 0x4000;
  const std::uint64_t low = (random.next() & ~(std::uint64_t{3} << 62)) | std::uint64_t{1} << 63;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48,
                     low & 0xffff'ffff'ffff);
}

}  // namespace

Step<Answer> plan_create_service(const Snapshot& snapshot, const Service& wanted, const ServiceRanges& ranges,
                                 const Instant& now, Random& random) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    // Names become a key: they are looked at before anything is read.
    if (auto refusal = check_service_name(wanted.name)) return refuse(*std::move(refusal));
    const bool exists = reader.get(service_key(wanted.name)) != nullptr;
    RangeChanges changes(reader, ranges, random);
    TRY_VOID(reader.ready());
    if (exists) return refuse(refuse_existing(wanted.name));
    TRY_VOID(changes.check_usable());
    Service service = wanted;
    auto refusal = complete_service(service, nullptr, changes);
    TRY_VOID(reader.ready());
    if (refusal) return refuse(*std::move(refusal));
    service.uid = new_uid(random);
    service.created = now.wall;
    return finish(changes, service, {to_put(service_key(service.name), service)});
  });
}

Step<Answer> plan_update_service(const Snapshot& snapshot, const Service& wanted, const std::optional<Service>& as_read,
                                 const ServiceRanges& ranges, Random& random) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    if (auto refusal = check_service_name(wanted.name)) return refuse(*std::move(refusal));
    const Service* before = reader.get(service_key(wanted.name));
    RangeChanges changes(reader, ranges, random);
    TRY_VOID(reader.ready());
    if (before == nullptr) return refuse(refuse_not_found(wanted.name));
    if (as_read && *as_read != *before) return refuse(refuse_stale(wanted.name));
    TRY_VOID(changes.check_usable());
    Service service = wanted;
    service.uid = before->uid;
    service.created = before->created;
    service.deleting = before->deleting;
    service.rest = before->rest;
    changes.hold(*before);
    auto refusal = complete_service(service, before, changes);
    TRY_VOID(reader.ready());
    if (refusal) return refuse(*std::move(refusal));
    std::vector<PlannedWrite> writes;
    if (service != *before) writes.push_back(to_put(service_key(service.name), service));
    return finish(changes, std::move(service), std::move(writes));
  });
}

Step<Answer> plan_delete_service(const Snapshot& snapshot, const ServiceName& name, Random& random) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    if (check_service_name(name)) return refuse(refuse_not_found(name));
    const Service* service = reader.get(service_key(name));
    RangeChanges changes(reader, {}, random);
    TRY_VOID(reader.ready());
    if (service == nullptr) return refuse(refuse_not_found(name));
    changes.hold(*service);
    return finish(changes, *service, {to_delete(service_key(name))});
  });
}

}  // namespace croft::core
