#include "base/net/mac.h"

#include <fmt/format.h>

#include "base/hex.h"
#include "base/net/echo.h"

namespace croft::net {
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

}  // namespace croft::net
