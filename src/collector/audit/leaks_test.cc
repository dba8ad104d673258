#include "collector/audit/leaks.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

namespace croft::core::audit {
namespace {

using collect::Facts;
using collect::PodFact;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// A register that was read, and the cluster it is of: two nodes, on one of which a pod lives.
class Leaks : public testing::Test {
 protected:
  Leaks() {
    nodes = {"n1", "n2"};
    pod("live", {"10.0.0.1"});
    hold("10.0.0.1", "live");
  }

  PodFact& pod(const std::string& name, const std::vector<const char*>& addresses = {},
               const std::string& phase = "Running") {
    PodFact fact{"d", name, "uid-" + name, "n1", phase, "", {}};
    for (const char* text : addresses) fact.addresses.push_back(address(text));
    return pods.emplace_back(std::move(fact));
  }
  Allocation& put(const char* held, std::map<std::string, std::string> attributes, std::string handle) {
    Allocation one;
    one.address = address(held);
    one.block = net::Prefix::containing(one.address, 28);
    one.block_owner = AffinityOwner{AffinityOwner::Type::host, "n1"};
    one.handle_id = std::move(handle);
    one.sequence_number = SequenceNumber(7);
    one.attributes = std::move(attributes);
    return report.allocations.emplace_back(std::move(one));
  }
  /// As Calico writes it.
  Allocation& hold(const char* held, const std::string& pod_name, const std::string& node = "n1",
                   const std::string& container = "") {
    return put(held,
               {{"pod", pod_name}, {"namespace", "d"}, {"node", node}, {"timestamp", "2026-11-01 10:00:00 +0000 UTC"}},
               "k8s-pod-network." + (container.empty() ? pod_name : container));
  }
  Allocation& tunnel(const char* held, const std::string& node) {
    return put(held, {{"type", "ipipTunnelAddress"}, {"node", node}}, "ipip-tunnel-addr-" + node);
  }

  Facts facts() {
    Facts made;
    for (const std::string& name : nodes)
      made.add_node({name, {}, name == "n2" ? tunnels : std::vector<net::Address>()});
    for (const PodFact& fact : pods) made.add_pod(fact);
    if (pods_known) made.set_pods_known();
    made.freeze();
    return made;
  }
  std::vector<std::string> found() {
    find_leaks(report, facts(), look);
    std::vector<std::string> texts;
    for (const Finding& one : report.findings) texts.push_back(one.subject + " " + std::string(one.id));
    return texts;
  }
  std::vector<std::string> gone() const {
    std::vector<std::string> texts;
    for (const Allocation& one : report.allocations) {
      if (one.gone) texts.push_back(one.address.to_string());
    }
    return texts;
  }

  Report report;
  LeakLook look;
  std::vector<std::string> nodes;
  std::vector<net::Address> tunnels;
  std::vector<PodFact> pods;
  bool pods_known = true;
};

TEST_F(Leaks, WhatLivesIsNoLeak) {
  tunnels = {address("10.0.0.9")};
  tunnel("10.0.0.9", "n2");
  pod("starting");
  hold("10.0.0.2", "starting");
  report.blocks_of_nodes = {{prefix("10.0.0.0/28"), "n1"}};
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST_F(Leaks, APodThatIsNotThere) {
  hold("10.0.0.2", "dead");
  EXPECT_THAT(found(), ElementsAre("10.0.0.2 pod_gone"));
  const Finding& one = report.findings.front();
  EXPECT_THAT(one.what,
              HasSubstr("held since 2026-11-01T10:00:00Z by pod d/dead (handle k8s-pod-network.dead) on node n1"));
  EXPECT_THAT(one.what, HasSubstr("pod d/dead is not among 1 pod"));
  EXPECT_EQ(one.remedy, "croft ip release 10.0.0.2 --handle k8s-pod-network.dead --sequence 7");
  EXPECT_EQ(one.since, "2026-11-01T10:00:00Z");
  EXPECT_EQ(one.looks, 1);
  EXPECT_EQ(one.pod.name, "dead");
  EXPECT_THAT(gone(), ElementsAre("10.0.0.2"));
}

TEST_F(Leaks, AnotherPodOfTheName) {
  pod("web-0", {"10.0.0.3"});
  hold("10.0.0.2", "web-0").attributes.own()["pod-uid"] = "uid-of-another";
  PodFact& evicted = pod("evicted", {"10.0.0.4"}, "Failed");
  evicted.reason = "Evicted";
  hold("10.0.0.4", "evicted");
  EXPECT_THAT(found(), ElementsAre("10.0.0.2 pod_gone", "10.0.0.4 pod_gone"));
}

TEST_F(Leaks, AnOlderSandboxOfAPodIsInDoubt) {
  // A StatefulSet's: Calico records no UID, only each sandbox's container.
  pod("web-0", {"10.0.0.3"});
  hold("10.0.0.2", "web-0", "n1", "old");
  hold("10.0.0.3", "web-0", "n2", "new");
  EXPECT_THAT(found(), ElementsAre("10.0.0.2 holder_in_doubt"));
  EXPECT_THAT(report.findings.front().remedy, HasSubstr("--cni-cache /var/lib/cni --node n1"));
  EXPECT_THAT(gone(), IsEmpty());
}

TEST_F(Leaks, WhatAPodMayHaveByAnotherInterfaceIsNone) {
  pod("two", {"10.0.0.3"});
  hold("10.0.0.2", "two");
  hold("10.0.0.3", "two");  // the same container's
  pod("elsewhere", {"192.0.2.7"});
  hold("10.0.0.4", "elsewhere");
  Allocation& macvlan = hold("10.0.0.5", "two");
  macvlan.handle_id = "macvlan.two";
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Leaks, APodThatHasEndedIsInDoubt) {
  pod("job", {"10.0.0.2"}, "Succeeded");
  hold("10.0.0.2", "job");
  EXPECT_THAT(found(), ElementsAre("10.0.0.2 holder_in_doubt"));
  EXPECT_THAT(report.findings.front().remedy, HasSubstr("kubectl delete pod --namespace d job"));
  EXPECT_THAT(gone(), IsEmpty());
}

TEST_F(Leaks, ANodeThatIsNotThere) {
  hold("10.0.0.2", "dead", "n9");
  tunnel("10.0.0.9", "n9");
  report.blocks_of_nodes = {{prefix("10.0.0.0/28"), "n1"}, {prefix("10.0.0.16/28"), "n9"}};
  EXPECT_THAT(found(),
              UnorderedElementsAre("10.0.0.2 node_gone", "10.0.0.9 node_gone", "block 10.0.0.16/28 block_node_gone"));
  for (const Finding& one : report.findings) {
    EXPECT_THAT(one.remedy, HasSubstr("`croft node remove n9 --release --dry-run`"));
    EXPECT_THAT(one.what, HasSubstr("node n9 is not among 2 nodes"));
  }
  EXPECT_THAT(gone(), ElementsAre("10.0.0.2", "10.0.0.9"));
}

TEST_F(Leaks, WhoLivesOnANodeThatIsNotThereKeepsItsTunnel) {
  pod("orphan", {"10.0.0.2"});
  hold("10.0.0.2", "orphan", "n9");
  tunnel("10.0.0.9", "n9");
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Leaks, ATunnelThatItsNodeDoesNotName) {
  tunnel("10.0.0.9", "n2");
  EXPECT_THAT(found(), ElementsAre("10.0.0.9 holder_in_doubt"));
  EXPECT_THAT(gone(), IsEmpty());
}

TEST_F(Leaks, WhereNodesAreNotKnownNoTunnelIsInDoubt) {
  tunnel("10.0.0.9", "n2");
  look.nodes_known = false;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Leaks, WhatIsNotKnownIsNotGone) {
  hold("10.0.0.2", "dead");
  hold("10.0.0.3", "dead", "n9");
  report.blocks_of_nodes = {{prefix("10.0.0.16/28"), "n9"}};
  const Report before = report;
  look.nodes_known = false;
  nodes.clear();
  EXPECT_THAT(found(), ElementsAre("10.0.0.2 pod_gone", "10.0.0.3 pod_gone"));
  report = before;
  look.nodes_known = true;
  nodes = {"n1"};
  pods_known = false;
  pods.clear();
  EXPECT_THAT(found(), UnorderedElementsAre("10.0.0.3 node_gone", "block 10.0.0.16/28 block_node_gone"));
}

TEST_F(Leaks, AnotherClusterProvesNothing) {
  hold("10.0.0.2", "dead");
  const Report before = report;
  nodes = {"x1", "x2"};
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(report.notes,
              ElementsAre(HasSubstr("none of the cluster's 2 nodes is one that the register names (n1)")));
  report = before;
  look.nodes_known = false;
  pods = {};
  pod("theirs", {"10.0.0.7"});
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("none of the pods that hold addresses")));
}

TEST_F(Leaks, EmptyListsProveNothing) {
  hold("10.0.0.2", "dead", "n9");
  const Report before = report;
  pods.clear();
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("list of pods is empty")));
  report = before;
  pod("live", {"10.0.0.1"});
  nodes.clear();
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("list of nodes is empty")));
}

TEST_F(Leaks, WhatNobodyCanBeAskedAboutIsANote) {
  put("10.0.0.2", {}, "by-hand");
  put("10.0.0.3", {{"pod", "launcher"}, {"namespace", "d"}, {"vmi-name", "vm"}}, "vm");
  put("10.0.0.4", {}, "windows-reserved-ipam-handle").handle_id = "";
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("1 address: its record names neither a pod nor a node's tunnel")));
}

TEST_F(Leaks, OneNodesLookIsOfThatNode) {
  look.node = "n1";
  look.asked_with = " --kubeconfig /k";
  hold("10.0.0.2", "dead");
  hold("10.0.0.3", "dead-too", "n2");
  EXPECT_THAT(found(), ElementsAre("10.0.0.2 pod_gone"));
  EXPECT_THAT(report.findings.front().remedy, testing::EndsWith(" --sequence 7 --kubeconfig /k"));
  EXPECT_THAT(gone(), ElementsAre("10.0.0.2"));
}

TEST_F(Leaks, WhatTheRuntimeSaidIsSaidOnce) {
  hold("10.0.0.2", "dead").unattached = true;
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(gone(), IsEmpty());
}

}  // namespace
}  // namespace croft::core::audit
