#include "install/door/takeover.h"

#include <algorithm>

#include <fmt/format.h>

namespace croft::edge {
namespace {

[[nodiscard]] bool is_own_directory(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.empty() || path == "/var/lib/cni/networks";
}

}  // namespace

store::OneRegister same_register(const NextGiver& next, const wire::cni::AddressGiver& before) {
  if (next.store.empty() || before.store.empty()) return store::OneRegister::not_said;
  return store::name_one_register(next.store, before.store);
}

bool knows(const NextGiver& next, const wire::cni::AddressGiver& before) {
  if (before.is_unclear) return false;
  if (next.is_register) {
    if (same_register(next, before) == store::OneRegister::no) return false;
    if (!before.store.empty()) return true;
    if (before.program == "croft-ipam") return true;
    const bool is_calicos = before.program == "calico-ipam" && !next.calicos.empty();
    return is_calicos && (before.datastore.empty() || before.datastore == next.calicos);
  }
  return before.program == "host-local" && before.network == next.network && is_own_directory(before.directory);
}

bool is_same(const NextGiver& next, const wire::cni::NetworkCalls& calls) {
  const std::vector<wire::cni::AddressGiver> givers = calls.all_givers();
  return !givers.empty() && !calls.names_another &&
         std::ranges::all_of(givers, [&](const wire::cni::AddressGiver& giver) {
           if (next.is_register && same_register(next, giver) != store::OneRegister::yes) return false;
           return knows(next, giver);
         });
}

bool calls_only(const NextGiver& ours, std::string_view file, const wire::cni::NetworkCalls& calls) {
  const std::string& other = calls.other;
  const bool names_ours = other == ours.network || other.ends_with(fmt::format("{}/{}", ours.directory, file));
  if (calls.names_another && !names_ours) return false;
  const bool has_networks = calls.names_another || !calls.delegates.empty();
  const std::vector<wire::cni::AddressGiver> givers = calls.all_givers();
  if (givers.empty()) return calls.names_another;
  return std::ranges::all_of(givers, [&](const wire::cni::AddressGiver& giver) {
    // By itself host-local may be anybody's.
    const bool may_be_ours = ours.is_register ? giver.program == "croft-ipam" || !giver.store.empty() : has_networks;
    return may_be_ours && knows(ours, giver);
  });
}

std::optional<CommonRange> common_range(const std::vector<net::Prefix>& before, const std::vector<net::Prefix>& next) {
  for (const net::Prefix& one : before) {
    for (const net::Prefix& other : next) {
      if (one.overlaps(other)) return CommonRange{one, other};
    }
  }
  return std::nullopt;
}

std::optional<CommonRangeOfNode> common_range_of_others(const std::vector<net::Prefix>& before,
                                                        const std::vector<NodeCidrs>& nodes, const std::string& own,
                                                        const std::vector<net::Prefix>& next) {
  const bool is_of_nodes =
      std::ranges::any_of(nodes, [&](const NodeCidrs& one) { return common_range(before, one.cidrs).has_value(); });
  if (!is_of_nodes) return std::nullopt;
  for (const NodeCidrs& other : nodes) {
    if (other.node == own) continue;
    if (const auto common = common_range(other.cidrs, next)) return CommonRangeOfNode{other.node, *common};
  }
  return std::nullopt;
}

}  // namespace croft::edge
