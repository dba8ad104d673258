#include "services/decide/node_ports.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::core::service {
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

}  // namespace croft::core::service
