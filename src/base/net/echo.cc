#include "base/net/echo.h"

#include <fmt/format.h>

#include "base/without_user_info.h"

namespace croft::net {
namespace {

std::string escaped(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("\\x{:02x}", byte);
  if (c == '"' || c == '\\') return {'\\', c};
  return {c};
}

}  // namespace

std::string echo(std::string_view text) {
  std::string out = "\"";
  for (const char c : without_user_info(text)) {
    const std::string piece = escaped(c);
    if (out.size() - 1 + piece.size() > kEchoBytesMax) return out + "\"...";
    out += piece;
  }
  return out + '"';
}

}  // namespace croft::net
