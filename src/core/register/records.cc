#include "core/register/records.h"

#include <algorithm>

#include <fmt/format.h>

#include "net/echo.h"

namespace croft::core {
namespace {

std::string_view family_names(net::Family family) { return family == net::Family::v4 ? "ipv4/" : "ipv6/"; }

std::string cidr_name(const net::Prefix& cidr) { return std::string(family_names(cidr.family())) + cidr.to_string(); }

std::string owner_names(const AffinityOwner& owner) {
  return (owner.type == AffinityOwner::Type::host ? "host/" : "virtual/") + owner.name + "/";
}

}  // namespace

Key pool_key(const std::string& pool_name) { return {Kind::pool, pool_name}; }
Key reservation_key(const std::string& name) { return {Kind::reservation, name}; }
Key ipam_config_key() { return {Kind::ipam_config, "default"}; }
Key node_key(const std::string& name) { return {Kind::node, name}; }
Key block_key(const net::Prefix& cidr) { return {Kind::block, cidr_name(cidr)}; }
Key affinity_key(const AffinityOwner& owner, const net::Prefix& cidr) {
  return {Kind::affinity, owner_names(owner) + cidr_name(cidr)};
}
Key handle_key(const std::string& handle_id) { return {Kind::handle, handle_id}; }
Key vacancy_key(const std::optional<AffinityOwner>& owner, const net::Prefix& cidr) {
  return {Kind::vacancy, (owner ? owner_names(*owner) : "nobody/") + cidr_name(cidr)};
}
Key claim_cursor_key(const AffinityOwner& owner, const std::string& pool_name) {
  return {Kind::claim_cursor, owner_names(owner) + pool_name};
}
Key high_water_mark_key(const net::Prefix& cidr) { return {Kind::high_water_mark, cidr_name(cidr)}; }
Key block_beside_key(const net::Prefix& cidr) { return {Kind::block_beside, cidr_name(cidr)}; }
Key pool_set_key() { return {Kind::pool_set, "default"}; }
Key range_allocation_key(std::string_view name) { return {Kind::range_allocation, std::string(name)}; }
Key service_key(const ServiceName& name) { return {Kind::service, name.to_string()}; }
Key foreign_service_key(const ServiceName& name) { return {Kind::foreign_service, name.to_string()}; }
Key ip_address_key(const std::string& address) { return {Kind::ip_address, address}; }
Key service_cidr_key(const std::string& name) { return {Kind::service_cidr, name}; }
Key node_range_key(const net::Prefix& cidr) { return {Kind::node_range, cidr_name(cidr)}; }
Key node_range_set_key() { return {Kind::node_range_set, "default"}; }
Key removed_node_key(const std::string& name) { return {Kind::removed_node, name}; }

std::string block_names_of(net::Family family) { return std::string(family_names(family)); }
std::string owned_names_of(const AffinityOwner& owner, net::Family family) {
  return owner_names(owner) + std::string(family_names(family));
}

std::string owned_names_of(const AffinityOwner& owner) { return owner_names(owner); }

Result<net::Prefix> cidr_of(const Key& key) {
  const std::size_t family_at = std::max(key.name.rfind("ipv4/") + 1, key.name.rfind("ipv6/") + 1);
  if (family_at != 0) {
    if (auto cidr = net::Prefix::parse(key.name.substr(family_at - 1 + 5))) return *cidr;
  }
  return fail(ErrorCode::corrupt,
              fmt::format("key {} of kind {} does not end in a CIDR", net::echo(key.name), name_of(key.kind)));
}

std::optional<net::Prefix> block_cidr_of(const Key& key) {
  const auto cidr = cidr_of(key);
  if (!cidr || net::bit_length(cidr->family()) - cidr->length() > kBlockHostBitsMax) return {};
  return *cidr;
}

}  // namespace croft::core
