#include "services/decide/changes.h"

#include <utility>

#include <fmt/format.h>

#include "services/decide/cluster_ips.h"
#include "services/decide/families.h"
#include "services/decide/node_port_rules.h"
#include "services/decide/questions.h"
#include "services/decide/type_changes.h"
#include "services/decide/validation.h"

namespace croft::core {
namespace {

const ServiceName kKubernetes{"default", "kubernetes"};

using Answer = ServiceAnswer;

// Ranges that have not been read refuse everything (range_changes.h): a decision goes on with that, so that all it
// needs is asked for together, and decide() sees to it that no such refusal is the answer.

[[nodiscard]] Plan<Answer> refuse(ServiceRefusal refusal) { return {std::move(refusal), {}}; }

[[nodiscard]] Plan<Answer> finish_change(RangeChanges& changes, Service service, std::vector<PlannedWrite> writes,
                                         bool dry_run) {
  // The Service first: its token is the witness of a commit whose reply is lost.
  for (PlannedWrite& write : changes.settle()) writes.push_back(std::move(write));
  if (dry_run) writes.clear();
  return {ServiceChanged{std::move(service), changes.notes()}, std::move(writes)};
}

[[nodiscard]] bool needs_addresses(const Service& service) {
  return needs_cluster_ip(service) && service.cluster_ip != kHeadless && !is_headless(service);
}

/// The Service that kube-apiserver makes for itself; nothing when its address is taken or it exists.
[[nodiscard]] std::optional<Service> make_kubernetes(Reader& reader, RangeChanges& changes, const ServiceRanges& ranges,
                                                     const Instant& now, Random& random) {
  if (reader.get(service_key(kKubernetes)) != nullptr || !reader.ready()) return std::nullopt;
  const net::Prefix& cidr = ranges.cidrs.primary;
  const auto first = cidr.first().next();
  if (!first || changes.take(*first)) return std::nullopt;
  Service service;
  service.name = kKubernetes;
  service.uid = new_uid(random);
  service.created = now.wall;
  service.labels = {{"component", "apiserver"}, {"provider", "kubernetes"}};
  service.cluster_ip = first->to_string();
  service.cluster_ips = {service.cluster_ip};
  service.ip_families = {cidr.family()};
  service.ip_family_policy = IpFamilyPolicy::single_stack;
  ServicePort port;
  port.name = "https";
  port.port = 443;
  port.target_port = "6443";
  service.ports = {port};
  return service;
}

void put_service(Service service, std::vector<PlannedWrite>& writes) {
  const auto key = service_key(service.name);
  writes.push_back(to_put(key, std::move(service)));
}

}  // namespace

std::string new_uid(Random& random) {
  const std::uint64_t high = (random.next() & ~std::uint64_t{0xf000}) | 0x4000;
  const std::uint64_t low = (random.next() & ~(std::uint64_t{3} << 62)) | std::uint64_t{1} << 63;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48,
                     low & 0xffff'ffff'ffff);
}

Step<Answer> plan_create_service(const Snapshot& snapshot, const Service& wanted, const ServiceRanges& ranges,
                                 const ServiceOptions& options, const Instant& now, Random& random) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    Service service = wanted;
    apply_defaults(service);
    // Names become a key: they are looked at before anything is read.
    if (FieldErrors errors = check_service_name(service.name); !errors.empty()) {
      return refuse(refuse_invalid(service, std::move(errors)));
    }
    if (reader.get(service_key(service.name)) != nullptr) return refuse(refuse_existing(service.name));
    RangeChanges changes(reader, &ranges, random, options.dry_run);
    changes.will_take(needs_addresses(service), may_have_node_ports(service));
    TRY_VOID(reader.ready());

    std::optional<Service> kubernetes;
    if (options.with_kubernetes_service && service.name != kKubernetes && needs_addresses(service) &&
        changes.makes_primary()) {
      kubernetes = make_kubernetes(reader, changes, ranges, now, random);
    }
    normalize_cluster_ips(service, nullptr);
    if (FieldErrors errors = settle_families(service, nullptr, changes.families()); !errors.empty()) {
      return refuse(refuse_invalid(service, std::move(errors)));
    }
    if (auto refusal = take_cluster_ips(service, changes)) return refuse(*std::move(refusal));
    if (auto refusal = take_node_ports(service, changes)) return refuse(*std::move(refusal));
    if (FieldErrors errors = check_new_service(service); !errors.empty()) {
      return refuse(refuse_invalid(service, std::move(errors)));
    }
    service.uid = new_uid(random);
    service.created = now.wall;
    std::vector<PlannedWrite> writes;
    put_service(service, writes);
    if (kubernetes) put_service(*std::move(kubernetes), writes);
    return finish_change(changes, std::move(service), std::move(writes), options.dry_run);
  });
}

Step<Answer> plan_update_service(const Snapshot& snapshot, const Service& wanted, const std::optional<Service>& as_read,
                                 const ServiceRanges& ranges, const ServiceOptions& options, Random& random) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    Service service = wanted;
    apply_defaults(service);
    if (FieldErrors errors = check_service_name(service.name); !errors.empty()) {
      return refuse(refuse_invalid(service, std::move(errors)));
    }
    const Service* before = reader.get(service_key(service.name));
    TRY_VOID(reader.ready());
    if (before == nullptr) return refuse(refuse_not_found(service.name));
    if (as_read && *as_read != *before) return refuse(refuse_stale(service.name));
    service.uid = before->uid;
    service.created = before->created;
    service.deleting = before->deleting;
    service.rest = before->rest;

    RangeChanges changes(reader, &ranges, random, options.dry_run);
    keep_allocated_values(service, *before);
    normalize_cluster_ips(service, before);
    if (FieldErrors errors = settle_families(service, before, changes.families()); !errors.empty()) {
      return refuse(refuse_invalid(service, std::move(errors)));
    }
    if (auto refusal = change_cluster_ips(service, *before, changes)) return refuse(*std::move(refusal));
    if (auto refusal = change_node_ports(service, *before, changes)) return refuse(*std::move(refusal));
    drop_values_of_type(service, *before);
    if (FieldErrors errors = check_changed_service(service, *before); !errors.empty()) {
      return refuse(refuse_invalid(service, std::move(errors)));
    }
    std::vector<PlannedWrite> writes;
    if (service != *before) put_service(service, writes);
    return finish_change(changes, std::move(service), std::move(writes), options.dry_run);
  });
}

Step<Answer> plan_delete_service(const Snapshot& snapshot, const ServiceName& name, const ServiceOptions& options,
                                 Random& random) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    if (!check_service_name(name).empty()) return refuse(refuse_not_found(name));
    const Service* service = reader.get(service_key(name));
    TRY_VOID(reader.ready());
    if (service == nullptr) return refuse(refuse_not_found(name));
    RangeChanges changes(reader, nullptr, random, options.dry_run);
    for (const net::Address& address : addresses_of(*service)) changes.give_back(address);
    for (const std::uint16_t port : held_node_ports_of(*service)) changes.give_back_port(port);
    std::vector<PlannedWrite> writes{to_delete(service_key(name))};
    return finish_change(changes, *service, std::move(writes), options.dry_run);
  });
}

}  // namespace croft::core
