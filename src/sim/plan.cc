#include "sim/plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "register/block.h"

// The sizes of a plan, and the register with which it begins.

namespace croft::sim {
namespace {

constexpr std::chrono::seconds kPageTime{15};
constexpr Span kPartLife = std::chrono::minutes(20);

void take_pods(const core::Block& block, std::vector<PodOfToday>& pods) {
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    const core::Attribute* attribute = core::attribute_of(block, net::Ordinal(i));
    if (attribute == nullptr || attribute->cooling || !attribute->handle_id) continue;
    const auto owner = core::owner_of(*attribute->handle_id, attribute->secondary);
    const std::string node = core::member_of(attribute->secondary, core::kNodeKey);
    if (!owner || node.empty()) continue;
    pods.push_back({net::address_at(block.cidr, net::Ordinal(i)), node, *owner, core::pod_of(attribute->secondary)});
  }
}

}  // namespace

Result<void> start_from_register(Plan& plan, store::Store& store, const Clock& clock) {
  Today today;
  today.read_at = clock.now().wall;
  std::set<std::string> nodes;
  for (const core::Kind kind :
       {core::Kind::pool, core::Kind::reservation, core::Kind::ipam_config, core::Kind::node, core::Kind::block,
        core::Kind::affinity, core::Kind::handle, core::Kind::vacancy, core::Kind::high_water_mark}) {
    TRY_VOID(store.for_each(
        {kind, "", store::kListLimitMax}, [&] { return Deadline::after(clock.now(), kPageTime); },
        [&](store::Record& record) -> Result<void> {
          if (!record.value) return {};
          if (const auto* pool = record.get_if<core::Pool>()) today.pools.push_back(*pool);
          if (const auto* config = record.get_if<core::IpamConfig>()) today.config = *config;
          if (kind == core::Kind::node) nodes.insert(record.key.name);
          if (const auto* block = record.get_if<core::Block>()) take_pods(*block, today.pods);
          today.records.push_back(std::move(record));
          return {};
        }));
  }
  if (today.pools.empty()) return fail(ErrorCode::not_found, "the register has no pool. Plan without --from.");
  std::ranges::stable_sort(today.pools, {}, [](const core::Pool& pool) {
    return std::pair(!core::is_enabled(pool), pool.cidr.family() != net::Family::v4);
  });
  const core::Pool first = today.pools.front();
  std::erase_if(today.pools, [&](const core::Pool& pool) { return pool.cidr.family() != first.cidr.family(); });
  std::erase_if(today.pods, [&](const PodOfToday& pod) { return pod.address.family() != first.cidr.family(); });
  for (const PodOfToday& pod : today.pods) nodes.insert(pod.node);
  plan.pool = first.cidr;
  plan.block_length = first.block_length;
  plan.cooldown = first.cooldown;
  plan.strict = today.config.strict_affinity;
  today.nodes = static_cast<std::uint32_t>(nodes.size());
  plan.nodes = std::max(today.nodes, 1U);
  plan.pods = static_cast<std::uint32_t>(std::max<std::size_t>((today.pods.size() + plan.nodes / 2) / plan.nodes, 1));
  plan.today = std::make_shared<const Today>(std::move(today));
  return {};
}

Plan part_of(const Plan& plan, std::uint32_t nodes_max) {
  Plan part = plan;
  part.today = nullptr;
  part.failures = 0;
  part.life = std::min(plan.life, kPartLife);
  int halves = 0;
  while (part.nodes > nodes_max) {
    part.nodes = (part.nodes + 1) / 2;
    ++halves;
  }
  const net::Prefix pool = plan.pool.value_or(pool_for(plan, net::Family::v4));
  part.block_length = block_length_of(plan, pool.family());
  part.pool = net::Prefix::containing(pool.first(), std::min(pool.length() + halves, *part.block_length));
  return part;
}

net::Prefix prefix_of(const net::Prefix& like, double addresses) {
  const int bits = net::bit_length(like.family());
  int length = bits;
  while (length > 8 && std::exp2(bits - length) < addresses) --length;
  return net::Prefix::containing(like.first(), length);
}

int block_length_of(const Plan& plan, net::Family family) {
  return plan.block_length.value_or(net::bit_length(family) - 6);
}

net::Prefix pool_for(const Plan& plan, net::Family family) {
  const bool is_v4 = family == net::Family::v4;
  const double block = std::exp2(std::max(0, net::bit_length(family) - block_length_of(plan, family)));
  const double resting = plan.churn / 3600 * static_cast<double>(plan.cooldown.count());
  const double blocks = static_cast<double>(plan.nodes) * std::ceil((plan.pods * 4.0 / 3 + resting) / block) * 4 / 3;
  return prefix_of(net::Prefix::parse(is_v4 ? "10.0.0.0/8" : "fd00::/96").value(), blocks * block);
}

}  // namespace croft::sim
