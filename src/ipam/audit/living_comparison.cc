#include "ipam/audit/living_comparison.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/counted.h"

namespace croft::core::audit {
namespace {

std::string text_of(const std::map<std::string, std::string>& attributes, const char* key) {
  const auto it = attributes.find(key);
  return it == attributes.end() ? std::string() : it->second;
}

constexpr const char* kMachineKey = "vmi-name";

std::string name_of(const PodIdentity& pod) { return fmt::format("{}/{}", pod.namespace_name, pod.name); }

}  // namespace

LivingComparison::LivingComparison(const Runtime& runtime) : node_(runtime.node) {
  if (runtime.live) {
    for (const CachedAttachment& entry : runtime.live->entries) {
      if (entry.netns != CachedAttachment::Netns::present) continue;
      for (const net::Address& address : entry.addresses) living_.emplace(address, Living{&entry});
    }
  }
  for (const RunningPod& pod : runtime.pods) {
    for (const net::Address& address : pod.addresses) living_.emplace(address, Living{nullptr, &pod});
  }
}

/// Any container of a pod may hold it; a record that says nothing of pods may be the pod's.
bool LivingComparison::is_of(const Living& living, const Attribute& attribute) {
  // A virtual machine's address is that of each pod that runs it.
  if (attribute.secondary.contains(kMachineKey)) return true;
  const std::string pod = text_of(attribute.secondary, kPodKey);
  const std::string name_space = text_of(attribute.secondary, kNamespaceKey);
  if (living.pod != nullptr)
    return pod.empty() || (pod == living.pod->pod.name && name_space == living.pod->pod.namespace_name);
  const CachedAttachment& entry = *living.attachment;
  // Under whatever network and interface: what called Croft, as Multus does, has another name to the runtime.
  if (attribute.handle_id->ends_with("." + entry.owner.container_id)) return true;
  // As Calico named it before 3.0.
  return !entry.pod.name.empty() && attribute.handle_id == entry.pod.namespace_name + "." + entry.pod.name;
}

void LivingComparison::see(const net::Address& address, const Attribute& attribute) {
  const auto [first, last] = living_.equal_range(address);
  for (auto it = first; it != last; ++it) {
    Living& living = it->second;
    if (attribute.cooling) {
      living.cools = true;
      living.holder = holder_text(attribute.cooling->previous_handle, attribute.cooling->previous_secondary);
    } else if (!attribute.handle_id || is_of(living, attribute)) {
      living.holds = true;
    } else {
      living.holder = holder_text(*attribute.handle_id, attribute.secondary);
    }
  }
}

Finding LivingComparison::finding_of(const net::Address& address, const Living& living) {
  const bool is_taken = !living.holder.empty() && !living.cools;
  const std::string now = is_taken       ? fmt::format("the register gives it to {}: two have it", living.holder)
                          : living.cools ? fmt::format("the register has it as released by {}", living.holder)
                                         : "the register has it as free";
  const std::string before = is_taken ? "at once: it has another's address" : "before another one gets the address";
  if (living.pod != nullptr) {
    const RunningPod& one = *living.pod;
    return {Finding::Kind::pod_not_held, address.to_string(),
            fmt::format("pod {} on node {} reports it, and {}", name_of(one.pod), one.node, now),
            fmt::format("delete the pod {}; `croft check --cni-cache` on its node tells whether it lives", before),
            one.pod};
  }
  const CachedAttachment& entry = *living.attachment;
  return {Finding::Kind::not_held, address.to_string(),
          fmt::format("container {} interface {} in network {}{} has it, whose network namespace {} is there, and {}",
                      entry.owner.container_id, entry.owner.interface_name, entry.owner.network,
                      entry.pod.name.empty() ? "" : " for pod " + name_of(entry.pod), entry.netns_path, now),
          fmt::format("{} {}", entry.pod.name.empty() ? "stop the container" : "delete the pod", before), entry.pod};
}

const std::string& LivingComparison::node_of(const Living& living) const {
  return living.pod != nullptr ? living.pod->node : node_;
}

Finding LivingComparison::finding_of(const std::string& node, const NotMoved& some) {
  return {Finding::Kind::node_not_moved,
          node.empty() ? "this node" : "node " + node,
          fmt::format("{} of its pods' addresses, as {}, are of its own range, of which the register has never given "
                      "one: they are addresses of host-local",
                      some.addresses, some.first.to_string()),
          fmt::format("{}move the node (docs/runbooks/migrate.md, From host-local); where Croft gave them, an older "
                      "register was put back (docs/runbooks/restore-kubernetes-api.md)",
                      some.unclaimed ? fmt::format("claim the podCIDR with {} for it (`croft affinity claim`), and ",
                                                   some.unclaimed->to_string())
                                     : ""),
          {}};
}

std::vector<Finding> LivingComparison::findings(const GiverOf& giver_of) const {
  using Told = std::pair<net::Address, const Living*>;
  std::vector<Told> of_cache, of_pods;
  std::set<net::Address> in_cache;
  std::map<std::string, std::map<net::Address, Giver>> not_moved;
  for (const auto& [address, living] : living_) {
    if (living.holds) continue;
    const Giver giver = giver_of(address, node_of(living));
    if (giver == Giver::unknown) continue;
    // An address that somebody else holds, or held a moment ago, was given here.
    if (giver != Giver::here && living.holder.empty()) {
      not_moved[node_of(living)].emplace(address, giver);
      continue;
    }
    (living.pod == nullptr ? of_cache : of_pods).emplace_back(address, &living);
    if (living.pod == nullptr) in_cache.insert(address);
  }
  // The runtime knows more of it.
  std::erase_if(of_pods, [&](const Told& one) { return in_cache.contains(one.first); });
  for (auto* some : {&of_cache, &of_pods}) {
    std::sort(some->begin(), some->end(), [](const Told& a, const Told& b) { return a.first < b.first; });
  }
  std::vector<Finding> all;
  for (const auto& [node, addresses] : not_moved) {
    NotMoved some{addresses.size(), addresses.begin()->first, {}};
    const auto unclaimed = std::ranges::find(addresses, Giver::unclaimed, [](const auto& one) { return one.second; });
    if (unclaimed != addresses.end()) some.unclaimed = unclaimed->first;
    all.push_back(finding_of(node, some));
  }
  // The cache of the runtime and that of Multus have a container each.
  std::set<std::pair<net::Address, std::string>> told;
  for (const auto& [address, living] : of_cache) {
    if (!told.emplace(address, living->attachment->owner.container_id).second) continue;
    all.push_back(finding_of(address, *living));
  }
  // Those that two have come first.
  std::stable_partition(of_pods.begin(), of_pods.end(),
                        [](const Told& one) { return !one.second->holder.empty() && !one.second->cools; });
  const std::size_t named = std::min(of_pods.size(), kPodsNamedMax);
  for (std::size_t i = 0; i < named; ++i) all.push_back(finding_of(of_pods[i].first, *of_pods[i].second));
  if (named < of_pods.size()) {
    all.push_back({Finding::Kind::pod_not_held,
                   "pods",
                   counted_as(of_pods.size() - named, "more address of a running pod is not held by it",
                              "more addresses of running pods are not held by them"),
                   "an older register may have been put back: docs/runbooks/restore-kubernetes-api.md has the order of "
                   "what to do",
                   {}});
  }
  return all;
}

}  // namespace croft::core::audit
