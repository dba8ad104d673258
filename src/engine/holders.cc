#include "engine/holders.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/collect/allocation_owner.h"
#include "core/register/quarantine.h"

namespace croft::engine {
namespace {

using State = HolderLife::State;
using core::CachedAttachment;
using core::collect::AllocationOwner;
using core::collect::Doubt;

/// Who lives with the address, whatever the register says.
std::string user_of(const net::Address& address, const LifeKnown& known) {
  for (const core::audit::RunningPod& pod : known.runtime.pods) {
    if (std::ranges::find(pod.addresses, address) == pod.addresses.end()) continue;
    return fmt::format("is reported by pod {}/{} on node {}", pod.pod.namespace_name, pod.pod.name, pod.node);
  }
  const auto found = known.configured.find(address.unmapped());
  return found == known.configured.end() ? "" : fmt::format("is configured on {}", found->second);
}

/// Whether an operator removed the node after the address was given.
[[nodiscard]] Result<bool> was_node_removed(const Context& context, const AddressView& held) {
  if (held.node.empty() || !held.block) return false;
  TRY(const auto record, context.store.get(core::removed_node_key(held.node), deadline_of_use_case(context)));
  const auto* removed = record ? std::get_if<core::RemovedNode>(&record->value) : nullptr;
  if (removed == nullptr) return false;
  const auto mark = removed->held.find(held.block->to_string());
  return mark != removed->held.end() && held.sequence_number <= mark->second;
}

/// Whether none of the attachments that may live has an address.
bool is_nobodys(const net::Address& address, const core::audit::LiveAttachments& live) {
  return !live.entries.empty() && live.unreadable.empty() &&
         std::ranges::none_of(live.entries, [&](const CachedAttachment& one) {
           const bool may_have =
               one.addresses.empty() || std::ranges::find(one.addresses, address) != one.addresses.end();
           return one.netns != CachedAttachment::Netns::gone && may_have;
         });
}

[[nodiscard]] Result<HolderLife> ask_for_pod(const AddressView& held, const AllocationOwner& owner,
                                             const LifeKnown& known) {
  const auto pod = known.find_pod(held.namespace_name, held.pod);
  if (!pod && pod.error().code == ErrorCode::permission_denied) {
    return HolderLife{State::unknown, pod.error().message};
  }
  if (!pod) return fail(pod.error());
  core::collect::Facts facts;
  if (*pod) facts.add_pod(**pod);
  facts.set_pods_known();
  facts.freeze();
  const Doubt doubt =
      core::collect::doubt_of_pod(facts, facts.pod(held.namespace_name, held.pod),
                                  {held.address, false, owner.is_static, core::collect::uid_identity(owner.uid)});
  switch (doubt) {
    case Doubt::pod_gone:
      return HolderLife{State::gone, "the cluster has no such pod"};
    case Doubt::pod_evicted:
      return HolderLife{State::gone, "the pod was evicted"};
    case Doubt::pod_replaced:
      return HolderLife{State::gone, "the pod of that name is another one by now"};
    case Doubt::none:
    case Doubt::not_the_pods:  // its second interface may have it
    case Doubt::node_gone:
      return HolderLife{};
  }
  return HolderLife{};
}

}  // namespace

Result<HolderLife> life_of_holder(const Context& context, const AddressView& held, const LifeKnown& known) {
  if (const std::string user = user_of(held.address, known); !user.empty()) return HolderLife{State::lives, user};
  TRY(const bool is_removed, was_node_removed(context, held));
  if (is_removed) return HolderLife{State::gone, fmt::format("node {} was removed", held.node)};
  const core::Attribute attribute{held.handle_id, held.attributes, held.alternate_owner, {}};
  const AllocationOwner owner = core::collect::owner_of_allocation(attribute);
  const auto& live = known.runtime.live;
  const bool is_asked = live && (known.runtime.node.empty() || known.runtime.node == held.node);
  if (core::is_in_quarantine(attribute)) {
    const bool is_free = is_asked && is_nobodys(held.address, *live);
    return is_free ? HolderLife{State::gone, "the runtime knows nobody with it"} : HolderLife{};
  }
  if (is_asked) {
    core::audit::RuntimeComparison comparison(known.runtime, context.clock.now().wall);
    const auto finding = comparison.check(held.address, held.node, attribute, held.sequence_number);
    return finding ? HolderLife{State::gone, finding->what} : HolderLife{};
  }
  if (known.find_pod == nullptr || owner.kind != AllocationOwner::Kind::pod) return HolderLife{};
  return ask_for_pod(held, owner, known);
}

}  // namespace croft::engine
