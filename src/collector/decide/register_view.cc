#include "collector/decide/register_view.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "base/letters.h"
#include "base/planted.h"
#include "register/owner.h"

namespace croft::core::collect {

namespace {

constexpr const char* kTypeKey = "type";
constexpr std::string_view kTunnelSuffix = "TunnelAddress";
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

std::uint32_t line_of(const AllocationOwner& owner) {
  const std::string both = std::string(owner.network) + '\0' + std::string(owner.interface_name);
  return static_cast<std::uint32_t>(std::hash<std::string>{}(both));
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
  if (type.ends_with(kTunnelSuffix)) {
    owner.kind = AllocationOwner::Kind::tunnel;
  } else if (!owner.namespace_name.empty() && !owner.pod.empty()) {
    owner.kind = AllocationOwner::Kind::pod;
  }
  return owner;
}

std::string_view name_of(Doubt doubt) {
  constexpr std::array<std::string_view, 6> kNames = {"none",         "pod_gone",     "pod_evicted",
                                                      "pod_replaced", "not_the_pods", "node_gone"};
  return kNames[static_cast<std::size_t>(doubt)];
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

std::uint64_t handle_identity(const std::string& handle_id) { return std::hash<std::string>{}(handle_id); }

RegisterView::RegisterView() : nodes_{""}, node_numbers_{{"", kNoNode}} {}

std::uint32_t RegisterView::node_number(std::string_view name) {
  const auto [it, is_new] = node_numbers_.emplace(name, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.emplace_back(name);
  return it->second;
}

void RegisterView::add_block(const Block& block, const Cooldowns& cooldowns, const Instant& now) {
  CROFT_ASSERT(handles_.empty());  // blocks come before handles
  BlockRow row;
  row.cidr = block.cidr;
  row.sequence = block.sequence_number;
  if (block.affinity) {
    row.owner_type = block.affinity->type;
    row.owner = node_number(block.affinity->name);
  }
  const auto block_number = static_cast<std::uint32_t>(blocks_.size());
  std::vector<std::optional<HeldRow>> by_attribute;  // the same for all ordinals of an attribute
  by_attribute.reserve(block.attributes.size());
  row.empty = true;
  for (const Attribute& attribute : block.attributes) {
    auto& held = by_attribute.emplace_back();
    if (attribute.cooling) {
      const bool ended = cooldown_ended(*attribute.cooling, cooldowns.of(*attribute.cooling), now);
      row.has_cooled |= ended;
      row.empty &= ended;
      continue;
    }
    const AllocationOwner owner = owner_of_allocation(attribute);
    held.emplace();
    held->kind = owner.kind;
    held->is_static = owner.is_static;
    held->uid = uid_identity(owner.uid);
    held->node = node_number(owner.node);
    held->block = block_number;
    if (owner.kind == AllocationOwner::Kind::pod) held->pod = pod_identity(owner.namespace_name, owner.pod);
    if (attribute.handle_id) held->handle = handle_identity(*attribute.handle_id);
    held->line = line_of(owner);
  }
  const std::size_t held_before = held_.size();
  for (std::uint32_t ordinal = 0; ordinal < block.allocations.size(); ++ordinal) {
    const auto index = block.allocations[ordinal];
    if (!index || !by_attribute[*index]) continue;
    HeldRow& held = held_.emplace_back(*by_attribute[*index]);
    held.ordinal = static_cast<std::uint16_t>(ordinal);
    held.sequence = sequence_of(block, net::Ordinal(ordinal));
    if (held.kind == AllocationOwner::Kind::pod) ++pod_count_;
  }
  // Windows' own entries leave a block empty; is_empty knows.
  row.empty &= held_.size() == held_before || is_empty(block);
  block_numbers_[block.cidr] = block_number;
  blocks_.push_back(row);
}

void RegisterView::add_affinity(const Affinity& affinity) {
  static_cast<void>(node_number(affinity.owner.name));
  affinities_.push_back(affinity);
  affinities_.back().rest.reset();
}

void RegisterView::add_handle(const std::string& id) {
  if (handles_.empty()) {
    handles_.reserve(held_.size() + 1);
    handles_.push_back(0);  // never again empty
    for (const HeldRow& row : held_) handles_.push_back(row.handle);
    std::ranges::sort(handles_);
  }
  if (std::ranges::binary_search(handles_, handle_identity(id))) return;
  if (stray_handles_.size() < kStrayHandlesMax) stray_handles_.push_back(id);
}

void RegisterView::add_removed(const RemovedNode& removed) {
  const auto node = node_numbers_.find(removed.node);
  if (node == node_numbers_.end()) return;
  for (const auto& [text, sequence] : removed.held) {
    const auto cidr = net::Prefix::parse(text);
    const auto block = cidr ? block_numbers_.find(*cidr) : block_numbers_.end();
    if (block != block_numbers_.end()) removed_[{node->second, block->second}] = sequence;
  }
}

bool RegisterView::is_of_removed_node(const HeldRow& row) const {
  const auto it = removed_.find({row.node, row.block});
  return it != removed_.end() && row.sequence <= it->second;
}

const BlockRow* RegisterView::block(const net::Prefix& cidr) const {
  const auto it = block_numbers_.find(cidr);
  return it == block_numbers_.end() ? nullptr : &blocks_[it->second];
}

}  // namespace croft::core::collect
