#include "services/audit/range_decision.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/net/lenient.h"
#include "base/net/prefix.h"

namespace croft::core::audit {
namespace {

class Decision {
 public:
  Decision(const RangesSeen& seen, const RangesWanted& wanted, std::span<const ServiceUse> services)
      : seen_(seen), wanted_(wanted), services_(services) {}

  [[nodiscard]] RangesDecided addresses(const AddressClaims& claims) {
    std::vector<AddressRangeSeen> ranges;
    for (std::size_t i = 0; i < kPortRange; ++i) {
      if (auto wanted = wanted_cidr(i)) ranges.push_back(range_seen(i, *wanted));
    }
    if (ranges.empty()) {
      const bool is_asked_for = std::ranges::any_of(services_, [](const auto& s) { return !s.cluster_ips.empty(); });
      if (is_asked_for) lacks(kServiceIps, "--service-cluster-ip-range");
      return std::move(decided_);
    }
    if (ranges.size() == 2 && ranges[0].wanted.cidr().family() == ranges[1].wanted.cidr().family()) {
      of_one_family(ranges);
      return std::move(decided_);
    }
    for (RangeRepair& repair : repair_addresses(ranges, services_)) {
      refuse_claimed(repair, claims);
      decided_.repairs.push_back(std::move(repair));
    }
    drop_second(ranges.front().wanted);
    return std::move(decided_);
  }

  [[nodiscard]] RangesDecided node_ports() {
    std::optional<service::NodePortRange> wanted = wanted_.node_ports;
    if (const RangeAllocation* range = stored(kPortRange); !wanted && range != nullptr) {
      wanted = made(kPortRange, service::NodePortRange::parse(range->range));
      if (!wanted) return std::move(decided_);
    }
    if (!wanted) {
      const bool is_asked_for = std::ranges::any_of(services_, [](const auto& s) {
        return s.type != ServiceType::external_name && (!s.node_ports.empty() || s.health_check_node_port != 0);
      });
      if (is_asked_for) lacks(kServiceNodePorts, "--service-node-port-range");
      return std::move(decided_);
    }
    decided_.repairs.push_back(repair_node_ports(range_seen(kPortRange, *wanted), services_));
    return std::move(decided_);
  }

 private:
  [[nodiscard]] const RangeAllocation* stored(std::size_t index) const {
    const auto& range = seen_.stored[index];
    return range ? &*range : nullptr;
  }

  /// What the range is to be; nothing, and maybe a failure, when nobody says.
  [[nodiscard]] std::optional<service::ServiceCidr> wanted_cidr(std::size_t index) {
    if (wanted_.cidrs) {
      const net::Prefix& cidr = index == 0 ? wanted_.cidrs->primary : wanted_.cidrs->secondary;
      if (!cidr.is_valid()) return std::nullopt;
      return made(index, service::ServiceCidr::make(cidr));
    }
    const RangeAllocation* range = stored(index);
    if (range == nullptr) return std::nullopt;
    return made(index, service::ServiceCidr::parse(range->range));
  }

  template <class M>
  [[nodiscard]] std::optional<M> made(std::size_t index, Result<M> range) {
    if (range) return *std::move(range);
    fail_range(kRangeNames[index], ErrorCode::corrupt,
               fmt::format("the range of the record {}: {}", kRangeNames[index], range.error().message));
    return std::nullopt;
  }

  template <class M>
  [[nodiscard]] RangeSeen<M> range_seen(std::size_t index, M wanted) const {
    RangeSeen<M> seen{std::string(kRangeNames[index]), {}, std::move(wanted), {}};
    if (const RangeAllocation* range = stored(index)) seen.stored = *range;
    if (const auto leaks = seen_.leaks.find(seen.name); leaks != seen_.leaks.end()) seen.leaks = leaks->second;
    return seen;
  }

  void of_one_family(const std::vector<AddressRangeSeen>& ranges) {
    fail_range(kRangeNames[1], ErrorCode::refused_by_configuration,
               fmt::format("the records {} ({}) and {} ({}) are of one family: say with --service-cluster-ip-range "
                           "what the ranges are to be",
                           kRangeNames[0], ranges[0].wanted.text(), kRangeNames[1], ranges[1].wanted.text()));
  }

  /// Where a range is not yet, somebody else may be.
  static void refuse_claimed(RangeRepair& repair, const AddressClaims& claims) {
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

  void drop_second(const service::ServiceCidr& primary) {
    const RangeAllocation* second = stored(1);
    const bool is_alone = wanted_.cidrs && !wanted_.cidrs->secondary.is_valid();
    const auto cidr = second != nullptr ? net::parse_prefix_leniently(second->range) : std::nullopt;
    if (!is_alone || !cidr || cidr->family() != primary.cidr().family()) return;
    decided_.repairs.push_back(drop_second_range(std::string(kRangeNames[1]), *second, primary, services_));
  }

  void lacks(std::string_view name, const char* flag) {
    fail_range(name, ErrorCode::invalid_argument,
               fmt::format("there is no record {}, and Services hold values of it: give {}", name, flag));
  }

  void fail_range(std::string_view name, ErrorCode code, std::string message) {
    decided_.failures.push_back({std::string(name), Error{code, std::move(message), {}}});
  }

  const RangesSeen& seen_;
  const RangesWanted& wanted_;
  const std::span<const ServiceUse> services_;
  RangesDecided decided_;
};

}  // namespace

FormInUse form_in_use(ClusterIpForm form, bool has_bitmap, bool has_addresses, bool has_cidrs) {
  if (form != ClusterIpForm::automatic) return {form == ClusterIpForm::objects, false};
  const bool objects = (has_addresses || has_cidrs) && (!has_bitmap || (has_addresses && has_cidrs));
  return {objects, objects && has_bitmap};
}

RangesDecided decide_addresses(const RangesSeen& seen, const RangesWanted& wanted, std::span<const ServiceUse> services,
                               const AddressClaims& claims) {
  return Decision(seen, wanted, services).addresses(claims);
}

RangesDecided decide_node_ports(const RangesSeen& seen, const RangesWanted& wanted,
                                std::span<const ServiceUse> services) {
  return Decision(seen, wanted, services).node_ports();
}

bool is_moved(const RangeRepair& repair) {
  return repair.write && repair.name != kServiceNodePorts && (!repair.present || repair.range != repair.write->range);
}

}  // namespace croft::core::audit
