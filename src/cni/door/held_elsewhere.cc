#include "cni/door/held_elsewhere.h"

#include "cni/decision_log.h"
#include "ipam/use/attachments.h"
#include "ipam/use/release.h"

namespace croft::edge {

Result<void> look_on_node(const engine::Context& context, const core::Owner& owner, const core::AffinityOwner& node,
                          GivenBack& given_back) {
  const auto found = engine::held_on_node(context, owner, node);
  if (!found) return {};
  if (!found->unnamed.empty()) {
    TRY(const core::AddressReleases released, engine::release_addresses(context, found->unnamed));
    given_back.addresses.insert(given_back.addresses.end(), released.released.begin(), released.released.end());
  }
  if (given_back.addresses.empty()) given_back.why_none = elsewhere_text(found->elsewhere);
  return {};
}

}  // namespace croft::edge
