#include "services/decide/mapped_range.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/net/echo.h"
#include "base/net/lenient.h"

namespace croft::core::service {

namespace {

constexpr std::size_t kWordBytes = 8;
constexpr std::uint32_t kWordBits = 64;

/// The eight bytes of a word in the order of the range's bytes, highest first.
std::uint64_t big_endian(std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::big) return word;
  word = word >> 32 | word << 32;
  word = (word & 0xffff0000ffff0000U) >> 16 | (word & 0x0000ffff0000ffffU) << 16;
  return (word & 0xff00ff00ff00ff00U) >> 8 | (word & 0x00ff00ff00ff00ffU) << 8;
}

/// The bits 64 * index and on of the number; zeros where it has ended.
std::uint64_t word_of(std::string_view data, std::size_t index) {
  const std::size_t behind = index * kWordBytes;
  if (behind >= data.size()) return 0;
  const std::size_t end = data.size() - behind;
  std::uint64_t word = 0;
  if (end >= kWordBytes) {
    std::memcpy(&word, data.data() + (end - kWordBytes), kWordBytes);
    return big_endian(word);
  }
  for (const char byte : data.substr(0, end)) word = word << 8 | static_cast<unsigned char>(byte);
  return word;
}

std::uint64_t count(std::uint64_t word) { return static_cast<std::uint64_t>(std::popcount(word)); }

constexpr int kDrawsMax = 64;

/// The product of a draw and `count`, once it is one of the fair ones. A generator that is stuck gets an end to that.
[[gnu::noinline, gnu::cold]] std::uint64_t fair_product(Random& random, std::uint32_t count, std::uint64_t product) {
  const std::uint32_t unfair = (0U - count) % count;
  for (int draws = 1; static_cast<std::uint32_t>(product) < unfair && draws < kDrawsMax; ++draws) {
    product = (random.next() >> 32) * count;
  }
  return product;
}

/// Uniform below `count`, which is not 0: the upper half of a product is fair once the few starts that would come up
/// more often are drawn again (Lemire, "Fast random integer generation in an interval").
inline std::uint32_t uniform_below(Random& random, std::uint32_t count) {
  CROFT_ASSERT(count > 0);
  std::uint64_t product = (random.next() >> 32) * count;
  if (static_cast<std::uint32_t>(product) < count) product = fair_product(random, count, product);
  return static_cast<std::uint32_t>(product >> 32);
}

}  // namespace

BitmapRange::BitmapRange(std::string text, std::uint32_t size, std::uint32_t band)
    : band_(std::min(band, size)), text_(std::move(text)), bits_(size) {}

BitmapRange BitmapRange::random_scan_with_band(std::string text, std::uint32_t size, std::uint32_t band) {
  return {std::move(text), size, band};
}

/// All but the rare ends of a search are on this path, without a call but the draw.
std::uint32_t BitmapRange::take_next_or_size(Random& random) {
  if (free_count() == 0) return size();
  if (band_ < size()) {
    const std::uint32_t start = band_ + uniform_below(random, size() - band_);
    const std::uint32_t taken = bits_.take_at_or_after(start);
    if (taken != size()) return taken;
  }
  return take_next_wrapped(random);
}

/// Nothing is free from the uniform start of the dynamic band to its end.
std::uint32_t BitmapRange::take_next_wrapped(Random& random) {
  if (band_ < size()) {
    const std::uint32_t taken = bits_.take_at_or_after(band_);
    if (taken != size()) return taken;
  }
  const std::uint32_t next = first_free(uniform_below(random, band_), band_);
  const std::uint32_t taken = bits_.take_at_or_after(next != size() ? next : 0);
  CROFT_ASSERT(taken < band_);
  return taken;
}

std::uint64_t BitmapRange::restore(std::string_view data) {
  bits_.set_words([&](std::size_t index) { return word_of(data, index); });
  std::uint64_t beyond = 0;
  const std::uint32_t size = bits_.size();
  if (size % kWordBits != 0) beyond = count(word_of(data, size / kWordBits) >> size % kWordBits);
  for (std::size_t index = bits_.word_count(); index * kWordBytes < data.size(); ++index) {
    beyond += count(word_of(data, index));
  }
  return beyond;
}

RangeSnapshot BitmapRange::snapshot() const {
  std::size_t words = bits_.word_count();
  while (words > 0 && bits_.taken_word(words - 1) == 0) --words;
  if (words == 0) return {text_, {}};

  const std::uint64_t top = bits_.taken_word(words - 1);
  const auto top_bytes = static_cast<std::size_t>(std::bit_width(top) + 7) / 8;
  std::string data((words - 1) * kWordBytes + top_bytes, '\0');
  char* at = data.data() + data.size();
  for (std::size_t i = 0; i + 1 < words; ++i) {
    const std::uint64_t word = big_endian(bits_.taken_word(i));
    at -= kWordBytes;
    std::memcpy(at, &word, kWordBytes);
  }
  for (std::uint64_t rest = top; rest != 0; rest >>= 8) *--at = static_cast<char>(rest);
  return {text_, std::move(data)};
}

/// The first free one of `from` to `end` - 1; size() when there is none.
std::uint32_t BitmapRange::first_free(std::uint32_t from, std::uint32_t end) const {
  const auto found = bits_.next_free_at_or_after(Ordinal{from});
  return found && found->value < end ? found->value : size();
}

namespace {

constexpr int kPortMax = 65535;

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

/// A text from outside as it stands when that is harmless, as the reference repeats it; else as net::echo makes it so.
std::string shown(std::string_view text) {
  const std::string quoted = net::echo(text);
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
  if (!low || !second) return fail(invalid_argument(fmt::format("unable to parse port range: {}", shown(value))));
  const std::int64_t high = mark != value.npos && value[mark] == '+' ? *low + *second : *second;
  if (*low > kPortMax || high > kPortMax) {
    return fail(invalid_argument(fmt::format("the port range cannot be greater than 65535: {}", shown(value))));
  }
  if (high < *low) {
    return fail(invalid_argument(fmt::format("end port cannot be less than start port: {}", shown(value))));
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

Result<void> read_range_flags(std::string_view cidrs_flag, std::string_view ports_flag,
                              std::optional<ServiceCidrs>& cidrs, std::optional<NodePortRange>& node_ports) {
  if (!cidrs_flag.empty()) {
    TRY(cidrs, parse_service_cidrs(cidrs_flag));
  }
  if (!ports_flag.empty()) {
    TRY(node_ports, parse_node_port_flag(ports_flag));
  }
  return {};
}

}  // namespace croft::core::service
