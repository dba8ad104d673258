#include "services/audit/range_audit.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "register/service.h"

namespace croft::core::audit {

namespace {

using Type = RepairFinding::Type;

/// The words for addresses.
struct AddressWords {
  static constexpr std::string_view kNotAllocated = "ClusterIPNotAllocated";
  static constexpr std::string_view kAlreadyAllocated = "ClusterIPAlreadyAllocated";
  static constexpr std::string_view kOutOfRange = "ClusterIPOutOfRange";
  static constexpr std::string_view kLeaked = "ClusterIPLeaked";

  static std::string named(const net::Address& address) {
    return fmt::format("Cluster IP [{}]:{}", word_of(address.family()), address);
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
    auto restored = service::range_from<M>(*seen.stored);
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
          fmt::format("the range {} had {} beyond its end; dropping {}", echo(seen.stored->range),
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
           std::string message) {
    result_.findings.push_back(
        {type, reason, seen_.name, std::move(value), std::move(service), std::move(message), mended});
  }

  [[nodiscard]] RangeRepair finish() {
    if (!works()) return std::move(result_);
    look_for_leaks();
    RangeAllocation snapshot = rebuilt_.snapshot();
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
      return fmt::format(": kept, as the address of Service {} can't be read and may be this one", *unreadable_);
    }
    return is_freed ? ": cleaning up" : ": flagging for later clean up";
  }

  const RangeSeen<M>& seen_;
  std::optional<ServiceName> unreadable_;  ///< the first one whose value can't be read
  service::BitmapRange<M> rebuilt_;
  service::BitmapRange<M> left_;  ///< the stored range, without what was found in use
  RangeRepair result_;
};

using AddressRebuild = Rebuild<service::ServiceCidr, AddressWords>;

AddressRebuild* rebuild_of(std::vector<AddressRebuild>& all, net::Family family) {
  const auto found = std::ranges::find(all, family, [](const auto& one) { return one.wanted().cidr().family(); });
  return found != all.end() ? &*found : nullptr;
}

}  // namespace

ServiceUse use_of(const Service& service) {
  ServiceUse use{service.name, {}, {}};
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
                             fmt::format("Cluster IP {} is not a valid IP; please recreate service", echo(text)));
        for (AddressRebuild& rebuild : rebuilds) rebuild.keep_all_for(service.name);
        continue;
      }
      if (AddressRebuild* rebuild = rebuild_of(rebuilds, address->family())) {
        rebuild->use(*address, service.name);
        continue;
      }
      rebuilds.front().add(
          Type::invalid, "ClusterIPNotValid", address->to_string(), service.name, false,
          fmt::format(
              "Cluster IP {}({}) is of ip family that is no longer configured on cluster; please recreate service",
              *address, word_of(address->family())));
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

namespace {

void fail_range(std::vector<RangeRepair>& decided, std::string_view name, ErrorCode code, std::string message) {
  RangeRepair& failed = decided.emplace_back();
  failed.name = name;
  failed.failure = Error{code, std::move(message), {}};
}

[[nodiscard]] const RangeAllocation* stored_in(const RangesSeen& seen, std::string_view name) {
  const auto found = seen.stored.find(name);
  return found != seen.stored.end() ? &found->second : nullptr;
}

/// A range that is to be `wanted`, else what its record says; nothing when neither says, or after a failure.
template <service::RangeMap M>
[[nodiscard]] std::optional<RangeSeen<M>> range_seen(const RangesSeen& seen, std::string_view name, bool by_flag,
                                                     std::optional<Result<M>> wanted,
                                                     std::vector<RangeRepair>& decided) {
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

void lacks(std::vector<RangeRepair>& decided, std::string_view name, const char* flag) {
  fail_range(decided, name, ErrorCode::invalid_argument,
             fmt::format("there is no record {}, and Services hold values of it: give {}", name, flag));
}

/// Where a range is not yet, somebody else may be.
void refuse_claimed(RangeRepair& repair, const AddressClaims& claims) {
  if (!claims_new_range(repair)) return;
  const auto cidr = net::Prefix::parse(repair.write->range);
  const auto claim = cidr ? claims.against_services(*cidr) : std::nullopt;
  if (!claim) return;
  repair.failure =
      make_error(ErrorCode::refused_by_configuration,
                 "the range {} overlaps {}; choose another --service-cluster-ip-range", repair.write->range, *claim);
  repair.write.reset();
}

}  // namespace

std::vector<RangeRepair> decide_addresses(const RangesSeen& seen, const ServiceRanges& wanted,
                                          std::span<const ServiceUse> services, const AddressClaims& claims) {
  std::vector<RangeRepair> decided;
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
    if (is_asked_for && decided.empty()) lacks(decided, kServiceIps, "--service-cluster-ip-range");
    return decided;
  }
  if (ranges.size() == 2 && ranges[0].wanted.cidr().family() == ranges[1].wanted.cidr().family()) {
    fail_range(decided, kSecondaryServiceIps, ErrorCode::refused_by_configuration,
               fmt::format("the records {} ({}) and {} ({}) are of one family: say with --service-cluster-ip-range "
                           "what the ranges are to be",
                           kServiceIps, ranges[0].wanted.text(), kSecondaryServiceIps, ranges[1].wanted.text()));
    return decided;
  }
  for (RangeRepair& repair : repair_addresses(ranges, services)) {
    refuse_claimed(repair, claims);
    decided.push_back(std::move(repair));
  }
  return decided;
}

std::vector<RangeRepair> decide_node_ports(const RangesSeen& seen, const ServiceRanges& wanted,
                                           std::span<const ServiceUse> services) {
  std::vector<RangeRepair> decided;
  std::optional<Result<service::NodePortRange>> range;
  if (wanted.node_ports) range = *wanted.node_ports;
  if (const auto one = range_seen(seen, kServiceNodePorts, range.has_value(), std::move(range), decided)) {
    decided.push_back(repair_node_ports(*one, services));
    return decided;
  }
  const bool is_asked_for = std::ranges::any_of(services, [](const auto& s) { return !s.node_ports.empty(); });
  if (is_asked_for && decided.empty()) lacks(decided, kServiceNodePorts, "--service-node-port-range");
  return decided;
}

bool claims_new_range(const RangeRepair& repair) {
  return repair.write && repair.name != kServiceNodePorts && (!repair.present || repair.range != repair.write->range);
}

}  // namespace croft::core::audit
