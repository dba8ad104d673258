#include "sim/today.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "register/block.h"

namespace croft::sim {
namespace {

constexpr std::chrono::seconds kPageTime{15};

void take_pods(const core::Block& block, std::vector<PodOfToday>& pods) {
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    const core::Attribute* attribute = core::attribute_of(block, net::Ordinal(i));
    if (attribute == nullptr || attribute->cooling || !attribute->handle_id) continue;
    const auto owner = core::owner_of(*attribute->handle_id, attribute->secondary);
    const auto value = [&](const char* key) {
      const auto at = attribute->secondary.find(key);
      return at == attribute->secondary.end() ? std::string() : at->second;
    };
    const std::string node = value(core::kNodeKey);
    if (!owner || node.empty()) continue;
    pods.push_back({net::address_at(block.cidr, net::Ordinal(i)),
                    node,
                    *owner,
                    {value(core::kPodKey), value(core::kNamespaceKey), value(core::kPodUidKey)}});
  }
}

}  // namespace

Result<void> begin_with(Plan& plan, store::Store& store, const Clock& clock) {
  Today today;
  today.read_at = clock.now().wall;
  std::set<std::string> nodes;
  for (const core::Kind kind :
       {core::Kind::pool, core::Kind::reservation, core::Kind::ipam_config, core::Kind::node, core::Kind::block,
        core::Kind::affinity, core::Kind::handle, core::Kind::vacancy, core::Kind::high_water_mark}) {
    TRY_VOID(store.for_each(
        {kind, "", "", store::kListLimitMax}, [&] { return Deadline::after(clock.now(), kPageTime); },
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

}  // namespace croft::sim
