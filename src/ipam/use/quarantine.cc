#include "ipam/use/quarantine.h"

#include <utility>

#include "ipam/use/inspect.h"
#include "ipam/use/release.h"
#include "register/records.h"

namespace croft::engine {

Result<std::vector<core::InQuarantine>> quarantined_by(const Context& context, const core::AffinityOwner& node) {
  const Deadline deadline = deadline_of_use_case(context);
  std::vector<net::Prefix> cidrs;
  TRY_VOID(for_each_affinity(context, core::owned_names_of(node),
                             [&](const core::Affinity& row) { cidrs.push_back(row.cidr); }));
  std::vector<core::InQuarantine> found;
  for (const net::Prefix& cidr : cidrs) {
    TRY(const auto record, context.store.get(core::block_key(cidr), deadline));
    const auto* block = record ? std::get_if<core::Block>(&record->value) : nullptr;
    if (block == nullptr || block->deleted || !core::check_block(*block)) continue;
    core::add_quarantined_by(node.name, *block, found);
  }
  return found;
}

Result<std::vector<net::Address>> QuarantineKeeper::look(const Context& context, store::Store& memory,
                                                         const DeviceOf& device_of) {
  const Context reading{memory, context.clock, context.random, context.time_limit};
  TRY(const auto quarantined, quarantined_by(reading, node_));
  std::map<net::Address, Unseen> unseen;
  std::vector<core::AddressToRelease> over;
  for (const core::InQuarantine& found : quarantined) {
    const core::AddressToRelease& one = found.named;
    TRY(const auto device, device_of(one.address));
    if (device) {
      unseen_.erase(one.address);
      continue;
    }
    const auto now = context.clock.now().since_boot;
    const auto known = unseen_.find(one.address);
    const bool is_same = known != unseen_.end() && known->second.sequence == *one.sequence_number;
    const Unseen since = is_same ? known->second : Unseen{*one.sequence_number, now};
    unseen.emplace(one.address, since);
    if (is_same && now - since.since_boot >= hold_) over.push_back(one);
  }
  unseen_ = std::move(unseen);
  if (over.empty()) return std::vector<net::Address>();
  TRY(auto done, release_addresses(context, over));
  return std::move(done.released);
}

}  // namespace croft::engine
