#include "services/decide/service_bitmap.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"

namespace croft::core::service {

std::string bytes_of(const space::DenseBitmap& bits) {
  std::string data;  // the lowest byte first
  data.reserve(bits.words().size() * sizeof(std::uint64_t));
  for (std::uint64_t word : bits.words()) {
    for (std::size_t i = 0; i < sizeof(word); ++i, word >>= 8) data += static_cast<char>(word);
  }
  data.erase(data.find_last_not_of('\0') + 1);
  std::ranges::reverse(data);
  return data;
}

std::uint64_t read_bytes(std::string_view data, space::DenseBitmap& bits) {
  const auto byte_at = [&](std::size_t place) -> std::uint64_t {
    return place < data.size() ? static_cast<unsigned char>(data[data.size() - 1 - place]) : 0;
  };
  bits.set_words([&](std::size_t index) {
    std::uint64_t word = 0;
    for (std::size_t i = sizeof(word); i-- > 0;) word = word << 8 | byte_at(index * sizeof(word) + i);
    return word;
  });
  std::uint64_t beyond = 0;
  const std::size_t last = bits.size() / 8;
  for (std::size_t place = last; place < data.size(); ++place) {
    beyond += static_cast<std::uint64_t>(std::popcount(byte_at(place) >> (place == last ? bits.size() % 8 : 0)));
  }
  return beyond;
}

namespace {

constexpr int kPortMax = 65535;

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

/// A text from outside as it stands when that is harmless, as the reference repeats it; else as echo makes it so.
std::string shown(std::string_view text) {
  const std::string quoted = echo(text);
  return quoted.size() == text.size() + 2 ? std::string(text) : quoted;
}

/// A number of digits; above all ports when it is too large for any.
[[nodiscard]] std::optional<std::int64_t> number_of(std::string_view digits) {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, code] = std::from_chars(digits.data(), end, value);
  const bool is_number = !digits.empty() && digits.front() != '-' && stopped == end;
  if (is_number && code == std::errc::result_out_of_range) return kPortMax + 1;
  return is_number && code == std::errc() ? std::optional(std::min<std::int64_t>(value, kPortMax + 1)) : std::nullopt;
}

}  // namespace

Result<NodePortRange> NodePortRange::parse(std::string_view text) {
  const std::string_view value = without_blanks(text);
  if (value.empty()) return NodePortRange();
  const std::size_t mark = value.find_first_of("-+");
  const auto low = number_of(value.substr(0, mark));
  const auto second = mark == value.npos ? low : number_of(value.substr(mark + 1));
  if (!low || !second) return fail(ErrorCode::invalid_argument, "unable to parse port range: {}", shown(value));
  const std::int64_t high = mark != value.npos && value[mark] == '+' ? *low + *second : *second;
  if (*low > kPortMax || high > kPortMax) {
    return fail(ErrorCode::invalid_argument, "the port range cannot be greater than 65535: {}", shown(value));
  }
  if (high < *low) {
    return fail(ErrorCode::invalid_argument, "end port cannot be less than start port: {}", shown(value));
  }
  return NodePortRange(static_cast<int>(*low), static_cast<std::uint32_t>(high - *low + 1));
}

std::string NodePortRange::text() const {
  if (size_ == 0) return {};
  return fmt::format("{}-{}", first_, first_ + static_cast<int>(size_) - 1);
}

std::uint32_t NodePortRange::band() const {
  constexpr std::uint32_t kMin = 16;
  constexpr std::uint32_t kMax = 128;
  constexpr std::uint32_t kShare = 32;
  return size_ <= kMin ? 0 : std::clamp(size_ / kShare, kMin, kMax);
}

std::optional<Ordinal> NodePortRange::ordinal_of(int port) const {
  const std::int64_t place = std::int64_t{port} - first_;
  if (place < 0 || place >= std::int64_t{size_}) return std::nullopt;
  return Ordinal{static_cast<std::uint32_t>(place)};
}

std::string NodePortRange::not_in_range(int /*port*/) const {
  return fmt::format("provided port is not in the valid range. The range of valid ports is {}", text());
}

Result<NodePortRange> parse_node_port_flag(std::string_view flag) {
  return NodePortRange::parse(without_blanks(flag).empty() ? "30000-32767" : flag);
}

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

}  // namespace

bool exceeds_service_bitmap(const Prefix& cidr) {
  return cidr.family() == net::Family::v6 && address_count(cidr) > kServiceV6AddressesMax;
}

ServiceCidr::ServiceCidr(const Prefix& cidr) : cidr_(cidr) {
  const std::uint64_t all = address_count(cidr);
  const std::uint64_t lost = cidr.family() == net::Family::v4 ? 2 : 1;
  const std::uint64_t covered =
      cidr.family() == net::Family::v4 ? all : std::min<std::uint64_t>(all, kServiceV6AddressesMax);
  size_ = static_cast<std::uint32_t>(std::max(covered, lost) - lost);
}

std::uint32_t ServiceCidr::band() const {
  constexpr std::uint64_t kMin = 16;
  constexpr std::uint64_t kMax = 256;
  constexpr std::uint64_t kShare = 16;
  const std::uint64_t all = address_count(cidr_);  // of IPv6 too, whose range is shorter
  return all <= kMin ? 0 : static_cast<std::uint32_t>(std::clamp(all / kShare, kMin, kMax));
}

Result<ServiceCidr> ServiceCidr::make(const Prefix& cidr) {
  if (cidr.address().is_v4_mapped()) {
    return fail(ErrorCode::invalid_argument, "service address range {} is IPv4-mapped; write it as IPv4", cidr);
  }
  if (cidr.family() == net::Family::v4 && host_bits(cidr) > kServiceHostBitsMax) {
    return fail(ErrorCode::invalid_argument,
                "service address range {} is too large for a bitmap; the mask must be >= {}, or the addresses be kept "
                "as objects (Kubernetes 1.33 and newer)",
                cidr, bit_length(cidr.family()) - kServiceHostBitsMax);
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
    return fail(ErrorCode::invalid_argument,
                "error determining service IP ranges for primary service cidr: the service cluster IP range must be at "
                "least {} IP addresses",
                kAddressesMin);
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
