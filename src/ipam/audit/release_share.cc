#include "ipam/audit/release_share.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"
#include "base/net/ordinal.h"
#include "register/owner.h"

namespace croft::core::audit {

ReleaseShare::ReleaseShare(const std::vector<AddressToRelease>& addresses) {
  for (const AddressToRelease& one : addresses) wanted_.emplace(one.address, &one);
}

void ReleaseShare::add(const Block& block) {
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    const net::Ordinal ordinal(i);
    const Attribute* holder = attribute_of(block, ordinal);
    if (holder == nullptr || holder->cooling) continue;
    const auto node = holder->secondary.find(kNodeKey);
    Count& count = nodes_[node == holder->secondary.end() ? "" : node->second];
    ++count.held;
    const auto goes = wanted_.find(net::address_at(block.cidr, ordinal));
    if (goes == wanted_.end()) continue;
    const AddressToRelease& one = *goes->second;
    const bool matches = (!one.handle_id || one.handle_id == holder->handle_id) &&
                         (!one.sequence_number || *one.sequence_number == sequence_of(block, ordinal));
    if (matches) ++count.going;
  }
}

Result<void> ReleaseShare::check(double share) const {
  for (const auto& [name, count] : nodes_) {
    if (static_cast<double>(count.going) <= share * static_cast<double>(count.held)) continue;
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} of {} addresses held on {} would go, more than a share of {}; nothing was released",
                            count.going, count.held, name.empty() ? "no known node" : "node " + name, share));
  }
  return {};
}

}  // namespace croft::core::audit
