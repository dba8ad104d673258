#include "collector/decide/judge.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace croft::core::collect {

namespace {

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
      stored = with_next_sequence_number(take_address(std::move(stored), ip(address), attribute).value().block);
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
      stored = with_next_sequence_number(
          core::release(std::move(stored), {&*ordinal, 1}, std::chrono::seconds(0), clock.now()));
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
  /// A look, the grace, another look.
  Verdict second_look() {
    static_cast<void>(look());
    clock.advance(settings.grace);
    return look();
  }
  /// What the second one would release, proven, as "address reason".
  std::vector<std::string> after_two_looks() { return proven(second_look()); }
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

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Texts = std::vector<std::string>;

// ---------------------------------------------------------------- one allocation, by what is known about its holder

using Attributes = std::map<std::string, std::string>;
using Arrange = std::function<void(Scene&)>;

/// Those of pod "web" on node n1, and these, which may differ from them.
Attributes of_web(Attributes others = {}) {
  others.merge(Attributes{{"pod", "web"}, {"namespace", "d"}, {"node", "n1"}});
  return others;
}
/// As a kubelet names a pod that it read from a file.
Attributes of_static_pod(const char* node) {
  return {{"pod", "gw-n1"}, {"namespace", "d"}, {"node", node}, {"pod-uid", "34fb0746a0c244a9a53059ec1e33297c"}};
}

Arrange held(const char* handle, const Attributes& attributes) {
  return [=](Scene& s) { s.hold("10.0.0.3", handle, attributes); };
}
/// 10.0.0.3 is held so, and the cluster's pod "web" reports these addresses.
Arrange web(
    const std::vector<const char*>& reported, const Attributes& attributes = of_web(),
    const std::function<void(PodFact&)>& change = [](PodFact&) {}) {
  return [=](Scene& s) {
    s.hold("10.0.0.3", "net.web", attributes);
    change(s.pod("web", reported));
  };
}
/// Pod "web" holds 10.0.0.3, got 10.0.0.4 later, and reports one of them.
Arrange two_of_web(const char* reported, const Attributes& first = of_web(), const Attributes& second = of_web(),
                   const char* first_handle = "net.old") {
  return [=](Scene& s) {
    s.hold("10.0.0.3", first_handle, first);
    s.hold("10.0.0.4", "net.new", second);
    s.pod("web", {reported});
  };
}
const auto evicted = [](PodFact& pod) {
  pod.phase = "Failed";
  pod.reason = "Evicted";
};
const auto with_unreadable_address = [](PodFact& pod) { pod.has_unreadable_address = true; };

struct Case {
  const char* what;
  Arrange arrange;
  Texts expected;
};

TEST(OneAllocation, IsReleasedAfterTwoLooksOrKept) {
  const Attributes of_another = of_web({{"pod-uid", "uid-before"}}),
                   tunnel_of_x = {{"node", "x"}, {"type", "ipipTunnelAddress"}};
  const Case cases[] = {
      {"pod gone", held("net.web", of_web()), {"10.0.0.3 pod_gone"}},
      {"pod alive", web({"10.0.0.3"}), {}},
      {"another pod of the name in another namespace",
       web({"10.0.0.3"}, of_web(), [](PodFact& pod) { pod.namespace_name = "other"; }),
       {"10.0.0.3 pod_gone"}},
      {"pod without reported address", web({}), {}},
      {"pod with an address that can't be read", web({"10.0.0.4"}, of_web(), with_unreadable_address), {}},
      {"pod evicted", web({"10.0.0.3"}, of_web(), evicted), {"10.0.0.3 pod_evicted"}},
      {"pod failed for another reason", web({"10.0.0.3"}, of_web(), [](PodFact& pod) { pod.phase = "Failed"; }), {}},
      {"pod has another address that it got later", two_of_web("10.0.0.4"), {"10.0.0.3 not_the_pods"}},
      {"pod reports what its sandbox before had", two_of_web("10.0.0.3"), {}},
      {"pod reports an address of another network of its",
       two_of_web("10.0.0.4", of_web(), of_web(), "storage.one"),
       {}},
      {"pod reports an address of another interface of its",
       two_of_web("10.0.0.4", of_web({{"ifname", "net1"}})),
       {}},
      {"only clocks say that the pod got the other address later",
       [](Scene& s) {
         s.block("10.0.0.16/28", "n1");
         s.hold("10.0.0.17", "net.old", of_web({{"timestamp", "2026-01-15 10:00:00.5 +0000 UTC"}}));
         s.hold("10.0.0.3", "net.new", of_web({{"timestamp", "2026-01-15 10:00:01 +0000 UTC"}}));
         s.pod("web", {"10.0.0.3"});
       },
       {}},
      {"pod has another address that it got later, and the clock was set back in between",
       two_of_web("10.0.0.4", of_web({{"timestamp", "2026-01-15 11:00:00 +0000 UTC"}}),
                  of_web({{"timestamp", "2026-01-15 10:00:10 +0000 UTC"}})),
       {"10.0.0.3 not_the_pods"}},
      {"pod reports an address that nobody holds", web({"10.0.0.4"}), {}},
      {"address is one of several of the pod", web({"10.9.9.9", "fd00::1", "10.0.0.3"}), {}},
      {"pod bound to another node has the address (#12257)",
       web({"10.0.0.3"}, of_web(), [](PodFact& pod) { pod.node = "n0"; }),
       {}},
      {"node gone under a stale name, pod alive with the address (#12257)",
       web({"10.0.0.3"}, of_web({{"node", "old-name"}})),
       {}},
      {"IPv6 text differs, value is the same (#5044)",
       [](Scene& s) {
         s.block("fd00::/124", "n1");
         s.hold_for_pod("fd00::a", "web");
         s.pod("web", {"FD00:0:0:0:0:0:0:A"});
       },
       {}},
      {"two entries answer to the pod's name",
       [](Scene& s) {
         web({"10.0.0.4"})(s);
         s.pod("web", {"10.0.0.5"});
       },
       {}},
      {"node gone, pod gone", held("net.web", of_web({{"node", "gone"}})), {"10.0.0.3 node_gone"}},
      {"node gone, pod pending on it (#9618)",
       web({}, of_web({{"node", "gone"}}), [](PodFact& pod) { pod.node = "gone"; }),
       {"10.0.0.3 node_gone"}},
      {"node gone, pod pending on a node that exists", web({}, of_web({{"node", "gone"}})), {}},
      {"no node recorded, pod gone", held("net.x", {{"pod", "x"}, {"namespace", "d"}}), {"10.0.0.3 pod_gone"}},
      {"another pod of the name, by its UID, with another address (#12257)",
       [](Scene& s) {
         s.block("10.0.0.16/28", "n0");
         s.hold("10.0.0.3", "net.dead",
                of_web({{"pod-uid", "uid-before"}, {"timestamp", "2026-01-15 11:00:00 +0000 UTC"}}));
         s.hold("10.0.0.17", "net.web",
                of_web({{"pod-uid", "uid-web"}, {"timestamp", "2026-01-15 10:00:00 +0000 UTC"}}));
         s.pod("web", {"10.0.0.17"}, "n0");
       },
       {"10.0.0.3 pod_replaced"}},
      {"another pod of the name, by its UID, that has no address yet", web({}, of_another), {"10.0.0.3 pod_replaced"}},
      {"another pod of the name, by its UID, that reports the address", web({"10.0.0.3"}, of_another), {}},
      {"another pod of the name, by its UID, with an address that can't be read",
       web({"10.0.0.4"}, of_another, with_unreadable_address),
       {}},
      {"the pod of the UID reports another address", web({"10.0.0.4"}, of_web({{"pod-uid", "uid-web"}})), {}},
      {"a pod whose UID is not told", web({"10.0.0.4"}, of_another, [](PodFact& pod) { pod.uid.clear(); }), {}},
      {"the mirror of a static pod, whose UID is its own",
       web({"10.0.0.4"}, of_another, [](PodFact& pod) { pod.is_mirror = true; }),
       {}},
      {"another UID, and the node is gone",
       web({"10.0.0.4"}, of_web({{"pod-uid", "uid-before"}, {"node", "gone"}})),
       {"10.0.0.3 node_gone"}},
      {"static pod without its mirror", held("net.gw", of_static_pod("n1")), {}},
      {"static pod whose name another pod has",
       [](Scene& s) {
         s.hold("10.0.0.3", "net.gw", of_static_pod("n1"));
         s.hold("10.0.0.4", "net.other", of_web({{"pod", "gw-n1"}}));
         s.pod("gw-n1", {"10.0.0.4"});
       },
       {}},
      {"static pod whose mirror says that it was evicted",
       [](Scene& s) {
         s.hold("10.0.0.3", "net.gw", of_static_pod("n1"));
         evicted(s.pod("gw-n1", {"10.0.0.3"}));
       },
       {}},
      {"static pod of a node that is gone", held("net.gw", of_static_pod("gone")), {"10.0.0.3 node_gone"}},
      {"the UID of an API server, without a pod",
       held("net.web", of_web({{"pod-uid", "34fb0746-a0c2-44a9-a530-59ec1e33297c"}})),
       {"10.0.0.3 pod_gone"}},
      {"no pod recorded", held("net.x", {{"node", "n1"}}), {}},
      {"no pod recorded, node gone", held("net.x", {{"node", "gone"}}), {}},
      {"load balancer", held("lb-1", {{"service", "d/s"}, {"type", "LoadBalancer"}}), {}},
      {"reserved for Windows", held("windows-reserved-ipam-handle", {{"note", "windows host rsvd"}}), {}},
      {"virtual machine", held("net.vmi.d.vm", {{"pod", "x"}, {"namespace", "d"}, {"vmi-name", "vm"}}), {}},
      {"tunnel of a node that exists",
       held("vxlan-tunnel-addr-n1", {{"node", "n1"}, {"type", "vxlanTunnelAddress"}}),
       {}},
      {"tunnel of a node that is gone", held("ipip-tunnel-addr-x", tunnel_of_x), {"10.0.0.3 node_gone"}},
      {"tunnel of a node that is gone and has a live pod",
       [&](Scene& s) {
         s.hold("10.0.0.3", "ipip-tunnel-addr-x", tunnel_of_x);
         s.hold_for_pod("10.0.0.4", "web", "x");
         s.pod("web", {"10.0.0.4"}, "x");
       },
       {}},
      {"tunnel and pod of a node that is gone, in one pass",
       [&](Scene& s) {
         s.hold("10.0.0.3", "ipip-tunnel-addr-x", tunnel_of_x);
         s.hold_for_pod("10.0.0.4", "web", "x");
       },
       {"10.0.0.3 node_gone", "10.0.0.4 node_gone"}},
      {"a node that came back uses it as its tunnel's (#3589)",
       [](Scene& s) {
         s.hold_for_pod("10.0.0.3", "web");
         s.nodes.back().tunnel_addresses = {Scene::ip("10.0.0.3")};
       },
       {}},
      {"pods not known, node exists", [](Scene& s) { s.hold_for_pod("10.0.0.3", "web"), s.pods.reset(); }, {}},
      {"pods not known, node gone",
       [](Scene& s) { s.hold_for_pod("10.0.0.3", "web", "gone"), s.pods.reset(); },
       {"10.0.0.3 node_gone"}},
      {"one of two addresses of a handle is alive",
       [](Scene& s) {
         s.hold("10.0.0.3", "net.x", of_web({{"pod", "x"}}));
         s.hold("10.0.0.4", "net.x", of_web({{"pod", "y"}}));
         s.pod("y", {"10.0.0.4"});
       },
       {}},
      {"both addresses of a handle are dead, in two families",
       [](Scene& s) {
         s.block("fd00::/124", "n1");
         s.hold_for_pod("10.0.0.3", "web");
         s.hold_for_pod("fd00::3", "web");
       },
       {"10.0.0.3 pod_gone", "fd00::3 pod_gone"}}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    Scene scene;
    scene.crowd();
    scene.node("n1");
    scene.block("10.0.0.0/28", "n1");
    for (const char* name : {"gone", "old-name", "x"}) scene.had_node(name);
    one.arrange(scene);
    EXPECT_EQ(scene.after_two_looks(), one.expected);
  }
}

// ---------------------------------------------------------------- time: what scenarios/testdata/collector does not say

class Time : public testing::Test, public Scene {
 protected:
  void SetUp() override {
    crowd();
    node("n1");
    block("10.0.0.0/28", "n1");
    hold_for_pod("10.0.0.3", "web");
  }
};

TEST_F(Time, AnAllocationChangedAfterTheSecondLookIsNotProven) {
  const Verdict verdict = second_look();
  ASSERT_EQ(verdict.leaks.size(), 1U);
  release("10.0.0.3");
  EXPECT_THAT(proven(verdict), ElementsAre("10.0.0.3 unproven"));
  hold_for_pod("10.0.0.3", "web");
  EXPECT_THAT(proven(verdict), ElementsAre("10.0.0.3 unproven"));
}

// ---------------------------------------------------------------- lists that prove nothing

TEST_F(Time, IncompleteFactsReleaseNothingAndForgetNothing) {
  static_cast<void>(look());
  clock.advance(15min);
  Facts cut = facts();
  cut.complete = false;
  cut.incomplete_because = "page 3 is missing";
  const Verdict verdict = judge(view(), cut, memory, settings, clock.now(), clock.now());
  EXPECT_THAT(verdict.leaks, IsEmpty());
  ASSERT_THAT(alarms(verdict), ElementsAre("lists_do_not_fit"));
  EXPECT_EQ(verdict.alarms.front().text, "page 3 is missing");
  memory = verdict.memory;
  EXPECT_THAT(proven(look()), ElementsAre("10.0.0.3 pod_gone"));
}

TEST_F(Time, FactsOlderThanTheRegisterReleaseNothing) {
  static_cast<void>(look());
  clock.advance(15min);
  const Facts old = facts();
  clock.advance(1ns);
  const Verdict verdict = judge(view(), old, memory, settings, clock.now(), clock.now());
  EXPECT_THAT(verdict.leaks, IsEmpty());
  EXPECT_THAT(alarms(verdict), ElementsAre("lists_do_not_fit"));
}

/// Anybody makes and deletes as many of them as the quota allows, and no list was cut off.
TEST_F(Time, PodsThatNoNodeTookMayGoTogether) {
  for (int i = 0; i < 60; ++i) pod("pending-" + std::to_string(i), {}, "");
  static_cast<void>(look());
  std::erase_if(*pods, [](const PodFact& one) { return one.node.empty(); });
  clock.advance(15min);
  EXPECT_THAT(alarms(look()), IsEmpty());
}

TEST_F(Time, AListOlderThanTheOneBeforeReleasesNothingAndTheGraceBeginsAnew) {
  const auto look_of = [&](std::uint64_t revision) {
    Facts list = facts();
    list.pods_revision = revision;
    Verdict verdict = judge(view(), list, memory, settings, clock.now(), clock.now());
    memory = verdict.memory;
    return verdict;
  };
  static_cast<void>(look_of(100));
  clock.advance(15min);
  const Verdict back = look_of(99);
  ASSERT_THAT(alarms(back), ElementsAre("lists_do_not_fit"));
  EXPECT_THAT(back.alarms.at(0).text, HasSubstr("of revision 99, that of the look before was of 100"));
  EXPECT_THAT(back.leaks, IsEmpty());
  EXPECT_THAT(look_of(120).leaks, IsEmpty());
  clock.advance(15min);
  const Verdict again = look_of(120);  // nothing has changed
  EXPECT_THAT(alarms(again), IsEmpty());
  EXPECT_THAT(proven(again), ElementsAre("10.0.0.3 pod_gone"));
}

// ---------------------------------------------------------------- nodes that a list lacks

class Lacking : public Time {
 protected:
  void SetUp() override {
    crowd();
    node("n1");
    block("10.0.0.0/28", "n1");
    hold_for_pod("10.0.0.1", "here", "n1");
    pod("here", {"10.0.0.1"}, "n1");
    hold_for_pod("10.0.0.5", "web", "other");
  }
};

TEST_F(Lacking, AboutANodeThatWasNeverListedNothingIsConcluded) {
  for (const bool with_pods : {true, false}) {
    if (!with_pods) pods.reset();
    static_cast<void>(look());
    for (int i = 0; i < 3; ++i) {
      clock.advance(15min);
      const Verdict verdict = look();
      EXPECT_THAT(alarms(verdict), ElementsAre("nodes_unknown"));
      EXPECT_THAT(verdict.alarms.at(0).text,
                  HasSubstr("1 addresses are held on nodes that no list of nodes had since"));
      EXPECT_THAT(verdict.alarms.at(0).text, HasSubstr(": other;"));
      EXPECT_THAT(verdict.leaks, IsEmpty()) << with_pods;
    }
  }
}

TEST_F(Lacking, ANodeThatWasListedAndIsNotAnyMoreIsGone) {
  node("other");
  static_cast<void>(look());
  remove_node("other");
  const Verdict verdict = second_look();
  EXPECT_THAT(alarms(verdict), IsEmpty());
  ASSERT_THAT(proven(verdict), ElementsAre("10.0.0.5 node_gone"));
  const auto evidence = prove(verdict.leaks[0], blocks.begin()->second, facts(), clock.now());
  EXPECT_THAT(evidence->facts, testing::Contains(HasSubstr("was in an earlier list")));
}

TEST_F(Lacking, WhatANodeHeldThatAnOperatorRemovedMayGoAndWhatItGotLaterNot) {
  const Block& stored = blocks.begin()->second;
  removed = {{"other", {{"10.0.0.0/28", sequence_of(stored, net::Ordinal(5))}}}};
  hold_for_pod("10.0.0.6", "again", "other");
  const Verdict first = look();
  EXPECT_THAT(alarms(first), ElementsAre("nodes_unknown"));
  clock.advance(15min);
  const Verdict verdict = look();
  ASSERT_THAT(proven(verdict), ElementsAre("10.0.0.5 node_gone"));
  const auto evidence = prove(verdict.leaks[0], stored, facts(), clock.now());
  EXPECT_THAT(evidence->facts, testing::Contains(HasSubstr("was removed by hand")));
  // It is there after all.
  node("other");
  pod("web", {"10.0.0.5"}, "other");
  EXPECT_THAT(proven(look()), Not(testing::Contains(HasSubstr("10.0.0.5"))));
}

TEST_F(Lacking, AListOfOtherNodesIsRefused) {
  remove_node("n1");  // never listed: what the register has are host names, say
  for (int i = 0; i < 3; ++i) {
    const Verdict verdict = look();
    EXPECT_THAT(alarms(verdict), ElementsAre("lists_do_not_fit"));
    EXPECT_THAT(verdict.alarms.at(0).text, HasSubstr("the 1 nodes listed (n0); the register has 2 (n1, other)"));
    EXPECT_THAT(verdict.leaks, IsEmpty());
    clock.advance(15min);
  }
}

// ---------------------------------------------------------------- the brake

TEST(Brake, AllowsTenOrOnePercent) {
  EXPECT_EQ(removals_allowed(0), 10U);
  EXPECT_EQ(removals_allowed(1000), 10U);
  EXPECT_EQ(removals_allowed(1100), 11U);
  EXPECT_EQ(removals_allowed(500000), 5000U);
}

TEST(Brake, LetsTheLongestDeadGoFirstAndSaysWhatItKeeps) {
  Scene scene;
  scene.crowd();
  scene.node("n1");
  scene.block("10.0.0.0/26", "n1");
  for (int i = 1; i <= 25; ++i) {
    if (i == 6) {
      static_cast<void>(scene.look());
      scene.clock.advance(1min);
    }
    scene.hold_for_pod(("10.0.0." + std::to_string(i)).c_str(), "dead-" + std::to_string(i));
  }
  const Verdict verdict = scene.second_look();
  EXPECT_THAT(Scene::alarms(verdict), ElementsAre("too_many"));
  EXPECT_EQ(verdict.confirmed, 25U);
  EXPECT_EQ(verdict.kept_by_brake, 15U);
  ASSERT_EQ(verdict.leaks.size(), 10U);
  for (int i = 1; i <= 5; ++i) {
    const std::string address = "10.0.0." + std::to_string(i);
    EXPECT_THAT(scene.proven(verdict), testing::Contains(address + " pod_gone"));
  }
}

// ---------------------------------------------------------------- blocks, claims, handles

class Surplus : public testing::Test, public Scene {
 protected:
  void SetUp() override {
    crowd();
    node("n1");
    pod("web", {"10.0.0.3"});
  }
  Texts after_grace() { return blocks_of(second_look()); }
};

TEST_F(Surplus, AnEmptyBlockGoesWhenTheNodeHasAnother) {
  block("10.0.0.0/28", "n1");
  block("10.0.0.16/28", "n1");
  hold_for_pod("10.0.0.3", "web");
  EXPECT_THAT(blocks_of(look()), IsEmpty());
  clock.advance(15min);
  EXPECT_THAT(blocks_of(look()), ElementsAre("10.0.0.16/28 surplus"));
}

TEST_F(Surplus, TheLastBlockOfAFamilyStays) {
  block("10.0.0.0/28", "n1");
  block("fd00::/124", "n1");
  EXPECT_THAT(after_grace(), IsEmpty());
}

TEST_F(Surplus, OfSeveralEmptyBlocksOneStays) {
  for (const char* cidr : {"10.0.0.0/28", "10.0.0.16/28", "10.0.0.32/28", "fd00::/124", "fd00::10/124"}) {
    block(cidr, "n1");
  }
  EXPECT_EQ(after_grace().size(), 3U);
}

TEST_F(Surplus, AnyUseBeginsTheGraceAnew) {
  block("10.0.0.0/28", "n1");
  block("10.0.0.16/28", "n1");
  hold_for_pod("10.0.0.3", "web");
  static_cast<void>(look());
  hold_for_pod("10.0.0.17", "web");
  release("10.0.0.17");
  clock.advance(15min);
  EXPECT_THAT(blocks_of(look()), IsEmpty());
}

TEST_F(Surplus, ABlockWithCoolingAddressesIsNotEmpty) {
  block("10.0.0.0/28", "n1");
  Block& cooling = block("10.0.0.16/28", "n1");
  hold_for_pod("10.0.0.3", "web");
  hold_for_pod("10.0.0.17", "web");
  const net::Ordinal one(1);
  cooling = with_next_sequence_number(core::release(cooling, {&one, 1}, 30s, clock.now()));
  const Verdict first = look();
  EXPECT_THAT(first.cooled, IsEmpty());
  EXPECT_FALSE(first.memory.empty_blocks.contains(prefix("10.0.0.16/28")));
  clock.advance(30s);
  const Verdict second = look();
  EXPECT_THAT(second.cooled, ElementsAre(prefix("10.0.0.16/28")));
  EXPECT_TRUE(second.memory.empty_blocks.contains(prefix("10.0.0.16/28")));
}

/// The node could not claim it again.
TEST_F(Surplus, WhereBlocksAreClaimedByHandNoneIsTooMany) {
  block("10.0.0.0/28", "n1");
  block("10.0.0.16/28", "n1");
  hold_for_pod("10.0.0.3", "web");
  claimed_by_hand = true;
  EXPECT_THAT(after_grace(), IsEmpty());
  // Of a node that is gone they are nobody's.
  remove_node("n1");
  EXPECT_THAT(after_grace(), ElementsAre("10.0.0.16/28 node_gone"));
  node("n1");
  claimed_by_hand = false;
  EXPECT_THAT(after_grace(), ElementsAre("10.0.0.16/28 surplus"));
}

TEST_F(Surplus, ABlockWithOnlyWindowsReservationsIsEmpty) {
  block("10.0.0.0/28", "n1");
  block("10.0.0.16/28", "n1");
  hold_for_pod("10.0.0.3", "web");
  hold("10.0.0.16", "windows-reserved-ipam-handle", {});
  EXPECT_THAT(after_grace(), ElementsAre("10.0.0.16/28 surplus"));
}

TEST_F(Surplus, BlocksOfNobodyAndOfVirtualOwnersStay) {
  block("10.0.0.0/28", std::nullopt);
  block("10.0.0.16/28", std::nullopt).affinity = AffinityOwner{AffinityOwner::Type::virtual_owner, "load-balancer"};
  block("10.0.0.32/28", std::nullopt).affinity = AffinityOwner{AffinityOwner::Type::virtual_owner, "load-balancer"};
  EXPECT_THAT(after_grace(), IsEmpty());
}

TEST_F(Surplus, ANodeThatIsGoneKeepsNoBlock) {
  had_node("gone");
  block("10.0.0.0/28", "gone");
  block("10.0.0.16/28", "gone");
  block("fd00::/124", "gone");
  EXPECT_THAT(blocks_of(look()), IsEmpty());
  clock.advance(15min);
  EXPECT_THAT(blocks_of(look()),
              ElementsAre("10.0.0.0/28 node_gone", "10.0.0.16/28 node_gone", "fd00::/124 node_gone"));
}

TEST_F(Surplus, ANodeThatWasNeverListedKeepsItsBlocks) {
  block("10.0.0.0/28", "elsewhere");
  block("10.0.0.16/28", "elsewhere");
  EXPECT_THAT(after_grace(), IsEmpty());
}

TEST_F(Surplus, ClaimsWithoutTheirBlockGoAfterTheGrace) {
  block("10.0.0.0/28", "n1");
  affinities.push_back({host("n1"), prefix("10.0.0.16/28"), AffinityState::confirmed, false});
  affinities.push_back({host("n0"), prefix("10.0.0.0/28"), AffinityState::pending, false});
  EXPECT_THAT(look().affinities, IsEmpty());
  clock.advance(15min);
  std::vector<std::string> texts;
  for (const StrayAffinity& stray : look().affinities) {
    texts.push_back(to_string(stray.affinity.owner) + " " + stray.affinity.cidr.to_string());
  }
  EXPECT_THAT(texts, UnorderedElementsAre("host:n1 10.0.0.16/28", "host:n0 10.0.0.0/28"));
}

TEST_F(Surplus, HandlesThatNoAllocationBearsGoAfterTheGrace) {
  block("10.0.0.0/28", "n1");
  hold_for_pod("10.0.0.3", "web");
  handles = {"net.web", "net.lost"};
  EXPECT_THAT(look().handles, IsEmpty());
  clock.advance(15min);
  const Verdict verdict = look();
  ASSERT_EQ(verdict.handles.size(), 1U);
  EXPECT_EQ(verdict.handles.front().id, "net.lost");
}

// ---------------------------------------------------------------- evidence

TEST_F(Time, EvidenceTellsBothLooksTheHolderAndWhatProvedIt) {
  const Verdict verdict = second_look();
  const auto evidence = prove(verdict.leaks.at(0), blocks.begin()->second, facts(), clock.now());
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->subject, "10.0.0.3");
  EXPECT_EQ(evidence->handle, "net.web");
  EXPECT_EQ(evidence->last_look.since_boot - evidence->first_look.since_boot, 15min);
  EXPECT_EQ(evidence->sequence, sequence_of(blocks.begin()->second, net::Ordinal(3)));
  EXPECT_THAT(evidence->facts, ElementsAre("pod d/web is not among 10 pods"));
  EXPECT_THAT(to_string(*evidence), HasSubstr("address 10.0.0.3: pod_gone, since 2026-01-15T10:00:00Z, seen again "
                                              "2026-01-15T10:15:00Z, handle net.web, sequence "));
}

TEST(Facts, AnAddressIsTheSameHoweverItIsWritten) {
  Facts facts;
  facts.add_node({"n1", {}, {Scene::ip("10.0.0.3"), Scene::ip("::ffff:10.0.0.4"), Scene::ip("fd00::1")}});
  facts.freeze();
  for (const char* text : {"10.0.0.3", "::ffff:10.0.0.3", "10.0.0.4", "::ffff:10.0.0.4", "fd00::1"}) {
    EXPECT_TRUE(facts.is_tunnel_address(Scene::ip(text))) << text;
  }
  EXPECT_FALSE(facts.is_tunnel_address(Scene::ip("::10.0.0.3")));
}

}  // namespace

}  // namespace croft::core::collect
