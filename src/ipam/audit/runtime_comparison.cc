#include "ipam/audit/runtime_comparison.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "ipam/decide/assign.h"
#include "register/records.h"

namespace croft::core::audit {

namespace {

using Netns = RuntimeAttachment::Netns;

/// Whether a file named `<network>-<container>-<interface>` may be of `<network>.<container>`.
bool may_be_about(const std::string& name, const std::string& handle_id, const std::string& interface_name) {
  if (name.size() <= handle_id.size() || name[handle_id.size()] != '-') return false;
  if (!interface_name.empty() && name.substr(handle_id.size() + 1) != interface_name) return false;
  for (std::size_t dot = handle_id.find('.'); dot != handle_id.npos; dot = handle_id.find('.', dot + 1)) {
    std::string dashed = handle_id;
    dashed[dot] = '-';
    if (name.starts_with(dashed)) return true;
  }
  return false;
}

/// The same, of any network and interface of a container.
bool may_be_of_container(const std::string& name, const std::string& container_id) {
  return name.find("-" + container_id + "-") != name.npos;
}

std::string words_of(const PodIdentity& pod) {
  if (pod.name.empty()) return {};
  return fmt::format(" for pod {}/{}{}", pod.namespace_name, pod.name, pod.uid.empty() ? "" : " (UID " + pod.uid + ")");
}

constexpr const char* kMachineKey = "vmi-name";

std::string name_of(const PodIdentity& pod) { return fmt::format("{}/{}", pod.namespace_name, pod.name); }

constexpr std::size_t kUnreadableNamedMax = 10;

/// A look that told nothing of them would hide whom they are about.
void note_unreadable(const std::vector<UnreadableEntry>& entries, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < std::min(entries.size(), kUnreadableNamedMax); ++i) {
    findings.push_back(found("cache_unreadable", entries[i].name, entries[i].what));
  }
  if (entries.size() <= kUnreadableNamedMax) return;
  findings.push_back(found("cache_unreadable.more", entries.size() - kUnreadableNamedMax));
}

}  // namespace

std::string release_command(const net::Address& address, const std::string& handle_id, SequenceNumber sequence,
                            const std::string& asked_with) {
  return fmt::format("croft ip release {} --handle {} --sequence {}{}", address, in_shell_quotes_if_needed(handle_id),
                     sequence.value, asked_with);
}

RuntimeComparison::RuntimeComparison(const Runtime& runtime, WallTime now)
    : live_(runtime.live), grace_(runtime.grace), node_(runtime.node), asked_with_(runtime.asked_with), now_(now) {
  for (const RunningPod& pod : runtime.pods) {
    for (const net::Address& address : pod.addresses) reported_.emplace(address, &pod.pod);
  }
  if (!live_) return;
  for (const RuntimeAttachment& entry : live_->entries) {
    by_handle_.emplace(handle_of(entry.owner), &entry);
    by_container_.emplace(entry.owner.container_id, &entry);
  }
}

RuntimeComparison::Known RuntimeComparison::known(const std::string& handle_id, const Owner& owner) const {
  const std::string& interface_name = owner.interface_name;
  Known result = known_in(by_handle_, handle_id, interface_name);
  if (result.may_live) return result;
  const bool is_told = result.entry != nullptr;
  // By its container, whatever the network.
  if (const Known other = known_in(by_container_, owner.container_id, ""); other.may_live || !is_told) result = other;
  if (is_told || result.may_live) return result;
  result.may_live = std::any_of(live_->unreadable.begin(), live_->unreadable.end(), [&](const UnreadableEntry& entry) {
    return may_be_about(entry.name, handle_id, interface_name) || may_be_of_container(entry.name, owner.container_id);
  });
  return result;
}

RuntimeComparison::Known RuntimeComparison::known_in(const Entries& entries, const std::string& key,
                                                     const std::string& interface_name) {
  Known result;
  const auto [first, last] = entries.equal_range(key);
  for (auto it = first; it != last; ++it) {
    const RuntimeAttachment& entry = *it->second;
    if (!interface_name.empty() && entry.owner.interface_name != interface_name) continue;
    if (result.entry == nullptr || entry.netns == Netns::present) result.entry = &entry;
    result.may_live |= entry.netns != Netns::gone;
  }
  return result;
}

bool RuntimeComparison::may_live(const Attribute& attribute) const {
  const auto owner = attribute.handle_id ? owner_of(*attribute.handle_id, attribute.secondary) : std::nullopt;
  return live_ && owner && known(*attribute.handle_id, *owner).may_live;
}

std::optional<Finding> RuntimeComparison::check(const net::Address& address, const std::string& node,
                                                const Attribute& attribute, SequenceNumber sequence) {
  if (!live_ || (!node_.empty() && node != node_)) return std::nullopt;
  if (live_->entries.empty()) {
    ++not_compared_;
    return std::nullopt;
  }
  const auto owner = owner_of(*attribute.handle_id, attribute.secondary);
  if (!owner) return std::nullopt;
  const Known runtime = known(*attribute.handle_id, *owner);
  const PodIdentity pod = pod_of(attribute.secondary);
  if (runtime.may_live) {
    if (runtime.entry == nullptr || pod.name.empty()) return std::nullopt;
    claims_[{owner->network, pod.namespace_name, pod.name, pod.uid, owner->interface_name, address.family()}].emplace(
        owner->container_id, Holding{address, runtime.entry->netns == Netns::present});
    return std::nullopt;
  }
  const auto [first, last] = reported_.equal_range(address);
  const bool is_anothers = std::any_of(first, last, [&](const auto& one) {
    return one.second->name != pod.name || one.second->namespace_name != pod.namespace_name;
  });
  if (is_anothers) return std::nullopt;
  const auto since = parse_go_utc_text(member_of(attribute.secondary, kTimestampKey));
  if (since && *since <= now_ && now_ - *since < grace_) return std::nullopt;
  const std::string why = runtime.entry == nullptr
                              ? "which the runtime does not know"
                              : fmt::format("whose network namespace {} is gone", runtime.entry->netns_path);
  Finding finding =
      found("not_attached", address, since ? rfc3339_rounded_up(*since) : "an unknown time", owner->container_id,
            owner->interface_name.empty() ? "?" : owner->interface_name, owner->network, words_of(pod), why,
            release_command(address, *attribute.handle_id, sequence, asked_with_));
  finding.pod = pod;
  return finding;
}

/// A pod has one sandbox at a time, but for the moment in which one takes the other's place.
std::vector<Finding> RuntimeComparison::findings_together() const {
  std::vector<Finding> findings;
  for (const auto& [claim, holders] : claims_) {
    if (holders.size() < 2) continue;
    std::string text;
    bool all_there = true;
    for (const auto& [container, holding] : holders) {
      text += fmt::format("{}container {} holds {}", text.empty() ? "" : ", ", container, holding.address);
      all_there = all_there && holding.is_there;
    }
    findings.push_back(all_there ? found("pod_twice", claim.namespace_name, claim.pod, claim.network, text)
                                 : found("pod_twice.unclear", claim.namespace_name, claim.pod, claim.network, text));
    findings.back().pod = {claim.pod, claim.namespace_name, claim.uid};
  }
  if (live_) note_unreadable(live_->unreadable, findings);
  if (not_compared_ == 0) return findings;
  findings.push_back(found("cache_empty", counted_as(not_compared_, "address is held: that proves nothing about it",
                                                     "addresses are held: that proves nothing about them")));
  return findings;
}

LivingComparison::LivingComparison(const Runtime& runtime) : node_(runtime.node) {
  if (runtime.live) {
    for (const RuntimeAttachment& entry : runtime.live->entries) {
      if (entry.netns != RuntimeAttachment::Netns::present) continue;
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
  const PodIdentity pod = pod_of(attribute.secondary);
  if (living.pod != nullptr) {
    return pod.name.empty() ||
           (pod.name == living.pod->pod.name && pod.namespace_name == living.pod->pod.namespace_name);
  }
  const RuntimeAttachment& entry = *living.attachment;
  // Under whatever network and interface: what called Croft, as Multus does, has another name to the runtime.
  return attribute.handle_id->ends_with("." + entry.owner.container_id);
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
    Finding finding = found("pod_not_held", address, name_of(one.pod), one.node, now, before);
    finding.pod = one.pod;
    return finding;
  }
  const RuntimeAttachment& entry = *living.attachment;
  const bool is_pod = !entry.pod.name.empty();
  Finding finding = found("not_held", address, entry.owner.container_id, entry.owner.interface_name,
                          entry.owner.network, is_pod ? " for pod " + name_of(entry.pod) : "", entry.netns_path, now,
                          is_pod ? "delete the pod" : "stop the container", before);
  finding.pod = entry.pod;
  return finding;
}

const std::string& LivingComparison::node_of(const Living& living) const {
  return living.pod != nullptr ? living.pod->node : node_;
}

Finding LivingComparison::finding_of(const std::string& node, const NotMoved& some) {
  return found("node_not_moved", node.empty() ? "this node" : "node " + node, some.addresses, some.first,
               some.unclaimed
                   ? fmt::format("claim the podCIDR with {} for it (`croft affinity claim`), and ", *some.unclaimed)
                   : "");
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
  std::ranges::sort(of_cache, {}, &Told::first);
  std::ranges::sort(of_pods, {}, &Told::first);
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
    all.push_back(
        found("pod_not_held.more", counted_as(of_pods.size() - named, "more address of a running pod is not held by it",
                                              "more addresses of running pods are not held by them")));
  }
  return all;
}

namespace {

using Addresses = std::vector<net::Address>;

bool contains(const Addresses& addresses, const net::Address& address) {
  return std::ranges::find(addresses, address) != addresses.end();
}

std::string words_of(const Owner& owner) {
  return fmt::format("container {} interface {} in network {}", owner.container_id, owner.interface_name,
                     owner.network);
}

/// An error that keeps every node from new addresses alike, and that no node can mend: no room, or a damaged record.
bool is_of_the_register(ErrorCode code) {
  return code == ErrorCode::exhausted || code == ErrorCode::corrupt || code == ErrorCode::newer_version;
}

bool is_young(const Attribute& holder, const Instant& now) {
  const auto since = parse_go_utc_text(member_of(holder.secondary, kTimestampKey));
  // A time in the future was written before the clock was set back: its age is unknown.
  return !since || *since > now.wall || now.wall - *since < kCollectAgeMin;
}

bool is_under(const Authority& authority, const Attribute& holder, const Owner& owner) {
  const auto node = holder.secondary.find(kNodeKey);
  return owner.network == authority.network && node != holder.secondary.end() && node->second == authority.node;
}

/// A holder without interface is valid with any of its container.
bool is_valid(const GcAttachments& valid, const Owner& owner) {
  if (!owner.interface_name.empty()) return valid.contains({owner.container_id, owner.interface_name});
  const auto any = valid.lower_bound({owner.container_id, ""});
  return any != valid.end() && any->first == owner.container_id;
}

}  // namespace

Step<Addresses> held_addresses(const Snapshot& snapshot, const Owner& owner) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Addresses>> {
    const Handle* handle = reader.get(handle_key(handle_of(owner)));
    TRY_VOID(reader.ready());
    Addresses held;
    if (handle == nullptr) return Plan<Addresses>{};
    for (const auto& [cidr, count, name] : blocks_of(*handle)) {
      const Block* block = reader.get(block_key(cidr));
      if (block == nullptr) continue;
      for (const net::Ordinal ordinal : held_by(*block, owner)) held.push_back(net::address_at(cidr, ordinal));
    }
    std::sort(held.begin(), held.end());
    return Plan<Addresses>{std::move(held), {}};
  });
}

Result<void> check_attachment(const Owner& owner, const Addresses& held, const Addresses& expected,
                              const std::vector<Pool>& pools) {
  if (held.empty()) return fail(ErrorCode::not_found, "no address is recorded for {}", words_of(owner));
  if (expected.empty()) return {};
  for (const net::Address& address : expected) {
    const bool ours = std::any_of(pools.begin(), pools.end(), [&](const auto& p) { return p.cidr.contains(address); });
    if (ours && !contains(held, address)) {
      return fail(ErrorCode::not_found, "{} is in prevResult but not recorded for {}", address, words_of(owner));
    }
  }
  for (const net::Address& address : held) {
    if (!contains(expected, address)) {
      return fail(ErrorCode::not_found, "{} is recorded for {} but not in prevResult", address, words_of(owner));
    }
  }
  return {};
}

Step<AssignAnswer> try_assign(const Snapshot& snapshot, const StatusRequest& request, const Instant& now) {
  AssignRequest probe;
  // An owner that cannot exist: it is never committed.
  probe.owner = {"status", "probe", "status"};
  probe.node = request.node;
  probe.count = {request.wanted.v4 ? 1U : 0U, request.wanted.v6 ? 1U : 0U};
  probe.pools = request.pools;
  probe.for_some_pod = true;
  auto step = plan_assign(snapshot, probe, now);
  if (auto* plan = std::get_if<Plan<AssignAnswer>>(&step)) plan->writes.clear();
  return step;
}

std::optional<Error> why_not_ready(const AssignAnswer& answer, bool fail_when_full) {
  const auto* refusal = std::get_if<Refusal>(&answer);
  if (refusal == nullptr) return std::nullopt;
  // An operator's `croft pool disable` is no fault of any node.
  const bool are_all_disabled =
      refusal->code == ErrorCode::refused_by_configuration && refusal->cause == RefusalCause::no_pool_enabled;
  if ((is_of_the_register(refusal->code) || are_all_disabled) && !fail_when_full) return std::nullopt;
  return to_error(*refusal);
}

void add_garbage(const Block& block, const Authority& authority, const GcAttachments& valid, const Instant& now,
                 Garbage& garbage) {
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    const net::Ordinal ordinal(i);
    const Attribute* holder = attribute_of(block, ordinal);
    if (holder == nullptr || !holder->handle_id) continue;
    const auto owner = owner_of(*holder->handle_id, holder->secondary);
    if (!owner || !is_under(authority, *holder, *owner) || is_valid(valid, *owner)) continue;
    if (is_young(*holder, now)) {
      ++garbage.kept_young;
    } else {
      garbage.leaked.push_back(
          {net::address_at(block.cidr, ordinal), holder->handle_id, sequence_of(block, ordinal), block.cidr});
    }
  }
}

}  // namespace croft::core::audit
