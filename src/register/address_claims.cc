#include "register/address_claims.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/net/ranges.h"
#include "base/printable.h"

namespace croft::core {

using namespace net::literals;

AddressClaims::AddressClaims(Reader& reader, For purpose) {
  const Listing pools{Kind::pool, ""};
  for (const auto& [key, value] : purpose == For::to_look ? reader.sound(pools) : reader.list(pools)) {
    const net::Prefix& cidr = std::get<Pool>(value).cidr;
    pools_.push_back({fmt::format("pool {} ({})", key.name, cidr.to_string()), cidr});
  }
  read_stray_blocks(reader);
  read_node_ranges(reader);
  if (!reader.lacks(Kind::service_cidr)) read_services(reader, purpose);
}

void AddressClaims::read_stray_blocks(Reader& reader) {
  std::vector<net::Prefix> cidrs;
  cidrs.reserve(pools_.size());
  for (const Claim& pool : pools_) cidrs.push_back(pool.cidr);
  const net::Intervals in_pools(std::move(cidrs));
  for (const std::string& family : {block_names_of(net::Family::v4), block_names_of(net::Family::v6)}) {
    for (const Key& key : reader.keys({Kind::block, family})) {
      const auto block = block_cidr_of(key);
      if (!block || in_pools.covers(*block)) continue;
      stray_blocks_.push_back(
          {fmt::format("block {} of a pool that is gone (`croft block show` tells who holds its addresses)",
                       block->to_string()),
           *block});
    }
  }
}

void AddressClaims::read_node_ranges(Reader& reader) {
  if (const auto* set = reader.get(node_range_set_key())) {
    for (const ClusterCidr& cluster : set->cluster_cidrs) {
      clusters_.push_back({fmt::format("cluster CIDR {} of the node ranges", cluster.cidr.to_string()), cluster.cidr});
    }
    for (const net::Prefix& cidr : set->excluded) {
      excluded_.push_back({fmt::format("{}, which node ranges leave out for Services", cidr.to_string()), cidr});
    }
  }
  for (const Key& key : reader.keys({Kind::node_range, ""})) {
    if (const auto cidr = cidr_of(key)) node_ranges_.push_back({"node range " + cidr->to_string(), *cidr});
  }
}

void AddressClaims::read_services(Reader& reader, For purpose) {
  for (const std::string_view name : {kServiceIps, kSecondaryServiceIps}) {
    const auto range = range_allocation_key(name);
    const auto* stored = purpose == For::to_look ? reader.sound(range) : reader.get(range);
    if (stored == nullptr) continue;
    // One that does not parse is ignored, as in the reference; the audit of Services names it.
    if (const auto cidr = net::parse_prefix_leniently(stored->range)) {
      services_.push_back({fmt::format("the Service range {} (record {})", cidr->to_string(), name), *cidr});
    }
  }
  const Listing objects{Kind::service_cidr, ""};
  for (const auto& [key, value] : purpose == For::to_look ? reader.sound(objects) : reader.list(objects)) {
    for (const net::Prefix& cidr : std::get<ServiceCidrObject>(value).cidrs) {
      services_.push_back({fmt::format("ServiceCIDR {} ({})", echo(key.name), cidr.to_string()), cidr});
    }
  }
}

std::optional<std::string> AddressClaims::first_over(const Claims& claims, const net::Prefix& cidr) {
  const auto found = std::ranges::find_if(claims, [&](const Claim& claim) { return claim.cidr.overlaps(cidr); });
  if (found == claims.end()) return std::nullopt;
  return found->text;
}

std::optional<std::string> AddressClaims::against_pool(const net::Prefix& cidr) const {
  for (const Claims* claims : {&clusters_, &excluded_, &node_ranges_, &services_}) {
    auto found = first_over(*claims, cidr);
    if (!found) continue;
    if (claims == &clusters_ || claims == &node_ranges_) *found += ": choose one outside of all node ranges";
    return found;
  }
  return std::nullopt;
}

std::optional<std::string> AddressClaims::against_services(const net::Prefix& cidr) const {
  for (const Claims* claims : {&pools_, &stray_blocks_, &node_ranges_}) {
    if (auto found = first_over(*claims, cidr)) return found;
  }
  const bool is_left_out =
      std::ranges::any_of(excluded_, [&](const Claim& claim) { return claim.cidr.contains(cidr); });
  return is_left_out ? std::nullopt : first_over(clusters_, cidr);
}

std::optional<std::string> AddressClaims::against_cluster_cidr(const net::Prefix& cidr) const {
  auto found = first_over(pools_, cidr);
  return found ? found : first_over(stray_blocks_, cidr);
}

std::vector<net::Prefix> AddressClaims::prefixes_kept_from_nodes() const {
  std::vector<net::Prefix> result;
  for (const Claims* claims : {&services_, &pools_, &stray_blocks_}) {
    for (const Claim& claim : *claims) result.push_back(claim.cidr);
  }
  return result;
}

PlannedWrite next_pool_set(Reader& reader) {
  const PoolSet* set = reader.get(pool_set_key());
  return to_put(pool_set_key(), PoolSet{set != nullptr ? set->generation + 1 : 1});
}

bool is_v4_mapped(const net::Prefix& cidr) { return "::ffff:0:0/96"_prefix.overlaps(cidr); }

}  // namespace croft::core
