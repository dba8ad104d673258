#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/hex.h"
#include "base/net/u128.h"
#include "base/result.h"

namespace croft::net {

enum class Family : std::uint8_t { v4 = 4, v6 = 6 };

/// Bits in an address: 32 or 128.
[[nodiscard]] constexpr int bit_length(Family family) { return family == Family::v4 ? 32 : 128; }

/// "IPv4" or "IPv6".
[[nodiscard]] constexpr std::string_view name_of(Family family) { return family == Family::v4 ? "IPv4" : "IPv6"; }

/// One value for each family: `wanted[Family::v6]`.
template <class T>
struct PerFamily {
  T v4{};
  T v6{};

  [[nodiscard]] T& operator[](Family family) { return family == Family::v4 ? v4 : v6; }
  [[nodiscard]] const T& operator[](Family family) const { return family == Family::v4 ? v4 : v6; }
  friend bool operator==(const PerFamily&, const PerFamily&) = default;
};

/// In the order in which everything is done and shown.
inline constexpr Family kFamilies[] = {Family::v4, Family::v6};

// The reader of address texts, usable in constant expressions: Address::parse says what it accepts.

/// How reading one text ended: an address, or a reason in a few words.
struct AddressScan {
  Family family{};             ///< meaningful on success only
  U128 value;                  ///< IPv4 in the low 32 bits
  std::string_view reason;     ///< empty on success
  std::size_t stopped_at = 0;  ///< the place where reading stopped; the size of the text when it ended too early

  [[nodiscard]] constexpr bool ok() const { return reason.empty(); }
};

namespace scan_detail {

[[nodiscard]] constexpr bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

[[nodiscard]] constexpr AddressScan stop(std::string_view reason, std::size_t at) { return {{}, {}, reason, at}; }

/// One octet: 1 to 3 digits, at most 255, no leading zero. Moves `at` past it; leaves a reason when it is none.
[[nodiscard]] constexpr std::string_view read_octet(std::string_view text, std::size_t& at, std::uint32_t& value) {
  const std::size_t start = at;
  value = 0;
  while (at < text.size() && is_decimal_digit(text[at])) {
    if (at > start && value == 0) return "an octet of an IPv4 address has a leading zero";
    const std::uint32_t with_digit = value * 10 + static_cast<std::uint32_t>(text[at] - '0');
    if (with_digit > 255) return "an octet of an IPv4 address is above 255";
    value = with_digit;
    ++at;
  }
  return at == start ? "an octet of an IPv4 address has no digits" : "";
}

/// Dotted quad from `at` to the end of the text.
[[nodiscard]] constexpr AddressScan scan_dotted_quad(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  for (int octets = 0; octets < 4; ++octets) {
    if (octets > 0) {
      if (at == text.size()) return stop("an IPv4 address has four octets", at);
      if (text[at] != '.') return stop("unexpected character", at);
      ++at;
    }
    std::uint32_t octet = 0;
    if (const auto reason = read_octet(text, at, octet); !reason.empty()) return stop(reason, at);
    value = value << 8 | octet;
  }
  if (at < text.size()) return stop(text[at] == '.' ? "an IPv4 address has four octets" : "unexpected character", at);
  return {Family::v4, value, {}, at};
}

/// The groups of an IPv6 text as they are read, with the place where `::` stood.
class GroupReader {
 public:
  explicit constexpr GroupReader(std::string_view text) : text_(text) {}

  [[nodiscard]] constexpr AddressScan scan() {
    if (text_.starts_with("::")) {
      gap_ = 0;
      at_ = 2;
    } else if (text_.starts_with(':')) {
      return stop("a group of an IPv6 address has no digits", 0);
    }
    while (at_ < text_.size()) {
      if (const auto reason = read_group_and_separator(); !reason.empty()) return stop(reason, at_);
    }
    if (gap_ == kNoGap && count_ < kGroups) return stop("an IPv6 address without \"::\" has eight groups", at_);
    if (gap_ != kNoGap && count_ == kGroups) return stop("\"::\" must stand for at least one group", at_);
    return {Family::v6, value(), {}, at_};
  }

 private:
  static constexpr std::size_t kGroups = 8;
  static constexpr std::size_t kNoGap = kGroups + 1;

  [[nodiscard]] constexpr std::string_view read_group_and_separator() {
    if (count_ == kGroups) return "an IPv6 address has at most eight groups";
    const std::size_t start = at_;
    std::uint32_t group = 0;
    for (; at_ < text_.size() && hex_value(text_[at_]) >= 0; ++at_) {
      if (at_ - start == 4) return "a group of an IPv6 address has more than four digits";
      group = group << 4 | static_cast<std::uint32_t>(hex_value(text_[at_]));
    }
    if (at_ > start && at_ < text_.size() && text_[at_] == '.') return read_embedded(start);
    if (at_ == start) return unreadable_here();
    groups_[count_++] = group;
    return at_ == text_.size() ? "" : read_separator();
  }

  [[nodiscard]] constexpr std::string_view read_separator() {
    if (text_[at_] != ':') return unreadable_here();
    if (at_ + 1 == text_.size()) return "a single colon ends the IPv6 address";
    ++at_;
    if (text_[at_] != ':') return "";
    if (gap_ != kNoGap) return "an IPv6 address has at most one \"::\"";
    gap_ = count_;
    ++at_;
    return "";
  }

  /// A dotted quad that began at `start` as the last two groups.
  [[nodiscard]] constexpr std::string_view read_embedded(std::size_t start) {
    at_ = start;
    if (count_ + 2 > kGroups || (gap_ == kNoGap && count_ + 2 != kGroups)) {
      return "an embedded IPv4 address must stand for the last two of eight groups";
    }
    const AddressScan quad = scan_dotted_quad(text_, start);
    at_ = quad.stopped_at;
    if (!quad.ok()) return quad.reason;
    const auto value = static_cast<std::uint32_t>(quad.value.lo);
    groups_[count_++] = value >> 16;
    groups_[count_++] = value & 0xffffU;
    return "";
  }

  [[nodiscard]] constexpr std::string_view unreadable_here() const {
    if (text_[at_] == '%') return "a zone is not allowed";
    return text_[at_] == ':' ? "a group of an IPv6 address has no digits" : "unexpected character";
  }

  /// The groups before the gap at the top, those after it at the bottom, zeros between.
  [[nodiscard]] constexpr U128 value() const {
    const std::size_t zeros = kGroups - count_;
    U128 result;
    for (std::size_t place = 0; place < kGroups; ++place) {
      const bool before = place < gap_;
      const bool inside = !before && place < gap_ + zeros;
      const std::uint64_t group = inside ? 0 : groups_[before ? place : place - zeros];
      result = result << 16 | U128{group};
    }
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::array<std::uint32_t, kGroups> groups_{};
  std::size_t count_ = 0;
  std::size_t gap_ = kNoGap;
};

}  // namespace scan_detail

/// Reads the whole text as one address. The first of `.` and `:` decides the family, as in Go.
[[nodiscard]] constexpr AddressScan scan_address(std::string_view text) {
  if (text.empty()) return scan_detail::stop("the text is empty", 0);
  switch (const std::size_t mark = text.find_first_of(".:%"); mark == text.npos ? '\0' : text[mark]) {
    case '.':
      return scan_detail::scan_dotted_quad(text, 0);
    case ':':
      return scan_detail::GroupReader(text).scan();
    case '%':
      return scan_detail::stop("a zone is not allowed", mark);
    default:
      return scan_detail::stop("neither an IPv4 nor an IPv6 address", 0);
  }
}

/// One IP address without zone: an immutable value of 24 bytes, trivially copyable, fit for a key. Ordered: invalid,
/// then IPv4, then IPv6, each by value. A default-constructed Address is invalid; it equals neither 0.0.0.0 nor ::.
/// An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) is an IPv6 address, different from the IPv4 one, until `unmapped`.
class Address {
 public:
  constexpr Address() = default;

  /// The 32 bits in host order: v4(0x0a000001) is 10.0.0.1.
  [[nodiscard]] static constexpr Address v4(std::uint32_t value) { return {Family::v4, value}; }
  [[nodiscard]] static constexpr Address v6(U128 value) { return {Family::v6, value}; }
  /// `value` must fit the family.
  [[nodiscard]] static constexpr Address from(Family family, U128 value) {
    CROFT_ASSERT(value <= U128::low_bits(bit_length(family)));
    return {family, value};
  }
  /// As packets and the kernel carry it, in network order; nullopt for other than 4 or 16 bytes.
  [[nodiscard]] static constexpr std::optional<Address> of_bytes(std::span<const std::uint8_t> bytes) {
    if (bytes.size() != 4 && bytes.size() != 16) return std::nullopt;
    U128 value;
    for (const std::uint8_t byte : bytes) value = value << 8 | U128{byte};
    return Address{bytes.size() == 4 ? Family::v4 : Family::v6, value};
  }

  /// Reads dotted quad or the text forms of RFC 4291 §2.2, an embedded dotted quad included. It is as strict as Go's
  /// netip.ParseAddr: octets without leading zeros, groups of 1 to 4 hex digits, nothing before or after. Unlike there,
  /// a zone ("fe80::1%eth0") is refused: a zone has no meaning off its host. Error: invalid_argument, message `invalid
  /// IP address "<text>": <reason> (at "<rest where reading stopped>")`, texts as base/printable.h shows them.
  [[nodiscard]] static Result<Address> parse(std::string_view text);

  [[nodiscard]] constexpr bool is_valid() const { return family_ != Family{}; }
  [[nodiscard]] constexpr bool is_v4() const { return family_ == Family::v4; }
  [[nodiscard]] constexpr bool is_v6() const { return family_ == Family::v6; }

  /// The address must be valid.
  [[nodiscard]] constexpr Family family() const {
    CROFT_ASSERT(is_valid());
    return family_;
  }
  /// The address as a number; IPv4 in the low 32 bits; 0 when invalid.
  [[nodiscard]] constexpr U128 value() const { return value_; }
  /// In network order, IPv4 in the first four; the address must be valid.
  [[nodiscard]] constexpr std::array<std::uint8_t, 16> bytes() const {
    std::array<std::uint8_t, 16> bytes{};
    const int size = bit_length(family()) / 8;
    for (int i = 0; i < size; ++i) {
      bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>((value_ >> 8 * (size - 1 - i)).lo);
    }
    return bytes;
  }

  /// True inside ::ffff:0:0/96.
  [[nodiscard]] constexpr bool is_v4_mapped() const { return is_v6() && (value_ >> 32) == U128{0xffff}; }
  /// The IPv4 address inside an IPv4-mapped one; every other address unchanged.
  [[nodiscard]] constexpr Address unmapped() const {
    return is_v4_mapped() ? v4(static_cast<std::uint32_t>(value_.lo & 0xffff'ffffU)) : *this;
  }

  /// The neighbour; nullopt at the end of the family. The address must be valid.
  [[nodiscard]] constexpr std::optional<Address> next() const {
    if (value_ == U128::low_bits(bit_length(family()))) return std::nullopt;
    return Address{family_, value_ + 1};
  }
  [[nodiscard]] constexpr std::optional<Address> previous() const {
    CROFT_ASSERT(is_valid());
    if (value_ == U128{}) return std::nullopt;
    return Address{family_, value_ - 1};
  }

  /// Dotted quad, or RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups (the first of
  /// equals) as `::`. Never an embedded dotted quad, also for IPv4-mapped addresses ("::ffff:a01:203"): RFC 5952 §5
  /// leaves that open, and one form is what keys need. "invalid" for the invalid address. parse reads it back.
  [[nodiscard]] std::string to_string() const;

  friend constexpr auto operator<=>(const Address&, const Address&) = default;

 private:
  constexpr Address(Family family, U128 value) : family_(family), value_(value) {}

  Family family_{};
  U128 value_{};
};

/// The texts that Address::parse accepts, without the error text; usable in constant expressions.
[[nodiscard]] constexpr std::optional<Address> parse_address(std::string_view text) {
  const AddressScan scan = scan_address(text);
  return scan.ok() ? std::optional(Address::from(scan.family, scan.value)) : std::nullopt;
}

namespace literals {

/// "10.0.0.1"_ip; a text that is no address does not compile.
consteval Address operator""_ip(const char* text, std::size_t size) {
  return parse_address(std::string_view(text, size)).value();
}

}  // namespace literals

}  // namespace croft::net

template <>
struct std::hash<croft::net::Address> {
  std::size_t operator()(const croft::net::Address& a) const noexcept {
    const std::size_t family = a.is_valid() ? static_cast<std::size_t>(a.family()) : 0;
    return std::hash<croft::net::U128>{}(a.value()) + family;
  }
};
