#include "services/audit/range_repair.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/net/echo.h"
#include "base/net/lenient.h"
#include "base/net/prefix.h"
#include "register/service.h"

namespace croft::core::audit {

namespace {

using Type = RepairFinding::Type;

/// The words for addresses.
struct AddressWords {
  static constexpr std::string_view kAction = "ClusterIPAllocation";
  static constexpr std::string_view kNotAllocated = "ClusterIPNotAllocated";
  static constexpr std::string_view kAlreadyAllocated = "ClusterIPAlreadyAllocated";
  static constexpr std::string_view kOutOfRange = "ClusterIPOutOfRange";
  static constexpr std::string_view kLeaked = "ClusterIPLeaked";

  static std::string named(const net::Address& address) {
    return fmt::format("Cluster IP [{}]:{}", word_of(address.family()), address.to_string());
  }
  static std::string leaked(const net::Address& address) { return "the cluster IP " + address.to_string(); }
  static constexpr std::string_view kWithin = "is not within the service CIDR";
  static std::string unreadable(const service::ServiceCidr& wanted, const std::string& why) {
    return fmt::format("unable to rebuild allocator from snapshots for family:{} with error:{}",
                       word_of(wanted.cidr().family()), why);
  }
};

/// The words for node ports.
struct PortWords {
  static constexpr std::string_view kAction = "PortAllocation";
  static constexpr std::string_view kNotAllocated = "PortNotAllocated";
  static constexpr std::string_view kAlreadyAllocated = "PortAlreadyAllocated";
  static constexpr std::string_view kOutOfRange = "PortOutOfRange";
  static constexpr std::string_view kLeaked = "PortLeaked";

  static std::string named(int port) { return fmt::format("Port {}", port); }
  static std::string leaked(int port) { return fmt::format("the node port {}", port); }
  static constexpr std::string_view kWithin = "is not within the port range";
  static std::string unreadable(const service::NodePortRange&, const std::string& why) {
    return "unable to rebuild allocator from snapshot: " + why;
  }
};

/// The same number without zeros in front.
std::string_view trimmed(std::string_view data) {
  data.remove_prefix(std::min(data.find_first_not_of('\0'), data.size()));
  return data;
}

/// A range while it is made anew.
template <service::RangeMap M, class Words>
class Rebuild {
 public:
  using Value = typename M::Value;

  explicit Rebuild(const RangeSeen<M>& seen) : seen_(seen), rebuilt_(seen.wanted), left_(seen.wanted) {
    result_.name = seen.name;
    result_.range = seen.wanted.text();
    if (!seen.stored) {
      count_bands();
      return;
    }
    result_.present = true;
    result_.range = seen.stored->range;
    auto restored = service::range_from<M>({seen.stored->range, seen.stored->data});
    if (!restored) {
      result_.failure = Error{ErrorCode::corrupt,
                              Words::unreadable(seen.wanted, restored.error().message + " (record " + seen.name + ")"),
                              {}};
      return;
    }
    left_ = std::move(restored->range);
    count_bands();
    if (restored->beyond > 0) {
      add(Type::unknown, "UnknownError", "", std::nullopt, true,
          fmt::format("the range {} had {} beyond its end; dropping {}", net::echo(seen.stored->range),
                      counted(restored->beyond, "bit"), restored->beyond == 1 ? "it" : "them"));
    }
  }

  /// Nobody can tell which value the Service holds: what has leaked may be it, and stays.
  void keep_all_for(const ServiceName& service) {
    if (!unreadable_) unreadable_ = service;
  }

  [[nodiscard]] bool works() const { return !result_.failure; }
  [[nodiscard]] const M& wanted() const { return seen_.wanted; }

  void use(const Value& value, const ServiceName& service) {
    if (!works()) return;
    if (!seen_.wanted.ordinal_of(value)) {
      left_.give_back(value);
      add(Type::out_of_range, Words::kOutOfRange, text_of(RangeValue(value)), service, false,
          fmt::format("{} {} {}; please recreate service", Words::named(value), Words::kWithin, seen_.wanted.text()));
    } else if (!rebuilt_.take(value)) {
      add(Type::duplicate, Words::kAlreadyAllocated, text_of(RangeValue(value)), service, false,
          Words::named(value) + " was assigned to multiple services; please recreate service");
    } else if (!left_.give_back(value)) {
      add(Type::repair, Words::kNotAllocated, text_of(RangeValue(value)), service, true,
          Words::named(value) + " is not allocated; repairing");
    }
  }

  void add(Type type, std::string_view reason, std::string value, std::optional<ServiceName> service, bool mended,
           std::string message, std::string_view action = Words::kAction) {
    result_.findings.push_back(
        {type, reason, action, seen_.name, std::move(value), std::move(service), std::move(message), mended});
  }

  [[nodiscard]] RangeRepair finish() {
    if (!works()) return std::move(result_);
    look_for_leaks();
    service::RangeSnapshot snapshot = rebuilt_.snapshot();
    const bool is_so =
        seen_.stored && seen_.stored->range == snapshot.range && trimmed(seen_.stored->data) == snapshot.data;
    if (!is_so) {
      result_.write = seen_.stored.value_or(RangeAllocation{});
      result_.write->range = std::move(snapshot.range);
      result_.write->data = std::move(snapshot.data);
    }
    return std::move(result_);
  }

 private:
  void count_bands() {
    const M& map = left_.map();
    result_.in_static.size = std::min(map.band(), map.size());
    result_.in_dynamic.size = map.size() - result_.in_static.size;
    left_.for_each_taken([&](const Value& value) {
      ++(map.ordinal_of(value)->value < map.band() ? result_.in_static : result_.in_dynamic).used;
    });
  }

  void look_for_leaks() {
    auto before = seen_.leaks.begin();
    std::size_t named = 0;
    std::array<std::uint64_t, 2> unnamed{};  // that wait, that are freed
    left_.for_each_taken([&](const Value& value) {
      // A value outside the wanted range goes with the old range.
      if (!seen_.wanted.ordinal_of(value)) return;
      const RangeValue as_value(value);
      while (before != seen_.leaks.end() && before->value < as_value) ++before;
      const unsigned passes = before != seen_.leaks.end() && before->value == as_value ? before->passes + 1 : 1;
      const bool is_freed = passes >= kPassesBeforeLeakIsFreed && !unreadable_;
      if (!is_freed) {
        static_cast<void>(rebuilt_.take(value));
        result_.leaks.push_back({as_value, passes});
      }
      if (++named > kLeakFindingsMax) {
        ++unnamed[is_freed ? 1 : 0];
        return;
      }
      add(Type::leak, Words::kLeaked, text_of(as_value), std::nullopt, is_freed,
          Words::leaked(value) + (is_freed ? " appears to" : " may") + " have leaked" + what_next(is_freed));
    });
    for (const bool is_freed : {false, true}) {
      const std::uint64_t count = unnamed[is_freed ? 1 : 0];
      if (count == 0) continue;
      add(Type::leak, Words::kLeaked, is_freed ? "more, freed" : "more, flagged", std::nullopt, is_freed,
          fmt::format("{} more {} have leaked{}", count, is_freed ? "appear to" : "may", what_next(is_freed)));
      result_.findings.back().count = count;
    }
  }

  [[nodiscard]] std::string what_next(bool is_freed) const {
    if (unreadable_) {
      return fmt::format(": kept, as the address of Service {} can't be read and may be this one",
                         unreadable_->to_string());
    }
    return is_freed ? ": cleaning up" : ": flagging for later clean up";
  }

  const RangeSeen<M>& seen_;
  std::optional<ServiceName> unreadable_;  ///< the first one whose value can't be read
  service::MappedRange<M> rebuilt_;
  service::MappedRange<M> left_;  ///< the stored range, without what was found in use
  RangeRepair result_;
};

using AddressRebuild = Rebuild<service::ServiceCidr, AddressWords>;

AddressRebuild* rebuild_of(std::vector<AddressRebuild>& all, net::Family family) {
  const auto found = std::ranges::find(all, family, [](const auto& one) { return one.wanted().cidr().family(); });
  return found != all.end() ? &*found : nullptr;
}

}  // namespace

ServiceUse use_of(const Service& service) {
  ServiceUse use{service.name, service.created, service.type, {}, {}, false, service.uid};
  if (service.type == ServiceType::external_name) return use;
  const auto& ips = service.cluster_ips;
  if (!ips.empty() && !ips.front().empty() && ips.front() != kHeadless) use.cluster_ips = ips;
  for (const ServicePort& port : service.ports) {
    if (port.node_port != 0) use.node_ports.push_back({port.protocol, port.node_port});
  }
  if (const auto health = service.health_check_node_port) use.node_ports.push_back({ServiceProtocol::tcp, health});
  return use;
}

std::vector<std::uint16_t> collect_node_ports(const ServiceUse& use) {
  std::vector<std::uint16_t> result;
  const auto& ports = use.node_ports;
  for (auto port = ports.begin(); port != ports.end(); ++port) {
    const auto has_number = [&](const auto& other) { return other.number == port->number; };
    const bool is_new = std::none_of(ports.begin(), port, has_number);
    const bool is_twice = std::any_of(
        ports.begin(), port, [&](const auto& other) { return has_number(other) && other.protocol == port->protocol; });
    if (is_new || is_twice) result.push_back(port->number);
  }
  return result;
}

std::string text_of(const RangeValue& value) {
  if (const auto* address = std::get_if<net::Address>(&value)) return address->to_string();
  return std::to_string(std::get<int>(value));
}

std::string_view name_of(RepairFinding::Type type) {
  constexpr std::array<std::string_view, RepairFinding::kTypeCount> kNames{
      "leak", "repair", "full", "outOfRange", "duplicate", "invalid", "unknown"};
  return kNames[static_cast<std::size_t>(type)];
}

RepairCounts counts_of(const std::vector<RepairFinding>& findings) {
  RepairCounts counts{};
  for (const RepairFinding& finding : findings) {
    if (finding.type != Type::leak || finding.mended) counts[static_cast<std::size_t>(finding.type)] += finding.count;
  }
  return counts;
}

std::vector<RangeRepair> repair_addresses(std::span<const AddressRangeSeen> ranges,
                                          std::span<const ServiceUse> services) {
  std::vector<AddressRebuild> rebuilds;
  for (const AddressRangeSeen& range : ranges) rebuilds.emplace_back(range);
  if (rebuilds.empty()) return {};
  for (const ServiceUse& service : services) {
    for (const std::string& text : service.cluster_ips) {
      const auto address = net::parse_address_leniently(text);
      if (!address) {
        rebuilds.front().add(Type::invalid, "ClusterIPNotValid", text, service.name, false,
                             fmt::format("Cluster IP {} is not a valid IP; please recreate service", net::echo(text)),
                             "ClusterIPValidation");
        for (AddressRebuild& rebuild : rebuilds) rebuild.keep_all_for(service.name);
        continue;
      }
      if (AddressRebuild* rebuild = rebuild_of(rebuilds, address->family())) {
        rebuild->use(*address, service.name);
        continue;
      }
      rebuilds.front().add(Type::invalid, "ClusterIPNotValid", address->to_string(), service.name, false,
                           fmt::format("Cluster IP {}({}) is of ip family that is no longer configured on cluster; "
                                       "please recreate service",
                                       address->to_string(), word_of(address->family())));
    }
  }
  std::vector<RangeRepair> result;
  for (AddressRebuild& rebuild : rebuilds) result.push_back(rebuild.finish());
  return result;
}

RangeRepair repair_node_ports(const PortRangeSeen& range, std::span<const ServiceUse> services) {
  Rebuild<service::NodePortRange, PortWords> rebuild(range);
  for (const ServiceUse& service : services) {
    for (const std::uint16_t port : collect_node_ports(service)) rebuild.use(port, service.name);
  }
  return rebuild.finish();
}

RangeRepair compare_node_ports(const std::optional<service::NodePortRange>& range,
                               std::span<const ServiceUse> services) {
  const service::NodePortRange any = service::NodePortRange::parse("1-65535").value();
  service::NodePorts held(range.value_or(any));
  for (const ServiceUse& service : services) {
    for (const std::uint16_t port : collect_node_ports(service)) static_cast<void>(held.take(port));
  }
  service::RangeSnapshot snapshot = held.snapshot();
  PortRangeSeen seen{std::string(kServiceNodePorts), RangeAllocation{}, range.value_or(any), {}};
  seen.stored->range = std::move(snapshot.range);
  seen.stored->data = std::move(snapshot.data);
  RangeRepair compared = repair_node_ports(seen, services);
  compared.write.reset();
  compared.present = range.has_value();
  if (!range) {
    compared.range.clear();
    compared.in_static = compared.in_dynamic = {};
  }
  return compared;
}

namespace {

void fail_range(RangesDecided& decided, std::string_view name, ErrorCode code, std::string message) {
  decided.failures.push_back({std::string(name), Error{code, std::move(message), {}}});
}

[[nodiscard]] const RangeAllocation* stored_in(const RangesSeen& seen, std::string_view name) {
  const auto found = seen.stored.find(name);
  return found != seen.stored.end() ? &found->second : nullptr;
}

/// A range that is to be `wanted`, else what its record says; nothing when neither says, or after a failure.
template <service::RangeMap M>
[[nodiscard]] std::optional<RangeSeen<M>> range_seen(const RangesSeen& seen, std::string_view name, bool by_flag,
                                                     std::optional<Result<M>> wanted, RangesDecided& decided) {
  const RangeAllocation* record = stored_in(seen, name);
  if (!by_flag && record != nullptr) wanted = M::parse(record->range);
  if (!wanted) return std::nullopt;
  if (!*wanted) {
    fail_range(decided, name, ErrorCode::corrupt,
               fmt::format("the range of the record {}: {}", name, wanted->error().message));
    return std::nullopt;
  }
  RangeSeen<M> result{std::string(name), {}, **std::move(wanted), {}};
  if (record != nullptr) result.stored = *record;
  if (const auto leaks = seen.leaks.find(result.name); leaks != seen.leaks.end()) result.leaks = leaks->second;
  return result;
}

void lacks(RangesDecided& decided, std::string_view name, const char* flag) {
  fail_range(decided, name, ErrorCode::invalid_argument,
             fmt::format("there is no record {}, and Services hold values of it: give {}", name, flag));
}

/// Where a range is not yet, somebody else may be.
void refuse_claimed(RangeRepair& repair, const AddressClaims& claims) {
  if (!is_moved(repair)) return;
  const auto cidr = net::Prefix::parse(repair.write->range);
  const auto claim = cidr ? claims.against_services(*cidr) : std::nullopt;
  if (!claim) return;
  repair.failure = Error{
      ErrorCode::refused_by_configuration,
      fmt::format("the range {} overlaps {}; choose another --service-cluster-ip-range", repair.write->range, *claim),
      {}};
  repair.write.reset();
}

}  // namespace

RangesDecided decide_addresses(const RangesSeen& seen, const ServiceRanges& wanted,
                               std::span<const ServiceUse> services, const AddressClaims& claims) {
  RangesDecided decided;
  std::vector<AddressRangeSeen> ranges;
  const auto add = [&](std::string_view name, const net::Prefix& cidr) {
    std::optional<Result<service::ServiceCidr>> range;
    if (cidr.is_valid()) range = service::ServiceCidr::make(cidr);
    if (auto one = range_seen(seen, name, wanted.cidrs.has_value(), std::move(range), decided)) {
      ranges.push_back(*std::move(one));
    }
  };
  const service::ServiceCidrs cidrs = wanted.cidrs.value_or(service::ServiceCidrs{});
  add(kServiceIps, cidrs.primary);
  add(kSecondaryServiceIps, cidrs.secondary);
  if (ranges.empty()) {
    const bool is_asked_for = std::ranges::any_of(services, [](const auto& s) { return !s.cluster_ips.empty(); });
    if (is_asked_for && decided.failures.empty()) lacks(decided, kServiceIps, "--service-cluster-ip-range");
    return decided;
  }
  if (ranges.size() == 2 && ranges[0].wanted.cidr().family() == ranges[1].wanted.cidr().family()) {
    fail_range(decided, kSecondaryServiceIps, ErrorCode::refused_by_configuration,
               fmt::format("the records {} ({}) and {} ({}) are of one family: say with --service-cluster-ip-range "
                           "what the ranges are to be",
                           kServiceIps, ranges[0].wanted.text(), kSecondaryServiceIps, ranges[1].wanted.text()));
    return decided;
  }
  decided.repairs = repair_addresses(ranges, services);
  for (RangeRepair& repair : decided.repairs) refuse_claimed(repair, claims);
  return decided;
}

RangesDecided decide_node_ports(const RangesSeen& seen, const ServiceRanges& wanted,
                                std::span<const ServiceUse> services) {
  RangesDecided decided;
  std::optional<Result<service::NodePortRange>> range;
  if (wanted.node_ports) range = *wanted.node_ports;
  if (const auto one = range_seen(seen, kServiceNodePorts, range.has_value(), std::move(range), decided)) {
    decided.repairs.push_back(repair_node_ports(*one, services));
    return decided;
  }
  const bool is_asked_for = std::ranges::any_of(services, [](const auto& s) { return !s.node_ports.empty(); });
  if (is_asked_for && decided.failures.empty()) lacks(decided, kServiceNodePorts, "--service-node-port-range");
  return decided;
}

bool is_moved(const RangeRepair& repair) {
  return repair.write && repair.name != kServiceNodePorts && (!repair.present || repair.range != repair.write->range);
}

namespace {

constexpr const char* kFamilyLabel = "ipaddress.kubernetes.io/ip-family";
constexpr const char* kManagedByLabel = "ipaddress.kubernetes.io/managed-by";
constexpr const char* kManager = "ipallocator.k8s.io";
constexpr std::string_view kServices = "services";

[[nodiscard]] bool refers_to_service(const IpAddressObject& object) {
  return object.parent_group.empty() && object.parent_resource == kServices;
}

[[nodiscard]] bool is_managed(const IpAddressObject& object) {
  const auto label = object.labels.find(kManagedByLabel);
  return label != object.labels.end() && label->second == kManager;
}

[[nodiscard]] bool has_labels(const IpAddressObject& object, const net::Address& address) {
  const auto family = object.labels.find(kFamilyLabel);
  return is_managed(object) && family != object.labels.end() && family->second == word_of(address.family());
}

[[nodiscard]] bool lists(const ServiceUse& service, const net::Address& address) {
  return std::ranges::any_of(service.cluster_ips,
                             [&](const std::string& text) { return net::parse_address_leniently(text) == address; });
}

/// Neither the network nor, in IPv4, the broadcast address.
[[nodiscard]] bool is_service_address(const net::Prefix& cidr, const net::Address& address) {
  if (!cidr.contains(address) || address == cidr.first()) return false;
  return !address.is_v4() || address != cidr.last();
}

[[nodiscard]] std::uint64_t size_of(const net::Prefix& cidr) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  const int bits = (cidr.address().is_v4() ? 32 : 128) - cidr.length();
  const std::uint64_t left_out = cidr.address().is_v4() ? 2 : 1;
  if (bits >= 64) return kMax;
  const std::uint64_t all = std::uint64_t{1} << bits;
  return all > left_out ? all - left_out : 0;
}

/// The words behind a finding that no write of Croft's mends.
constexpr std::string_view kLeft = "left to the repair of the kube-apiservers";

class Audit {
 public:
  Audit(std::span<const IpAddressObject> objects, std::span<const ServiceCidrObject> cidrs,
        std::span<const ServiceUse> services, WallTime now)
      : objects_(objects), services_(services), now_(now) {
    for (const ServiceCidrObject& object : cidrs) {
      for (const net::Prefix& cidr : object.cidrs) add_cidr(object.name, cidr);
    }
    by_address_.reserve(objects.size());
    for (const IpAddressObject& object : objects) {
      by_address_.emplace(object.address, &object);
      count(object);
    }
    for (const ServiceUse& service : services) {
      if (!service.beside_kubernetes) by_name_.emplace(service.name, &service);
    }
  }

  [[nodiscard]] IpAddressAudit run() {
    for (const ServiceUse& service : services_) {
      for (const std::string& text : service.cluster_ips) look_at(service, text);
    }
    for (const IpAddressObject& object : objects_) look_at(object);
    return std::move(result_);
  }

 private:
  void add_cidr(const std::string& name, const net::Prefix& cidr) {
    ServiceCidrUse use{name, cidr, {}, {}};
    const std::uint64_t size = size_of(cidr);
    use.in_static.size = std::min<std::uint64_t>(service::service_band(cidr), size);
    use.in_dynamic.size = size - use.in_static.size;
    result_.cidrs.push_back(std::move(use));
  }

  void count(const IpAddressObject& object) {
    const auto address = net::parse_address_leniently(object.address);
    if (!address) return;
    for (ServiceCidrUse& use : result_.cidrs) {
      if (!is_service_address(use.cidr, *address)) continue;
      const auto place = address->value() - use.cidr.address().value();
      ++(place > net::U128{use.in_static.size} ? use.in_dynamic : use.in_static).used;
    }
  }

  void add(Type type, std::string_view reason, std::string value, const ServiceName* service, std::string message,
           std::string_view action = "ClusterIPAllocation") {
    result_.findings.push_back({type, reason, action, std::string(kIpAddresses), std::move(value),
                                service != nullptr ? std::optional(*service) : std::nullopt, std::move(message)});
  }

  void look_at(const ServiceUse& service, const std::string& text) {
    const auto parsed = net::parse_address_leniently(text);
    if (!parsed) {
      return add(Type::invalid, "ClusterIPNotValid", text, &service.name,
                 fmt::format("Cluster IP {} is not a valid IP; please recreate service", net::echo(text)),
                 "ClusterIPValidation");
    }
    const net::Address& address = *parsed;
    const std::string name = address.to_string();
    const std::string_view family = word_of(address.family());
    const bool is_inside = std::ranges::any_of(
        result_.cidrs, [&](const ServiceCidrUse& use) { return is_service_address(use.cidr, address); });
    if (!is_inside) {
      return add(Type::out_of_range, "ClusterIPOutOfRange", name, &service.name,
                 fmt::format("Cluster IP [{}]: {} is not within any configured Service CIDR; please recreate service",
                             family, name));
    }
    const auto duplicate = [&] {
      add(Type::duplicate, "ClusterIPAlreadyAllocated", name, &service.name,
          fmt::format("Cluster IP [{}]:{} was assigned to multiple services; please recreate service", family, name));
    };
    if (in_repair_.contains(name)) return duplicate();
    const auto found = by_address_.find(name);
    if (service.beside_kubernetes) {
      if (found != by_address_.end()) return duplicate();
      return add(Type::invalid, "ClusterIPNotAllocated", name, &service.name,
                 fmt::format("Cluster IP [{}]: {} of Croft's own Service has no IPAddress, and Kubernetes may give it "
                             "to another; please recreate service in Kubernetes",
                             family, name));
    }
    const auto repair = [&](std::string_view reason, std::string message, std::string_view action) {
      in_repair_.insert(name);
      add(Type::repair, reason, name, &service.name, fmt::format("{}; {}", message, kLeft), action);
    };
    if (found == by_address_.end()) {
      return repair("ClusterIPNotAllocated", fmt::format("Cluster IP [{}]: {} is not allocated", family, name),
                    "ClusterIPAllocation");
    }
    const IpAddressObject& object = *found->second;
    const auto parent = by_name_.find(object.parent);
    if (!refers_to_service(object) || parent == by_name_.end()) {
      repair("ClusterIPNotAllocated",
             fmt::format("the ClusterIP [{}]: {} for Service {} has a wrong reference", family, name,
                         service.name.to_string()),
             "ClusterIPAllocation");
    } else if (parent->second->name != service.name) {
      if (lists(*parent->second, address)) duplicate();
    } else if (!has_labels(object, address)) {
      repair("IPAddressWrongLabels",
             fmt::format("the IPAddress {} for Service {} has wrong labels", name, service.name.to_string()),
             "IPAddressAllocation");
    }
  }

  void look_at(const IpAddressObject& object) {
    if (!is_managed(object) || in_repair_.contains(object.address)) return;
    const auto leaked = [&](std::string_view reason, std::string_view what) {
      add(Type::leak, reason, object.address, nullptr,
          fmt::format("IPAddress: {} {}: {}", net::echo(object.address), what, kLeft), "IPAddressAllocation");
    };
    if (!refers_to_service(object)) return leaked("IPAddressNotAllocated", "does not refer to a Service");
    const auto age = now_ - object.created;
    const auto parent = by_name_.find(object.parent);
    if (parent == by_name_.end()) {
      if (age < kIpAddressLeakAge) return;
      return leaked("IPAddressNotAllocated",
                    fmt::format("for Service {} appears to have leaked", object.parent.to_string()));
    }
    const ServiceUse& service = *parent->second;
    const auto address = net::parse_address_leniently(object.address);
    if (address && lists(service, *address)) return;
    const bool is_young = (service.type == ServiceType::external_name && age < kIpAddressLeakAge) ||
                          (object.created > service.created && age < kIpAddressYoungAge);
    if (is_young) return;
    leaked("IPAddressWrongReference", fmt::format("for Service {} has a wrong reference", object.parent.to_string()));
  }

  std::span<const IpAddressObject> objects_;
  std::span<const ServiceUse> services_;
  const WallTime now_;
  std::unordered_map<std::string, const IpAddressObject*> by_address_;
  std::map<ServiceName, const ServiceUse*> by_name_;
  std::unordered_set<std::string> in_repair_;  ///< addresses that a Service has, and whose object is missing or wrong
  IpAddressAudit result_;
};

}  // namespace

IpAddressAudit audit_ip_addresses(std::span<const IpAddressObject> objects, std::span<const ServiceCidrObject> cidrs,
                                  std::span<const ServiceUse> services, WallTime now) {
  return Audit(objects, cidrs, services, now).run();
}

}  // namespace croft::core::audit
