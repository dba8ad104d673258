#include "core/block/affinity.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "core/block/names.h"

namespace croft::core {
namespace {

constexpr std::string_view kHostPrefix = "host:";
constexpr std::string_view kVirtualPrefix = "virtual:";
constexpr std::size_t kNodeNameBytesMax = 253;
constexpr std::size_t kQuotedBytesMax = 64;

}  // namespace

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, kQuotedBytesMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte > 0x7e) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + (text.size() > kQuotedBytesMax ? "…\"" : "\"");
}

std::string to_string(const AffinityOwner& owner) {
  return std::string(owner.type == AffinityOwner::Type::host ? kHostPrefix : kVirtualPrefix) + owner.name;
}

Result<AffinityOwner> parse_affinity_owner(const std::string& text) {
  if (text.starts_with(kHostPrefix) && text.size() > kHostPrefix.size()) {
    return AffinityOwner{AffinityOwner::Type::host, text.substr(kHostPrefix.size())};
  }
  if (text.starts_with(kVirtualPrefix) && text.size() > kVirtualPrefix.size()) {
    return AffinityOwner{AffinityOwner::Type::virtual_owner, text.substr(kVirtualPrefix.size())};
  }
  return fail(ErrorCode::corrupt, fmt::format("affinity {} is neither host:NAME nor virtual:NAME", quoted(text)));
}

Result<void> check_node_name(const std::string& name) {
  const auto allowed = [](char c) { return is_alphanumeric(c) || c == '-' || c == '.' || c == '_'; };
  if (name.empty() || name.size() > kNodeNameBytesMax || !is_alphanumeric(name.front()) ||
      !is_alphanumeric(name.back()) || !std::all_of(name.begin(), name.end(), allowed)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("node name {} is not valid: 1 to {} letters, digits, '-', '.' or '_', first and last a "
                            "letter or digit; set \"nodename\" in the network configuration",
                            quoted(name), kNodeNameBytesMax));
  }
  return {};
}

}  // namespace croft::core
