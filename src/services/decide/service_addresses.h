#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "services/decide/mapped_range.h"

// The addresses of Services (ClusterIPs) as kube-apiserver's bitmaps keep them. Rules and texts are the reference's
// (docs/notes/service-ranges.md#offsets, #flags, #bands, #range-errors).

namespace croft::core::service {

/// The most that is worth keeping in one record: 20 host bits, 128 KiB. Addresses that are objects have no such bound.
inline constexpr int kServiceHostBitsMax = 20;

/// A bitmap covers so many addresses of an IPv6 prefix, the first ones.
inline constexpr std::uint32_t kServiceV6AddressesMax = 65536;

/// How many addresses of a prefix Services may have: in IPv4 all but the network and the broadcast address; in IPv6 all
/// of those that a bitmap covers but the network address. 0 for prefixes of one or two IPv4 addresses, and for those of
/// half a family or more, which the reference can't count.
[[nodiscard]] std::uint32_t service_address_count(const net::Prefix& cidr);

/// Whether the prefix has addresses that no bitmap covers.
[[nodiscard]] bool exceeds_service_bitmap(const net::Prefix& cidr);

/// How many of them, the lowest, are in the static band: a sixteenth of the whole prefix, 16 to 256; none when the
/// prefix has no more than 16 addresses.
[[nodiscard]] std::uint32_t service_band(const net::Prefix& cidr);

/// A prefix of Service addresses. Ordinal 0 is the address after the network address.
class ServiceCidr {
 public:
  using Value = net::Address;
  static constexpr std::string_view kAllocated = "provided IP is already allocated";

  /// The prefix must be valid. Errors, invalid_argument: an IPv4 prefix of more than kServiceHostBitsMax host bits, an
  /// IPv4-mapped one. An IPv6 prefix may be as large as it likes, its first 65535 addresses count.
  [[nodiscard]] static Result<ServiceCidr> make(const net::Prefix& cidr);
  /// Host bits are dropped, as the reference does.
  [[nodiscard]] static Result<ServiceCidr> parse(std::string_view text);

  [[nodiscard]] const net::Prefix& cidr() const { return cidr_; }
  [[nodiscard]] std::string text() const { return cidr_.to_string(); }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t band() const { return service_band(cidr_); }
  /// An IPv4-mapped address counts as the IPv4 one.
  [[nodiscard]] std::optional<Ordinal> ordinal_of(const net::Address& address) const;
  [[nodiscard]] net::Address value_at(Ordinal ordinal) const {
    return net::address_at(cidr_, Ordinal{ordinal.value + 1});
  }
  [[nodiscard]] std::string not_in_range(const net::Address& address) const;

  friend bool operator==(const ServiceCidr&, const ServiceCidr&) = default;

 private:
  explicit ServiceCidr(const net::Prefix& cidr) : cidr_(cidr), size_(service_address_count(cidr)) {}
  net::Prefix cidr_;
  std::uint32_t size_;
};

using ServiceAddresses = MappedRange<ServiceCidr>;

/// The prefixes that a cluster's Services get their addresses from.
struct ServiceCidrs {
  net::Prefix primary;
  net::Prefix secondary;  ///< the invalid prefix in a cluster of one family
  friend bool operator==(const ServiceCidrs&, const ServiceCidrs&) = default;
};

/// Reads `--service-cluster-ip-range`: one prefix, or two of different families behind a comma; host bits are dropped.
/// No text is 10.0.0.0/24. Errors: invalid_argument with the reference's text. No prefix is too large: a kube-apiserver
/// of 1.33 and newer bounds none, and a range that is a bitmap has its own bound (ServiceCidr).
[[nodiscard]] Result<ServiceCidrs> parse_service_cidrs(std::string_view flag);

}  // namespace croft::core::service
