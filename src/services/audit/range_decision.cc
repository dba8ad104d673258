#include "services/audit/range_decision.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/net/prefix.h"

namespace croft::core::audit {
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

RangesDecided decide_addresses(const RangesSeen& seen, const RangesWanted& wanted, std::span<const ServiceUse> services,
                               const AddressClaims& claims) {
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

RangesDecided decide_node_ports(const RangesSeen& seen, const RangesWanted& wanted,
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

}  // namespace croft::core::audit
