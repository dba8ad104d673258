#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "collector/decide/judge.h"

namespace croft::core::collect {

/// Blocks, claims, handles, nodes and pods as values, and looks at them: the collector without a store.
struct Scene {
  ManualClock clock;
  Settings settings;
  std::map<net::Prefix, Block> blocks;
  std::vector<Affinity> affinities;
  std::vector<std::string> handles;
  std::vector<NodeFact> nodes;
  std::vector<RemovedNode> removed;
  std::optional<std::vector<PodFact>> pods{std::vector<PodFact>()};
  Memory memory;
  bool claimed_by_hand = false;

  static net::Address ip(const char* text) { return net::Address::parse(text).value(); }
  static net::Prefix prefix(const char* text) { return net::Prefix::parse(text).value(); }
  static AffinityOwner host(const std::string& name) { return {AffinityOwner::Type::host, name}; }

  void node(const std::string& name) { nodes.push_back({name, {}, {}}); }
  /// An earlier list had it.
  void had_node(const std::string& name) { memory.listed_nodes.insert(name); }
  void remove_node(const std::string& name) {
    std::erase_if(nodes, [&](const NodeFact& n) { return n.name == name; });
  }
  /// A pod of namespace "d" with addresses separated as given.
  PodFact& pod(const std::string& name, const std::vector<const char*>& addresses = {}, const std::string& on = "n1") {
    PodFact fact{"d", name, "uid-" + name, on, "Running", "", {}, false};
    for (const char* address : addresses) fact.addresses.push_back(ip(address));
    return pods->emplace_back(std::move(fact));
  }
  void remove_pod(const std::string& name) {
    std::erase_if(*pods, [&](const PodFact& p) { return p.name == name; });
  }
  /// Pods that nobody asks about, so that lists are neither empty nor shrunken.
  void crowd(int count = 10) {
    for (int i = 0; i < count; ++i) pod("crowd-" + std::to_string(i), {"192.0.2.1"}, "n0");
    node("n0");
  }

  Block& block(const char* cidr, const std::optional<std::string>& owner) {
    const std::optional<AffinityOwner> affinity = owner ? std::optional(host(*owner)) : std::nullopt;
    if (affinity) affinities.push_back({*affinity, prefix(cidr), AffinityState::confirmed, false});
    return blocks[prefix(cidr)] = new_block(prefix(cidr), affinity, clock.now(), std::nullopt);
  }
  /// Holds an address for a handle with the given attributes.
  void hold(const char* address, const std::string& handle, std::map<std::string, std::string> attributes) {
    for (auto& [cidr, stored] : blocks) {
      if (!cidr.contains(ip(address))) continue;
      Attribute attribute;
      attribute.handle_id = handle;
      attribute.secondary = std::move(attributes);
      stored = stamped(take_address(std::move(stored), ip(address), attribute).value().block);
      return;
    }
    FAIL() << "no block for " << address;
  }
  void hold_for_pod(const char* address, const std::string& pod_name, const std::string& on = "n1") {
    hold(address, "net." + pod_name, {{"pod", pod_name}, {"namespace", "d"}, {"node", on}});
  }
  void release(const char* address) {
    for (auto& [cidr, stored] : blocks) {
      const auto ordinal = net::ordinal_of(cidr, ip(address));
      if (!ordinal) continue;
      stored = stamped(core::release(std::move(stored), {&*ordinal, 1}, std::chrono::seconds(0), clock.now()));
    }
  }

  RegisterView view() const {
    RegisterView view;
    if (claimed_by_hand) view.set_claimed_by_hand();
    for (const auto& [cidr, stored] : blocks) view.add_block(stored, std::chrono::seconds(30), clock.now());
    for (const Affinity& affinity : affinities) view.add_affinity(affinity);
    for (const RemovedNode& node : removed) view.add_removed(node);
    for (const std::string& handle : handles) view.add_handle(handle);
    return view;
  }
  Facts facts() const {
    Facts facts;
    for (const NodeFact& fact : nodes) facts.add_node(fact);
    if (pods) facts.set_pods_known();
    for (const PodFact& fact : pods.value_or(std::vector<PodFact>())) facts.add_pod(fact);
    facts.complete = true;
    facts.taken_at = clock.now();
    facts.freeze();
    return facts;
  }

  Verdict look() {
    Verdict verdict = judge(view(), facts(), memory, settings, clock.now(), clock.now());
    memory = verdict.memory;
    return verdict;
  }
  /// A look, the grace, another look: what the second one would release, proven, as "address reason".
  std::vector<std::string> after_two_looks() {
    static_cast<void>(look());
    clock.advance(settings.grace);
    return proven(look());
  }
  std::vector<std::string> proven(const Verdict& verdict) const {
    std::vector<std::string> texts;
    for (const Leak& leak : verdict.leaks) {
      const auto evidence = prove(leak, blocks.at(leak.block), facts(), clock.now());
      texts.push_back(leak.address.to_string() + " " + (evidence ? evidence->reason : "unproven"));
    }
    return texts;
  }
  static std::vector<std::string> alarms(const Verdict& verdict) {
    std::vector<std::string> texts;
    for (const Alarm& alarm : verdict.alarms) texts.emplace_back(name_of(alarm.kind));
    return texts;
  }
  static std::vector<std::string> blocks_of(const Verdict& verdict) {
    std::vector<std::string> texts;
    for (const BlockToRelease& b : verdict.blocks) {
      texts.push_back(b.release.cidr.to_string() + (b.node_gone ? " node_gone" : " surplus"));
    }
    return texts;
  }
};

}  // namespace croft::core::collect
