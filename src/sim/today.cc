#include "sim/today.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

namespace croft::sim {
namespace {

constexpr std::chrono::seconds kPageTime{15};

}  // namespace

std::vector<HeldToday> held_today(const core::Block& block) {
  std::vector<HeldToday> held;
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
    held.push_back({net::address_at(block.cidr, net::Ordinal(i)),
                    node,
                    {*owner, value(core::kNamespaceKey), value(core::kPodKey), value(core::kPodUidKey)}});
  }
  return held;
}

Result<void> begin_with(Plan& plan, store::Store& store, const Clock& clock) {
  auto records = std::make_shared<std::vector<store::Record>>();
  std::set<std::string> nodes;
  std::size_t pods = 0;
  for (const core::Kind kind : {core::Kind::pool, core::Kind::reservation, core::Kind::ipam_config, core::Kind::node,
                                core::Kind::block, core::Kind::affinity, core::Kind::handle, core::Kind::vacancy,
                                core::Kind::claim_cursor, core::Kind::high_water_mark}) {
    TRY_VOID(store.for_each(
        {kind, "", "", store::kListLimitMax}, [&] { return Deadline::after(clock.now(), kPageTime); },
        [&](store::Record& record) -> Result<void> {
          if (core::damage_of(record.value) != nullptr) return {};
          if (kind == core::Kind::node) nodes.insert(record.key.name);
          if (const auto* block = std::get_if<core::Block>(&record.value)) {
            for (const HeldToday& held : held_today(*block)) nodes.insert(held.node), ++pods;
          }
          records->push_back(std::move(record));
          return {};
        }));
  }
  if (records->empty() || records->front().key.kind != core::Kind::pool) {
    return fail(ErrorCode::not_found, "the register has no pool; plan without --from");
  }
  if (plan.nodes == 0) plan.nodes = static_cast<std::uint32_t>(std::max<std::size_t>(nodes.size(), 1));
  if (plan.pods == 0)
    plan.pods = static_cast<std::uint32_t>(std::max<std::size_t>((pods + plan.nodes / 2) / plan.nodes, 1));
  plan.today = std::move(records);
  return {};
}

}  // namespace croft::sim
