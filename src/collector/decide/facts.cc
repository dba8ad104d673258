#include "collector/decide/facts.h"

#include <algorithm>

#include "base/assert.h"

namespace croft::core::collect {

std::uint64_t pod_identity(std::string_view namespace_name, std::string_view name) {
  // Mixed in between (splitmix64), so that ("a", "b") and ("b", "a") differ.
  std::uint64_t z = std::hash<std::string_view>{}(namespace_name) + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (z ^ (z >> 31)) ^ std::hash<std::string_view>{}(name);
}

Facts Facts::with_nodes_alone() const {
  Facts alone;
  alone.taken_at = taken_at;
  alone.complete = complete;
  alone.nodes_ = nodes_;
  alone.tunnels_ = tunnels_;
  return alone;
}

void Facts::add_node(const NodeFact& node) {
  nodes_.insert(node.name);
  for (const net::Address& address : node.tunnel_addresses) tunnels_.insert(address.unmapped());
}

void Facts::add_nodes_of(const Facts& other) {
  nodes_.insert(other.nodes_.begin(), other.nodes_.end());
  tunnels_.insert(other.tunnels_.begin(), other.tunnels_.end());
}

std::uint64_t uid_identity(std::string_view uid) { return uid.empty() ? 0 : std::hash<std::string_view>{}(uid); }

void Facts::add_pod(const PodFact& pod) {
  CROFT_ASSERT(!frozen_);
  CROFT_ASSERT(pod.namespace_name.size() <= kPodNameBytesMax && pod.name.size() <= kPodNameBytesMax);
  CROFT_ASSERT(pod.addresses.size() <= kPodAddressesMax);
  Packed packed;
  packed.identity = pod_identity(pod.namespace_name, pod.name);
  packed.name_at = text_.size();
  packed.namespace_bytes = static_cast<std::uint16_t>(pod.namespace_name.size());
  packed.name_bytes = static_cast<std::uint16_t>(pod.name.size());
  text_ += pod.namespace_name;
  text_ += pod.name;
  packed.addresses_at = addresses_.size();
  packed.address_count = static_cast<std::uint16_t>(pod.addresses.size());
  for (const net::Address& address : pod.addresses) addresses_.push_back(address.unmapped());
  packed.ended = pod.phase == "Succeeded" || pod.phase == "Failed";
  packed.evicted = pod.phase == "Failed" && pod.reason == "Evicted";
  packed.has_unreadable_address = pod.has_unreadable_address;
  packed.uid = pod.is_mirror ? 0 : uid_identity(pod.uid);
  if (!pod.node.empty()) {
    ++bound_pods_;
    const auto [it, is_new] = node_numbers_.emplace(pod.node, static_cast<std::uint32_t>(node_names_.size()));
    if (is_new) node_names_.push_back(pod.node);
    packed.node = it->second;
  }
  pods_.push_back(packed);
}

void Facts::freeze() {
  std::ranges::sort(pods_, {}, &Packed::identity);
  frozen_ = true;
}

std::span<const Facts::Packed> Facts::with_identity(std::uint64_t identity) const {
  CROFT_ASSERT(frozen_);
  const auto found = std::ranges::equal_range(pods_, identity, {}, &Packed::identity);
  return {found.begin(), found.end()};
}

Facts::Pod Facts::unpacked(const Packed& packed) const {
  Pod pod;
  pod.answer = Pod::Answer::found;
  pod.evicted = packed.evicted;
  pod.ended = packed.ended;
  pod.has_unreadable_address = packed.has_unreadable_address;
  pod.uid = packed.uid;
  if (packed.node != kNoNode) {
    pod.node = node_names_[packed.node];
    pod.on_existing_node = has_node(node_names_[packed.node]);
  }
  pod.addresses = std::span(addresses_).subspan(packed.addresses_at, packed.address_count);
  return pod;
}

Facts::Pod Facts::pod(std::string_view namespace_name, std::string_view name) const {
  const std::string_view text = text_;
  const Packed* match = nullptr;
  for (const Packed& packed : with_identity(pod_identity(namespace_name, name))) {
    if (text.substr(packed.name_at, packed.namespace_bytes) != namespace_name) continue;
    if (text.substr(packed.name_at + packed.namespace_bytes, packed.name_bytes) != name) continue;
    if (match != nullptr) return {Pod::Answer::unsure};
    match = &packed;
  }
  return match != nullptr ? unpacked(*match) : Pod{};
}

Facts::Pod Facts::pod_by_identity(std::uint64_t identity) const {
  const auto found = with_identity(identity);
  if (found.empty()) return {};
  return found.size() == 1 ? unpacked(found.front()) : Pod{Pod::Answer::unsure};
}

}  // namespace croft::core::collect
