#include "collector/decide/evidence.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/time_text.h"
#include "collector/decide/allocation_owner.h"
#include "collector/decide/judge.h"
#include "register/records.h"

namespace croft::core::collect {
namespace {

Sighting sighting_of(const Instant& now) { return {now.since_boot, now.wall}; }

std::string absent_node(std::string_view node, const Facts& facts, Leak::NodeEnd end) {
  return fmt::format("node {} is not among {} nodes, {}", node, facts.node_count(),
                     end == Leak::NodeEnd::removed ? "and was removed by hand" : "and was in an earlier list");
}

/// How many addresses of a pod an evidence names; no pod has more in practice.
constexpr std::size_t kAddressesNamed = 8;

std::string addresses_text(std::span<const net::Address> addresses) {
  std::string text;
  for (std::size_t i = 0; i < addresses.size() && i < kAddressesNamed; ++i) {
    text += (i == 0 ? "" : ", ") + addresses[i].to_string();
  }
  return addresses.size() > kAddressesNamed ? text + ", …" : text;
}

std::string pod_fact(const AllocationOwner& owner, const Facts::Pod& pod, const Facts& facts) {
  const std::string name = fmt::format("pod {}/{}", owner.namespace_name, owner.pod);
  if (pod.answer == Facts::Pod::Answer::absent) {
    return fmt::format("{} is not among {} pods", name, facts.pod_count());
  }
  if (pod.evicted) return name + " was evicted";
  const std::uint64_t uid = uid_identity(owner.uid);
  if (uid != 0 && pod.uid != 0 && uid != pod.uid) {
    return name + " is another one by now: its UID is not the one recorded";
  }
  if (pod.addresses.empty()) return fmt::format("{} has no address and is bound to no node that exists", name);
  return fmt::format("{} has the addresses {} and not this one", name, addresses_text(pod.addresses));
}

}  // namespace

std::string_view name_of(Evidence::What what) {
  switch (what) {
    case Evidence::What::address:
      return "address";
    case Evidence::What::block:
      return "block";
    case Evidence::What::affinity:
      return "affinity";
    case Evidence::What::handle:
      return "handle";
  }
  return "unknown";
}

std::string to_string(const Evidence& evidence) {
  std::string text =
      fmt::format("{} {}: {}, since {}, seen again {}", name_of(evidence.what), evidence.subject, evidence.reason,
                  rfc3339_rounded_up(evidence.first_look.wall), rfc3339_rounded_up(evidence.last_look.wall));
  if (!evidence.uid.empty()) text += ", pod UID " + evidence.uid;
  if (!evidence.handle.empty()) text += ", handle " + evidence.handle;
  if (evidence.sequence.value != 0) text += fmt::format(", sequence {}", evidence.sequence.value);
  for (const std::string& fact : evidence.facts) text += "; " + fact;
  return text;
}

std::optional<Evidence> prove(const Leak& leak, const Block& block, const Facts& facts, const Instant& now) {
  const auto ordinal = net::ordinal_of(block.cidr, leak.address);
  if (!ordinal || state_of(block, *ordinal) != AddressState::held) return {};
  const Attribute& attribute = *attribute_of(block, *ordinal);
  if (!attribute.handle_id || handle_identity(*attribute.handle_id) != leak.handle) return {};
  if (sequence_of(block, *ordinal) != leak.sequence) return {};

  const AllocationOwner owner = owner_of_allocation(attribute);
  const bool node_gone =
      leak.node_end != Leak::NodeEnd::none && !owner.node.empty() && !facts.has_node(std::string(owner.node));
  Evidence evidence;
  Doubt doubt = Doubt::none;
  if (owner.kind == AllocationOwner::Kind::tunnel) {
    if (node_gone && !facts.is_tunnel_address(leak.address)) doubt = Doubt::node_gone;
  } else if (owner.kind == AllocationOwner::Kind::pod) {
    const Facts::Pod pod = facts.pod(owner.namespace_name, owner.pod);
    doubt = doubt_of_pod(facts, pod, {leak.address, node_gone, owner.is_static, uid_identity(owner.uid)});
    evidence.facts.push_back(facts.pods_known() ? pod_fact(owner, pod, facts) : "pods are not known");
  }
  if (doubt == Doubt::none) return {};
  if (node_gone) evidence.facts.push_back(absent_node(owner.node, facts, leak.node_end));
  evidence.subject = leak.address.to_string();
  evidence.reason = name_of(doubt);
  evidence.handle = *attribute.handle_id;
  evidence.node = owner.node;
  evidence.namespace_name = owner.namespace_name;
  evidence.pod = owner.pod;
  evidence.uid = owner.uid;
  evidence.sequence = leak.sequence;
  evidence.first_look = leak.first;
  evidence.last_look = sighting_of(now);
  return evidence;
}

bool is_confirmed(const Evidence& by_list, const Leak& leak, const Block& block, const Facts& facts, const Facts& asked,
                  const Instant& now) {
  const auto again = prove(leak, block, asked, now);
  if (!again) return false;
  const std::string_view node_gone = name_of(Doubt::node_gone), not_the_pods = name_of(Doubt::not_the_pods);
  if ((again->reason == node_gone) != (by_list.reason == node_gone)) return false;
  if (again->reason != not_the_pods) return true;
  // That it holds this one no more was concluded from the others that it had.
  const auto before = facts.pod(by_list.namespace_name, by_list.pod).addresses;
  return by_list.reason == not_the_pods &&
         std::ranges::equal(before, asked.pod(by_list.namespace_name, by_list.pod).addresses);
}

bool is_left_out(const Evidence& by_list, const PodFact& pod) {
  if (by_list.reason != name_of(Doubt::pod_gone)) return false;
  if (!by_list.uid.empty() && by_list.uid == pod.uid) return true;
  const auto address = net::Address::parse(by_list.subject);
  return address && std::ranges::find(pod.addresses, *address) != pod.addresses.end();
}

Evidence evidence_of(const BlockToRelease& block, const Facts& facts, const Instant& now) {
  Evidence evidence;
  evidence.what = Evidence::What::block;
  evidence.subject = block.release.cidr.to_string();
  evidence.reason = block.node_gone ? "node_gone" : "surplus";
  evidence.node = block.release.owner.name;
  if (block.release.sequence_number) evidence.sequence = *block.release.sequence_number;
  evidence.first_look = block.first;
  evidence.last_look = sighting_of(now);
  evidence.facts.push_back("it holds no address");
  evidence.facts.push_back(block.node_gone ? absent_node(block.release.owner.name, facts, Leak::NodeEnd::listed)
                                           : "its node has another block of the family");
  return evidence;
}

Evidence evidence_of(const StrayAffinity& affinity, const Instant& now) {
  Evidence evidence;
  evidence.what = Evidence::What::affinity;
  evidence.subject = affinity_key(affinity.affinity.owner, affinity.affinity.cidr).name;
  evidence.reason = "stray_affinity";
  evidence.node = affinity.affinity.owner.name;
  evidence.first_look = affinity.first;
  evidence.last_look = sighting_of(now);
  evidence.facts.push_back("its block does not exist or belongs to another");
  return evidence;
}

Evidence evidence_of(const StrayHandle& handle, const Instant& now) {
  Evidence evidence;
  evidence.what = Evidence::What::handle;
  evidence.subject = handle.id;
  evidence.reason = "stray_handle";
  evidence.handle = handle.id;
  evidence.first_look = handle.first;
  evidence.last_look = sighting_of(now);
  evidence.facts.push_back("no block holds an address of it");
  return evidence;
}

}  // namespace croft::core::collect
