#include "services/decide/service_addresses.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/net/address_with_length.h"
#include "base/net/lenient.h"

namespace croft::core::service {
namespace {

using net::Address;
using net::Prefix;

int host_bits(const Prefix& cidr) { return bit_length(cidr.family()) - cidr.length(); }

/// All addresses of the prefix; at 63 host bits and above just very many. The reference has no number for half a family
/// or more, and goes on with 0.
std::uint64_t address_count(const Prefix& cidr) {
  constexpr int kHostBitsCounted = 62;
  if (cidr.length() <= 1) return 0;
  return std::uint64_t{1} << std::min(host_bits(cidr), kHostBitsCounted);
}

/// As kube-apiserver reads its flag (ParseCIDRSloppy), but for IPv4-mapped ranges.
std::optional<Prefix> cidr_of(std::string_view text) {
  return text.find('.') != text.npos && text.find(':') != text.npos ? std::nullopt : net::parse_prefix_leniently(text);
}

std::string too_large(const Prefix& cidr) {
  return fmt::format(
      "service address range {} is too large for a bitmap; the mask must be >= {}, or the addresses be "
      "kept as objects (Kubernetes 1.33 and newer)",
      cidr.to_string(), bit_length(cidr.family()) - kServiceHostBitsMax);
}

}  // namespace

std::uint32_t service_address_count(const Prefix& cidr) {
  const std::uint64_t all = address_count(cidr);
  if (cidr.family() == net::Family::v4) return all < 2 ? 0 : static_cast<std::uint32_t>(all - 2);
  return all == 0 ? 0 : static_cast<std::uint32_t>(std::min<std::uint64_t>(all, kServiceV6AddressesMax) - 1);
}

bool exceeds_service_bitmap(const Prefix& cidr) {
  return cidr.family() == net::Family::v6 && address_count(cidr) > kServiceV6AddressesMax;
}

std::uint32_t service_band(const Prefix& cidr) {
  constexpr std::uint64_t kMin = 16;
  constexpr std::uint64_t kMax = 256;
  constexpr std::uint64_t kShare = 16;
  const std::uint64_t all = address_count(cidr);  // of IPv6 too, whose range is shorter
  return all <= kMin ? 0 : static_cast<std::uint32_t>(std::clamp(all / kShare, kMin, kMax));
}

Result<ServiceCidr> ServiceCidr::make(const Prefix& cidr) {
  if (cidr.address().is_v4_mapped()) {
    return fail(
        invalid_argument(fmt::format("service address range {} is IPv4-mapped; write it as IPv4", cidr.to_string())));
  }
  if (cidr.family() == net::Family::v4 && host_bits(cidr) > kServiceHostBitsMax) {
    return fail(invalid_argument(too_large(cidr)));
  }
  return ServiceCidr(cidr);
}

Result<ServiceCidr> ServiceCidr::parse(std::string_view text) {
  const auto written = net::AddressWithLength::parse(text);
  if (!written) return fail(written.error().in("service address range"));
  return make(written->network());
}

std::optional<Ordinal> ServiceCidr::ordinal_of(const Address& address) const {
  const auto place = net::ordinal_of(cidr_, address.unmapped());
  if (!place || place->value == 0 || place->value > size_) return std::nullopt;
  return Ordinal{place->value - 1};
}

std::string ServiceCidr::not_in_range(const Address& address) const {
  const bool is_beyond = exceeds_service_bitmap(cidr_) && cidr_.contains(address.unmapped());
  return fmt::format("the provided IP ({}) is not in the valid range. The range of valid IPs is {}{}",
                     address.is_valid() ? address.unmapped().to_string() : "<nil>", text(),
                     is_beyond ? fmt::format(", of which the first {} can be given", size_) : "");
}

Result<ServiceCidrs> parse_service_cidrs(std::string_view flag) {
  constexpr std::uint64_t kAddressesMin = 8;
  if (flag.empty()) return ServiceCidrs{*net::parse_prefix("10.0.0.0/24"), {}};

  const std::size_t comma = flag.find(',');
  const auto primary = cidr_of(flag.substr(0, comma));
  if (!primary) return fail(invalid_argument("service-cluster-ip-range[0] is not a valid cidr"));
  if (address_count(*primary) < kAddressesMin) {
    return fail(invalid_argument(
        fmt::format("error determining service IP ranges for primary service cidr: the service cluster IP "
                    "range must be at least {} IP addresses",
                    kAddressesMin)));
  }
  if (comma == flag.npos) return ServiceCidrs{*primary, {}};
  const std::string_view rest = flag.substr(comma + 1);
  if (rest.find(',') != rest.npos) {
    return fail(invalid_argument("--service-cluster-ip-range must not contain more than two entries"));
  }
  const auto secondary = cidr_of(rest);
  if (!secondary) return fail(invalid_argument("service-cluster-ip-range[1] is not an ip net"));
  if (primary->family() == secondary->family()) {
    return fail(
        invalid_argument("--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP "
                         "family"));
  }
  return ServiceCidrs{*primary, *secondary};
}

}  // namespace croft::core::service
