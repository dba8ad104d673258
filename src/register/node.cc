#include "register/node.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/letters.h"
#include "base/net/echo.h"

namespace croft::core {
namespace {

constexpr std::size_t kLabelPartBytesMax = 63;
constexpr std::size_t kDnsNameBytesMax = 253;

/// Not for empty texts.
bool is_label_part(std::string_view text) {
  const auto allowed = [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  return text.size() <= kLabelPartBytesMax && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, allowed);
}

bool is_label_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash != key.npos && (slash > kDnsNameBytesMax || !is_dns_subdomain(key.substr(0, slash)))) return false;
  const std::string_view name = key.substr(slash == key.npos ? 0 : slash + 1);
  return !name.empty() && is_label_part(name);
}

}  // namespace

net::Family family_of(TunnelKind kind) {
  switch (kind) {
    case TunnelKind::ipip:
    case TunnelKind::vxlan_v4:
    case TunnelKind::wireguard_v4:
      return net::Family::v4;
    case TunnelKind::vxlan_v6:
    case TunnelKind::wireguard_v6:
      return net::Family::v6;
  }
  CROFT_ASSERT(false);
}

Result<void> check_label(const std::string& key, const std::string& value) {
  if (!is_label_key(key)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("label {} is not valid: 1 to {} letters, digits, '-', '_' or '.', first and last a letter "
                            "or digit, behind an optional DNS name and a slash",
                            net::echo(key), kLabelPartBytesMax));
  }
  if (!value.empty() && !is_label_part(value)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("value {} of label {} is not valid: at most {} letters, digits, '-', '_' or '.', first and "
                            "last a letter or digit",
                            net::echo(value), key, kLabelPartBytesMax));
  }
  return {};
}

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
