#include "ipam/door/calico_messages.h"

#include <algorithm>

#include <fmt/format.h>

namespace croft::edge {
namespace {

using core::RefusalCause;

int version_of(net::Family family) { return family == net::Family::v4 ? 4 : 6; }

/// The family that was short: the usable pools are all of one. IPv4 is tried first.
net::Family family_of(const core::Refusal& refusal, const core::AssignRequest& request) {
  for (const core::PoolVerdict& verdict : refusal.considered) {
    if (verdict.usable) return verdict.cidr.family();
  }
  return request.count.v4 > 0 ? net::Family::v4 : net::Family::v6;
}

/// Some or all addresses are missing, and this is why.
std::string shortage(const core::Refusal& refusal, const core::AssignRequest& request, std::string_view why) {
  const net::Family family = family_of(refusal, request);
  const int version = version_of(family);
  return fmt::format("failed to request IPv{} addresses: Assigned 0 out of {} requested IPv{} addresses; {}", version,
                     request.count[family], version, why);
}

std::string list_of_usable(const core::Refusal& refusal) {
  std::string text;
  for (const core::PoolVerdict& verdict : refusal.considered) {
    if (verdict.usable) text += (text.empty() ? "" : " ") + verdict.cidr.to_string();
  }
  return text;
}

/// The first requested pool that is not usable, as Calico reports it: determinePools checks a CIDR, the plugin itself a
/// name, before any address is looked for.
std::string unusable_pool(const core::Refusal& refusal, const core::AssignRequest& request) {
  for (const auto family : net::kFamilies) {
    for (const core::AskedPool& asked : request.pools[family]) {
      const auto* name = std::get_if<std::string>(&asked);
      if (name == nullptr) continue;
      const auto known = std::find_if(refusal.considered.begin(), refusal.considered.end(),
                                      [&](const core::PoolVerdict& v) { return v.pool == *name; });
      if (known == refusal.considered.end()) {
        return fmt::format("error parsing pool \"{}\": invalid CIDR address: {}", *name, *name);
      }
      if (known->cidr.family() != family) {
        return fmt::format("\"{}\" isn't a IPv{} address", known->cidr.first().to_string(), version_of(family));
      }
    }
  }
  return {};
}

/// The CIDR of a pool that was asked for and that no pool, or no enabled one, has.
std::string disabled_or_absent(const core::Refusal& refusal, const core::AssignRequest& request) {
  for (const auto* asked_pools : {&request.pools.v4, &request.pools.v6}) {
    for (const core::AskedPool& asked : *asked_pools) {
      const auto known =
          std::find_if(refusal.considered.begin(), refusal.considered.end(),
                       [&](const core::PoolVerdict& v) { return core::is_asked(asked, v.pool, v.cidr); });
      if (known == refusal.considered.end()) return core::text_of(asked);
      if (known->reason == "disabled" || known->reason.starts_with("not allocatable")) return known->cidr.to_string();
    }
  }
  return {};
}

std::string message_of_pool(const core::Refusal& refusal, const core::AssignRequest& request) {
  if (std::string text = unusable_pool(refusal, request); !text.empty()) return text;
  const std::string cidr = disabled_or_absent(refusal, request);
  if (cidr.empty()) return refusal.summary;
  return fmt::format("the given pool ({}) does not exist, or is not enabled", cidr);
}

std::string message_of(const core::Refusal& refusal, const core::AssignRequest& request) {
  switch (refusal.cause) {
    case RefusalCause::no_pool_enabled:
      return "cannot find a qualified ippool";
    case RefusalCause::no_pool_qualified:
      return "cannot find a qualified ippool, no pools match the required use (Workload)";
    case RefusalCause::no_pool_for_node:
      return "no configured Calico pools for node " + request.node.name;
    case RefusalCause::pool_not_usable:
      return message_of_pool(refusal, request);
    case RefusalCause::full:
      return shortage(refusal, request, fmt::format("No IPs available in pools: [{}]", list_of_usable(refusal)));
    case RefusalCause::full_and_strict:
      return shortage(refusal, request, "No more free affine blocks and strict affinity enabled");
    case RefusalCause::block_limit:
      return "cannot allocate new block due to per host block limit";
    case RefusalCause::no_block_to_claim:
      return "failed to find or claim a block";
    case RefusalCause::address_in_no_pool:
      return "The provided IP address is not in a configured pool\n";
    case RefusalCause::address_taken:
      return "resource already exists: " + request.addresses.front().to_string();
    case RefusalCause::address_out_of_bounds:
      return "Block host affinity does not match";
    case RefusalCause::other:
      break;
  }
  return refusal.summary;
}

}  // namespace

Error calico_error(const core::Refusal& refusal, const core::AssignRequest& request) {
  Error error = core::to_error(refusal);
  if (error.details.empty()) error.details = error.message;
  error.message = message_of(refusal, request);
  return error;
}

}  // namespace croft::edge
