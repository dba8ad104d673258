#include "register/records.h"

#include <algorithm>
#include <string_view>

#include "base/assert.h"
#include "base/letters.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "register/node.h"
#include "register/owner.h"

namespace croft::core {

namespace {

std::string cidr_name(const net::Prefix& cidr) { return block_names_of(cidr.family()) + cidr.to_string(); }

}  // namespace

KeyOf<Block> block_key(const net::Prefix& cidr) { return KeyOf<Block>(cidr_name(cidr)); }
KeyOf<Affinity> affinity_key(const AffinityOwner& owner, const net::Prefix& cidr) {
  return KeyOf<Affinity>(owned_names_of(owner) + cidr_name(cidr));
}
KeyOf<Vacancy> vacancy_key(const std::optional<AffinityOwner>& owner, const net::Prefix& cidr) {
  return KeyOf<Vacancy>((owner ? owned_names_of(*owner) : "nobody/") + cidr_name(cidr));
}
KeyOf<HighWaterMark> high_water_mark_key(const net::Prefix& cidr) { return KeyOf<HighWaterMark>(cidr_name(cidr)); }
KeyOf<NodeRange> node_range_key(const net::Prefix& cidr) { return KeyOf<NodeRange>(cidr_name(cidr)); }
KeyOf<StockAddress> warm_address_key(const net::Address& address) {
  return KeyOf<StockAddress>(block_names_of(address.family()) + address.to_string());
}

std::string block_names_of(net::Family family) { return family == net::Family::v4 ? "ipv4/" : "ipv6/"; }
std::string owned_names_of(const AffinityOwner& owner, net::Family family) {
  return owned_names_of(owner) + block_names_of(family);
}
std::string owned_names_of(const AffinityOwner& owner) {
  return std::string(word_in(kOwnerTypes, owner.type)).append("/").append(owner.name).append("/");
}

Result<net::Prefix> cidr_of(const Key& key) {
  const std::size_t family_at = std::max(key.name.rfind("ipv4/") + 1, key.name.rfind("ipv6/") + 1);
  if (family_at != 0) {
    if (auto cidr = net::Prefix::parse(key.name.substr(family_at - 1 + 5))) return *cidr;
  }
  return fail(ErrorCode::corrupt, "key {} of kind {} does not end in a CIDR", echo(key.name), name_of(key.kind));
}

std::optional<net::Prefix> block_cidr_of(const Key& key) {
  if (const auto cidr = cidr_of(key)) return *cidr;
  const std::size_t slash = key.name.find('/');
  return slash == key.name.npos ? std::nullopt
                                : net::parse_prefix_leniently(std::string_view(key.name).substr(slash + 1));
}

namespace {

constexpr std::size_t kLabelPartBytesMax = 63;
constexpr std::size_t kDnsNameBytesMax = 253;
constexpr std::size_t kNodeNameBytesMax = 253;

bool is_name(std::string_view text, std::size_t bytes_max = kLabelPartBytesMax) {
  const auto allowed = [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && text.size() <= bytes_max && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, allowed);
}

bool is_label_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash != key.npos && (slash > kDnsNameBytesMax || !is_dns_subdomain(key.substr(0, slash)))) return false;
  return is_name(key.substr(slash == key.npos ? 0 : slash + 1));
}

}  // namespace

net::Family family_of(TunnelKind kind) {
  const bool is_v6 = kind == TunnelKind::vxlan_v6 || kind == TunnelKind::wireguard_v6;
  return is_v6 ? net::Family::v6 : net::Family::v4;
}

Result<void> check_label(const std::string& key, const std::string& value) {
  if (!is_label_key(key)) {
    return fail(ErrorCode::invalid_argument,
                "label {} is not valid: 1 to {} letters, digits, '-', '_' or '.', first and last a letter "
                "or digit, behind an optional DNS name and a slash",
                echo(key), kLabelPartBytesMax);
  }
  if (!value.empty() && !is_name(value)) {
    return fail(ErrorCode::invalid_argument,
                "value {} of label {} is not valid: at most {} letters, digits, '-', '_' or '.', first and "
                "last a letter or digit",
                echo(value), key, kLabelPartBytesMax);
  }
  return {};
}

std::string to_string(const AffinityOwner& owner) {
  return std::string(word_in(kOwnerTypes, owner.type)).append(":").append(owner.name);
}

Result<AffinityOwner> parse_affinity_owner(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto type = value_in(kOwnerTypes, std::string_view(text).substr(0, colon));
  if (type && colon != text.npos && colon + 1 < text.size()) return AffinityOwner{*type, text.substr(colon + 1)};
  return fail(ErrorCode::corrupt, "affinity {} is neither host:NAME nor virtual:NAME", echo(text));
}

Result<void> check_node_name(const std::string& name) {
  if (!is_name(name, kNodeNameBytesMax)) {
    return fail(ErrorCode::invalid_argument,
                "node name {} is not valid: 1 to {} letters, digits, '-', '.' or '_', first and last a "
                "letter or digit; set \"nodename\" in the network configuration",
                echo(name), kNodeNameBytesMax);
  }
  return {};
}

namespace {

const std::string* find_attribute(const std::map<std::string, std::string>& map, const char* key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

}  // namespace

std::string handle_of(const Owner& owner) { return owner.network + "." + owner.container_id; }

bool matches(const Owner& owner, const std::string& handle_id, const std::map<std::string, std::string>& secondary) {
  if (handle_id != handle_of(owner)) return false;
  // Written by another system, which knows an owner by its handle alone.
  if (find_attribute(secondary, kInterfaceKey) == nullptr && find_attribute(secondary, kNetworkKey) == nullptr)
    return true;
  const std::optional<Owner> recorded = owner_of(handle_id, secondary);
  return recorded && recorded->network == owner.network && recorded->container_id == owner.container_id &&
         (recorded->interface_name.empty() || recorded->interface_name == owner.interface_name);
}

std::optional<Owner> owner_of(const std::string& handle_id, const std::map<std::string, std::string>& secondary) {
  const std::string* network = find_attribute(secondary, kNetworkKey);
  const std::size_t dot = network != nullptr ? network->size() : handle_id.find('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 >= handle_id.size() || handle_id[dot] != '.') return {};
  if (network != nullptr && !handle_id.starts_with(*network)) return {};
  const std::string* interface_name = find_attribute(secondary, kInterfaceKey);
  // Croft names the network whenever it has a dot, and the interface always. In handles of others only one dot is
  // clear.
  const bool is_others = network == nullptr && interface_name == nullptr;
  if (is_others && handle_id.find('.', dot + 1) != std::string::npos) return {};
  return Owner{handle_id.substr(0, dot), handle_id.substr(dot + 1), interface_name != nullptr ? *interface_name : ""};
}

std::vector<HandleBlock> blocks_of(const Handle& handle) {
  std::vector<HandleBlock> blocks;
  blocks.reserve(handle.blocks.size());
  for (const auto& [name, count] : handle.blocks) {
    const auto cidr = net::Prefix::parse(name);
    CROFT_ASSERT(cidr.has_value());
    blocks.push_back({*cidr, count, name});
  }
  return blocks;
}

Result<void> check_block_names(const Handle& handle) {
  for (const auto& [name, count] : handle.blocks) {
    if (const auto cidr = net::Prefix::parse(name); !cidr) {
      return fail(ErrorCode::corrupt, "handle " + handle.id + ": " + cidr.error().message);
    }
  }
  return {};
}

}  // namespace croft::core
