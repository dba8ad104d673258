#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/use/ports.h"

namespace croft::engine {

/// Facts set by hand.
struct TestFacts final : FactSource {
  explicit TestFacts(const Clock& clock_of_test) : clock(clock_of_test) {}

  const Clock& clock;
  std::vector<core::collect::NodeFact> nodes;
  std::optional<std::vector<core::collect::PodFact>> pods{std::vector<core::collect::PodFact>()};
  bool complete = true;
  std::optional<Error> failure;
  // What asking for one shows.
  bool one_by_one = false;
  std::vector<core::collect::PodFact> there;  ///< and those listed
  std::vector<std::string> nodes_there;       ///< and those listed
  std::vector<std::string> asked;             ///< names of pods, as they were asked for
  std::optional<Error> refusal;               ///< of all pods
  std::map<std::string, Error> odd;           ///< of pods, by name

  void node(const std::string& name) { nodes.push_back({name, {}, {}}); }
  void pod(const std::string& name, const std::vector<net::Address>& addresses, const std::string& node = "node-a") {
    pods->push_back({"ns", name, "", node, "Running", "", addresses, false});
  }
  void remove_pod(const std::string& name) {
    std::erase_if(*pods, [&](const core::collect::PodFact& p) { return p.name == name; });
  }
  void remove_node(const std::string& name) {
    std::erase_if(nodes, [&](const core::collect::NodeFact& n) { return n.name == name; });
  }

  [[nodiscard]] bool answers_one_by_one() const override { return one_by_one; }
  [[nodiscard]] Result<std::optional<core::collect::PodFact>> pod(const std::string& /*namespace_name*/,
                                                                  const std::string& name) override {
    asked.push_back(name);
    if (refusal) return fail(*refusal);
    if (const auto found = odd.find(name); found != odd.end()) return fail(found->second);
    for (const auto* all : {&there, &*pods}) {
      const auto found = std::ranges::find(*all, name, &core::collect::PodFact::name);
      if (found != all->end()) return std::optional(*found);
    }
    return std::optional<core::collect::PodFact>();
  }
  [[nodiscard]] Result<bool> has_node(const std::string& name) override {
    return std::ranges::find(nodes_there, name) != nodes_there.end() ||
           std::ranges::find(nodes, name, &core::collect::NodeFact::name) != nodes.end();
  }

  [[nodiscard]] Result<core::collect::Facts> facts() override {
    if (failure) return fail(*failure);
    core::collect::Facts facts;
    facts.taken_at = clock.now();
    for (const auto& fact : nodes) facts.add_node(fact);
    if (pods) facts.set_pods_known();
    for (const auto& fact : pods.value_or(std::vector<core::collect::PodFact>())) facts.add_pod(fact);
    facts.complete = complete;
    facts.freeze();
    return facts;
  }
};

}  // namespace croft::engine
