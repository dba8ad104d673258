#include "register/affinity.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/net/echo.h"

namespace croft::core {
namespace {

constexpr std::string_view kHostPrefix = "host:";
constexpr std::string_view kVirtualPrefix = "virtual:";
constexpr std::size_t kNodeNameBytesMax = 253;

}  // namespace

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
  return fail(ErrorCode::corrupt, fmt::format("affinity {} is neither host:NAME nor virtual:NAME", net::echo(text)));
}

Result<void> check_node_name(const std::string& name) {
  const auto allowed = [](char c) { return is_alphanumeric(c) || c == '-' || c == '.' || c == '_'; };
  if (name.empty() || name.size() > kNodeNameBytesMax || !is_alphanumeric(name.front()) ||
      !is_alphanumeric(name.back()) || !std::all_of(name.begin(), name.end(), allowed)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("node name {} is not valid: 1 to {} letters, digits, '-', '.' or '_', first and last a "
                            "letter or digit; set \"nodename\" in the network configuration",
                            net::echo(name), kNodeNameBytesMax));
  }
  return {};
}

}  // namespace croft::core
