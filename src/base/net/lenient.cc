#include "base/net/lenient.h"

#include <cstddef>
#include <string>

#include "base/hex.h"

namespace croft::net {
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

}  // namespace croft::net
