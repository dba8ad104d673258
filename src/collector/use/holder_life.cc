#include "collector/use/holder_life.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/decide/register_view.h"

namespace croft::engine {
namespace {

using State = HolderLife::State;
using core::collect::AllocationOwner;
using core::collect::Doubt;

/// The pod of a cluster that reports the address: the holder's own, or another.
const core::audit::RunningPod* reporter_of(const AddressView& held, const LifeKnown& known) {
  const auto found = std::ranges::find_if(known.runtime.pods, [&](const core::audit::RunningPod& pod) {
    return std::ranges::find(pod.addresses, held.address) != pod.addresses.end();
  });
  return found == known.runtime.pods.end() ? nullptr : &*found;
}

HolderLife lives_as(const core::audit::RunningPod& pod) {
  return {State::lives,
          fmt::format("is reported by pod {}/{} on node {}", pod.pod.namespace_name, pod.pod.name, pod.node)};
}

/// Whether an operator removed the node after the address was given, and it has not come back.
[[nodiscard]] Result<bool> was_node_removed(const Context& context, const AddressView& held) {
  if (held.node.empty() || !held.block) return false;
  TRY(const auto record, context.store.get(core::removed_node_key(held.node), deadline_of_use_case(context)));
  const auto* removed = record ? record->get_if<core::RemovedNode>() : nullptr;
  if (removed == nullptr) return false;
  const auto mark = removed->held.find(held.block->to_string());
  if (mark == removed->held.end() || mark->second < held.sequence_number) return false;
  // One that claims blocks again has come back, maybe with its containers.
  bool is_back = false;
  const core::AffinityOwner node{core::AffinityOwner::Type::host, held.node};
  TRY_VOID(for_each_affinity(context, core::owned_names_of(node), [&](const core::Affinity&) { is_back = true; }));
  return !is_back;
}

bool is_node_gone(const AddressView& held, const LifeKnown& known) {
  return known.nodes && !held.node.empty() && !known.nodes->has_node(held.node);
}

/// A tunnel's address lives as long as its node.
HolderLife life_of_tunnel(const AddressView& held, const LifeKnown& known) {
  if (!known.nodes || held.node.empty()) return {};
  if (known.nodes->is_tunnel_address(held.address)) return {State::lives, "is a node's tunnel's"};
  if (is_node_gone(held, known)) return {State::gone};
  return {State::lives, fmt::format("is of a tunnel of node {}, which is there", held.node)};
}

[[nodiscard]] Result<HolderLife> life_of_pod(const AddressView& held, const AllocationOwner& owner,
                                             const LifeKnown& known) {
  const auto pod = known.find_pod(held.namespace_name, held.pod);
  if (!pod && pod.error().code == ErrorCode::permission_denied) {
    return HolderLife{State::unknown, pod.error().message};
  }
  if (!pod) return fail(pod.error());
  core::collect::Facts facts = known.nodes ? known.nodes->with_nodes_alone() : core::collect::Facts();
  if (*pod) facts.add_pod(**pod);
  facts.set_pods_known();
  facts.freeze();
  const Doubt doubt = core::collect::doubt_of_pod(
      facts, facts.pod(held.namespace_name, held.pod),
      {held.address, is_node_gone(held, known), owner.is_static, core::collect::uid_identity(owner.uid)});
  switch (doubt) {
    case Doubt::pod_gone:
    case Doubt::pod_evicted:
    case Doubt::pod_replaced:
    case Doubt::node_gone:
      return HolderLife{State::gone};
    case Doubt::none:
      return HolderLife{State::lives, fmt::format("is of pod {}/{}, which is there", held.namespace_name, held.pod)};
    case Doubt::not_the_pods:
      return HolderLife{State::unknown, "its pod is there with another address, and its second interface may have it"};
  }
  return HolderLife{};
}

}  // namespace

Result<HolderLife> life_of_holder(const Context& context, const AddressView& held, const LifeKnown& known) {
  const auto configured = known.configured.find(held.address.unmapped());
  if (configured != known.configured.end()) return HolderLife{State::lives, "is configured on " + configured->second};
  const core::audit::RunningPod* reporter = reporter_of(held, known);
  const bool is_own = reporter != nullptr && reporter->pod.name == held.pod && !held.pod.empty() &&
                      reporter->pod.namespace_name == held.namespace_name;
  if (reporter != nullptr && !is_own) return lives_as(*reporter);
  const core::Attribute attribute{held.handle_id, held.attributes, held.alternate_owner, {}};
  const AllocationOwner owner = core::collect::owner_of_allocation(attribute);
  const auto& live = known.runtime.live;
  const bool is_asked = live && (known.runtime.node.empty() || known.runtime.node == held.node);
  if (is_asked) {
    core::audit::RuntimeComparison comparison(known.runtime, context.clock.now().wall);
    if (comparison.may_live(attribute)) return HolderLife{State::lives, "is of a container in the runtime's cache"};
    // The runtime outweighs what the holder's own pod reports, which may be of a container before.
    if (comparison.check(held.address, held.node, attribute, held.sequence_number)) return HolderLife{State::gone};
  }
  if (is_own) return lives_as(*reporter);
  TRY(const bool is_removed, was_node_removed(context, held));
  if (is_removed) return HolderLife{State::gone};
  if (is_asked) {
    return HolderLife{State::unknown, live->entries.empty()
                                          ? "the runtime's cache has no entry that can be read"
                                          : "the runtime's cache cannot be compared with it, or not yet "
                                            "(--grace-seconds)"};
  }
  if (owner.kind == AllocationOwner::Kind::tunnel) return life_of_tunnel(held, known);
  if (known.find_pod == nullptr || owner.kind != AllocationOwner::Kind::pod) return HolderLife{};
  return life_of_pod(held, owner, known);
}

}  // namespace croft::engine
