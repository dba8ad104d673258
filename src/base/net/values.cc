#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/net/ranges.h"
#include "base/printable.h"

namespace croft::net {

double Count::as_double() const {
  constexpr double kTwoTo64 = 18446744073709551616.0;
  return is_whole_ ? kTwoTo64 * kTwoTo64 : static_cast<double>(low_.hi) * kTwoTo64 + static_cast<double>(low_.lo);
}

std::string Count::to_string() const {
  // Long division by 10^9, most significant limb first.
  constexpr std::uint64_t kBase = 1'000'000'000;
  std::array<std::uint64_t, 5> limbs = {is_whole_ ? 1U : 0U, low_.hi >> 32, low_.hi & 0xffff'ffffU, low_.lo >> 32,
                                        low_.lo & 0xffff'ffffU};
  std::string text;
  for (bool more = true; more;) {
    std::uint64_t rest = 0;
    more = false;
    for (std::uint64_t& limb : limbs) {
      const std::uint64_t part = rest << 32 | limb;
      limb = part / kBase;
      rest = part % kBase;
      more = more || limb != 0;
    }
    text.insert(0, more ? fmt::format("{:09}", rest) : std::to_string(rest));
  }
  return text;
}

Intervals::Intervals(std::vector<Prefix> prefixes) {
  if (!std::is_sorted(prefixes.begin(), prefixes.end())) std::sort(prefixes.begin(), prefixes.end());
  intervals_.reserve(prefixes.size());
  for (const Prefix& prefix : prefixes) {
    if (!prefix.is_valid()) continue;
    const AddressRange next = AddressRange::of(prefix);
    if (intervals_.empty() || intervals_.back().family() != next.family()) {
      intervals_.push_back(next);
      continue;
    }
    AddressRange& last = intervals_.back();
    const auto beyond = last.last().next();
    if (beyond && *beyond < next.first()) {
      intervals_.push_back(next);
    } else if (last.last() < next.last()) {
      last = last.extended_to(next.last());
    }
  }
}

std::vector<AddressRange>::const_iterator Intervals::from(const Address& address) const {
  return std::lower_bound(intervals_.begin(), intervals_.end(), address,
                          [](const AddressRange& interval, const Address& a) { return interval.last() < a; });
}

const AddressRange* Intervals::at(const Address& address) const {
  const auto it = from(address);
  return it != intervals_.end() && it->contains(address) ? &*it : nullptr;
}

bool Intervals::covers(const Prefix& prefix) const {
  const AddressRange* interval = at(prefix.first());
  return interval != nullptr && prefix.last() <= interval->last();
}

bool Intervals::overlaps(const Prefix& prefix) const {
  const auto it = from(prefix.first());
  return it != intervals_.end() && it->overlaps(AddressRange::of(prefix));
}

Count Intervals::count_in(const Prefix& prefix) const {
  Count count;
  const AddressRange all = AddressRange::of(prefix);
  for (auto it = from(prefix.first()); it != intervals_.end() && it->overlaps(all); ++it) {
    const Address first = std::max(it->first(), all.first());
    const Address last = std::min(it->last(), all.last());
    count += Count::up_to(last.value() - first.value());
  }
  return count;
}

std::optional<Address> Intervals::last_from(const Address& address) const {
  const AddressRange* interval = at(address);
  return interval != nullptr ? std::optional(interval->last()) : std::nullopt;
}

namespace {

/// No address or prefix is longer; zeros beyond this are nobody's.
constexpr std::size_t kTextMax = 256;

/// Each number without the zeros it begins with; hexadecimal ones too.
std::string without_zeros(std::string_view text) {
  std::string result;
  bool within = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = hex_value(text[i]) >= 0;
    const bool more = i + 1 < text.size() && hex_value(text[i + 1]) >= 0;
    if (is_digit && !within && text[i] == '0' && more) continue;
    within = is_digit;
    result += text[i];
  }
  return result;
}

}  // namespace

std::optional<Address> parse_address_leniently(std::string_view text) {
  if (text.size() > kTextMax) return std::nullopt;
  const auto address = parse_address(without_zeros(text));
  return address ? std::optional(address->unmapped()) : std::nullopt;
}

std::optional<Prefix> parse_prefix_leniently(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == text.npos || text.size() > kTextMax) return std::nullopt;
  return parse_prefix_as_go(without_zeros(text.substr(0, slash)) + std::string(text.substr(slash)));
}

std::optional<Prefix> parse_prefix_as_go(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == text.npos || text.size() > kTextMax) return std::nullopt;
  const auto length = parse_prefix_length(without_zeros(text.substr(slash + 1)));
  const auto address = parse_address(text.substr(0, slash));
  if (!address || !length || *length > bit_length(address->family())) return std::nullopt;
  constexpr int kMapped = bit_length(Family::v6) - bit_length(Family::v4);
  if (address->is_v4_mapped() && *length >= kMapped) return Prefix::containing(address->unmapped(), *length - kMapped);
  return Prefix::containing(*address, *length);
}

namespace {

constexpr std::size_t kTextSize = 17;

}  // namespace

Result<Mac> Mac::parse(std::string_view text) {
  const auto refuse = [&] {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("invalid MAC address {}: six pairs of hexadecimal digits between colons are wanted", echo(text)));
  };
  if (text.size() != kTextSize) return refuse();
  Mac mac;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    const std::size_t at = 3 * i;
    const int high = hex_value(text[at]);
    const int low = hex_value(text[at + 1]);
    if (high < 0 || low < 0 || (i > 0 && text[at - 1] != ':')) return refuse();
    mac.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return mac;
}

std::string Mac::to_string() const { return fmt::format("{:02x}", fmt::join(bytes, ":")); }

Result<AddressRange> AddressRange::make(Address first, Address last) {
  const auto refuse = [&](std::string_view reason) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("invalid address range {}-{}: {}", first.to_string(), last.to_string(), reason));
  };
  if (!first.is_valid() || !last.is_valid()) return refuse("both ends must be given");
  if (first.family() != last.family()) return refuse("the ends are of different families");
  if (first > last) return refuse("the first address is above the last");
  return AddressRange{first, last};
}

std::string AddressRange::to_string() const {
  return is_valid() ? fmt::format("{}-{}", first_.to_string(), last_.to_string()) : "invalid";
}

std::vector<Prefix> prefixes_of(const AddressRange& range) {
  CROFT_ASSERT(range.is_valid());
  std::vector<Prefix> prefixes;
  for (Address first = range.first();;) {
    Prefix prefix = Prefix::containing(first, bit_length(first.family()));
    while (prefix.length() > 0) {
      const Prefix larger = Prefix::containing(first, prefix.length() - 1);
      if (larger.first() != first || larger.last() > range.last()) break;
      prefix = larger;
    }
    prefixes.push_back(prefix);
    if (prefix.last() == range.last()) return prefixes;
    first = *prefix.last().next();
  }
}

}  // namespace croft::net
