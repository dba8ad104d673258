#include "register/records.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/lenient.h"

namespace croft::core {
namespace {

std::string_view family_names(net::Family family) { return family == net::Family::v4 ? "ipv4/" : "ipv6/"; }

std::string cidr_name(const net::Prefix& cidr) { return std::string(family_names(cidr.family())) + cidr.to_string(); }

std::string owner_names(const AffinityOwner& owner) {
  return (owner.type == AffinityOwner::Type::host ? "host/" : "virtual/") + owner.name + "/";
}

}  // namespace

KeyOf<Pool> pool_key(const std::string& pool_name) { return KeyOf<Pool>(pool_name); }
KeyOf<Reservation> reservation_key(const std::string& name) { return KeyOf<Reservation>(name); }
KeyOf<IpamConfig> ipam_config_key() { return KeyOf<IpamConfig>("default"); }
KeyOf<Node> node_key(const std::string& name) { return KeyOf<Node>(name); }
KeyOf<Block> block_key(const net::Prefix& cidr) { return KeyOf<Block>(cidr_name(cidr)); }
KeyOf<Affinity> affinity_key(const AffinityOwner& owner, const net::Prefix& cidr) {
  return KeyOf<Affinity>(owner_names(owner) + cidr_name(cidr));
}
KeyOf<Handle> handle_key(const std::string& handle_id) { return KeyOf<Handle>(handle_id); }
KeyOf<Vacancy> vacancy_key(const std::optional<AffinityOwner>& owner, const net::Prefix& cidr) {
  return KeyOf<Vacancy>((owner ? owner_names(*owner) : "nobody/") + cidr_name(cidr));
}
KeyOf<HighWaterMark> high_water_mark_key(const net::Prefix& cidr) { return KeyOf<HighWaterMark>(cidr_name(cidr)); }
KeyOf<Namespace> namespace_key(const std::string& name) { return KeyOf<Namespace>(name); }
KeyOf<PoolSet> pool_set_key() { return KeyOf<PoolSet>("default"); }
KeyOf<RangeAllocation> range_allocation_key(std::string_view name) { return KeyOf<RangeAllocation>(std::string(name)); }
KeyOf<Service> service_key(const ServiceName& name) { return KeyOf<Service>(name.to_string()); }
KeyOf<ForeignService> foreign_service_key(const ServiceName& name) { return KeyOf<ForeignService>(name.to_string()); }
KeyOf<ServiceCidrObject> service_cidr_key(const std::string& name) { return KeyOf<ServiceCidrObject>(name); }
KeyOf<NodeRange> node_range_key(const net::Prefix& cidr) { return KeyOf<NodeRange>(cidr_name(cidr)); }
KeyOf<NodeRangeSet> node_range_set_key() { return KeyOf<NodeRangeSet>("default"); }
KeyOf<RemovedNode> removed_node_key(const std::string& name) { return KeyOf<RemovedNode>(name); }
KeyOf<StockAddress> warm_address_key(const net::Address& address) {
  return KeyOf<StockAddress>(std::string(family_names(address.family())) + address.to_string());
}
KeyOf<StockIntent> warm_intent_key(const std::string& id) { return KeyOf<StockIntent>(id); }
KeyOf<StockNode> warm_node_key() { return KeyOf<StockNode>("default"); }

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
  if (const auto cidr = cidr_of(key)) return *cidr;
  const std::size_t slash = key.name.find('/');
  return slash == key.name.npos ? std::nullopt
                                : net::parse_prefix_leniently(std::string_view(key.name).substr(slash + 1));
}

}  // namespace croft::core
