#include "base/net/joined.h"

namespace croft::net {

std::string joined(std::span<const Prefix> prefixes, std::string_view separator) {
  std::string text;
  for (const Prefix& one : prefixes) {
    if (!text.empty()) text += separator;
    text += one.to_string();
  }
  return text;
}

}  // namespace croft::net
