#include "collector/decide/allocation_owner.h"

#include <algorithm>
#include <string>

#include "base/planted.h"
#include "register/names.h"
#include "register/owner.h"

namespace croft::core::collect {
namespace {

constexpr const char* kTypeKey = "type";
constexpr std::string_view kTunnelSuffix = "TunnelAddress";
/// As earlier versions kept an address that somebody unknown lived with on a node.
constexpr std::string_view kQuarantined = "quarantined";
/// Keys that only an allocation of a virtual machine has.
constexpr const char* kMachineKeys[] = {"vmi-name", "vmi-uid", "vm-uid", "vmim-uid"};

std::string_view text_of(const Attribute& attribute, const char* key) {
  const auto it = attribute.secondary.find(key);
  return it == attribute.secondary.end() ? std::string_view() : std::string_view(it->second);
}

bool is_machine(const Attribute& attribute) {
  return !attribute.alternate_owner.empty() ||
         std::ranges::any_of(kMachineKeys, [&](const char* key) { return attribute.secondary.contains(key); });
}

/// A kubelet makes the UID of a pod that it read from a file out of the file: 32 hexadecimal digits. An API server's
/// has dashes.
bool is_uid_of_file(std::string_view uid) {
  constexpr std::size_t kDigits = 32;
  return uid.size() == kDigits && uid.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

AllocationOwner owner_of_allocation(const Attribute& attribute) {
  AllocationOwner owner;
  if (!attribute.handle_id || equals_ignoring_case(*attribute.handle_id, kWindowsReservedHandle)) return owner;
  owner.node = text_of(attribute, kNodeKey);
  owner.namespace_name = text_of(attribute, kNamespaceKey);
  owner.pod = text_of(attribute, kPodKey);
  owner.uid = text_of(attribute, kPodUidKey);
  owner.is_static = is_uid_of_file(owner.uid);
  owner.network = text_of(attribute, kNetworkKey);
  // Written where the handle alone does not tell (register/owner.h).
  if (owner.network.empty()) {
    owner.network = std::string_view(*attribute.handle_id).substr(0, attribute.handle_id->find_last_of('.'));
  }
  owner.interface_name = text_of(attribute, kInterfaceKey);
  if (is_machine(attribute)) return owner;
  const std::string_view type = text_of(attribute, kTypeKey);
  if (type.ends_with(kTunnelSuffix) || type == kQuarantined) {
    owner.kind = AllocationOwner::Kind::tunnel;
  } else if (!owner.namespace_name.empty() && !owner.pod.empty()) {
    owner.kind = AllocationOwner::Kind::pod;
  }
  return owner;
}

std::string_view name_of(Doubt doubt) {
  switch (doubt) {
    case Doubt::none:
      return "none";
    case Doubt::pod_gone:
      return "pod_gone";
    case Doubt::pod_evicted:
      return "pod_evicted";
    case Doubt::pod_replaced:
      return "pod_replaced";
    case Doubt::not_the_pods:
      return "not_the_pods";
    case Doubt::node_gone:
      return "node_gone";
  }
  return "unknown";
}

Doubt doubt_of_pod(const Facts& facts, const Facts::Pod& pod, const HeldForPod& held) {
  using Answer = Facts::Pod::Answer;
  const auto doubted = [&](Doubt doubt) { return held.node_gone ? Doubt::node_gone : doubt; };
  // A node that was deleted and came back may use as its tunnel's what the register still has for a pod (#3589).
  if (facts.is_tunnel_address(held.address)) return Doubt::none;
  if (!facts.pods_known()) return doubted(Doubt::none);
  if (pod.answer == Answer::unsure) return Doubt::none;
  if (held.is_static && !held.node_gone) return Doubt::none;
  if (pod.answer == Answer::absent) return doubted(Doubt::pod_gone);
  if (pod.evicted) return doubted(Doubt::pod_evicted);
  if (pod.has_unreadable_address) return Doubt::none;
  if (std::ranges::find(pod.addresses, held.address.unmapped()) != pod.addresses.end()) return Doubt::none;
  if (held.uid != 0 && pod.uid != 0 && held.uid != pod.uid) return doubted(Doubt::pod_replaced);
  if (pod.addresses.empty() && is_planted("pending_taken_as_dead")) return Doubt::pod_gone;
  if (pod.addresses.empty()) {
    // It may be this ADD that is under way; not so when its node is gone and it runs nowhere (#9618).
    return held.node_gone && !pod.on_existing_node ? Doubt::node_gone : Doubt::none;
  }
  return doubted(Doubt::not_the_pods);
}

}  // namespace croft::core::collect
