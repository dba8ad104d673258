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

/// Of an IPv6 prefix a bitmap covers so many addresses, the first ones.
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
  static constexpr std::string_view kMismatched = "the provided network does not match the current range";

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

/// What a request that asks for a dry run sees of a range: it changes nothing and is counted nowhere. The range must
/// outlive it.
class DryRunAddresses {
 public:
  explicit DryRunAddresses(const ServiceAddresses& real) : real_(real) {}

  /// Fails only for an address that is not in the range; one that is taken is fine, it may be free when it counts.
  [[nodiscard]] Result<void> take(const net::Address& address) const;
  /// The network address, which no Service can have: it stands for "one will be chosen".
  [[nodiscard]] net::Address take_next() const { return real_.map().cidr().address(); }
  [[nodiscard]] const ServiceAddresses& range() const { return real_; }

 private:
  const ServiceAddresses& real_;
};

/// The prefixes that a cluster's Services get their addresses from.
struct ServiceCidrs {
  net::Prefix primary;
  net::Prefix secondary;   ///< the invalid prefix in a cluster of one family
  bool defaulted = false;  ///< nothing was given, `primary` is 10.0.0.0/24: deprecated, worth a warning
  friend bool operator==(const ServiceCidrs&, const ServiceCidrs&) = default;
};

/// Reads `--service-cluster-ip-range`: one prefix, or two of different families behind a comma; host bits are dropped.
/// Errors: invalid_argument with the reference's text; where it lists several, the first is the message and the others
/// are lines of `details`. Unlike there, octets and lengths with leading zeros are refused, and no prefix is too large
/// here: a kube-apiserver of 1.33 and newer bounds none, and a range that is a bitmap has its own bound (ServiceCidr).
[[nodiscard]] Result<ServiceCidrs> parse_service_cidrs(std::string_view flag);

/// The checks of that which need no text, for prefixes from elsewhere. `entries` is how many there were.
[[nodiscard]] Result<void> check_service_cidrs(const ServiceCidrs& cidrs, std::size_t entries);

}  // namespace croft::core::service
