#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ipam/use/test_world.h"
#include "noderanges/use/node_range.h"

namespace croft::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The objects of a cluster's nodes.
class SomeNodes final : public NodeCidrs {
 public:
  [[nodiscard]] Result<std::vector<OfNode>> all() override { return nodes; }
  [[nodiscard]] Result<void> publish(const std::string& node, const std::vector<net::Prefix>& cidrs) override {
    if (publish_error) return fail(*publish_error);
    std::set<net::Family> families;
    for (const net::Prefix& cidr : cidrs) {
      if (families.insert(cidr.family()).second) continue;
      return fail(ErrorCode::refused_by_configuration, "may specify no more than one CIDR for each IP family");
    }
    OfNode& found = of(node);
    EXPECT_THAT(found.cidrs, IsEmpty()) << "the API lets nobody change them";
    found.cidrs = cidrs;
    return {};
  }
  OfNode& of(const std::string& node) { return *std::ranges::find(nodes, node, &OfNode::node); }
  std::vector<OfNode> nodes;
  std::optional<Error> publish_error;
};

struct Cluster : World {
  Cluster() {
    const core::NodeRangeSpec spec{{{prefix("10.244.0.0/16"), 24}, {prefix("fd00::/56"), 64}}, {}};
    EXPECT_TRUE(configure_node_ranges(context, spec));
  }
  void make(const std::string& name, const std::vector<const char*>& cidrs = {}) {
    node(name, {});
    NodeCidrs::OfNode& made = nodes.nodes.emplace_back();
    made.node = name;
    for (const char* cidr : cidrs) made.cidrs.push_back(prefix(cidr));
  }
  /// As the controller does it; false when nothing may be given.
  bool pass() {
    auto found = adopt_node_cidrs(context, nodes, memory, false);
    EXPECT_TRUE(found) << found.error().message;
    adopted = *std::move(found);
    if (adopted.rival) return false;
    ReconcileOptions options;
    options.as_they_are = adopted.as_they_are;
    options.said = adopted.said;
    EXPECT_TRUE(reconcile_node_ranges(context, gone, options));
    auto done = say_node_cidrs(context, nodes);
    EXPECT_TRUE(done) << done.error().message;
    said = *std::move(done);
    return true;
  }
  /// A node whose ranges are recorded, and whose object could not be told of them; false as of pass().
  bool record_unsaid(const std::string& name) {
    make(name);
    nodes.publish_error = Error{ErrorCode::unavailable, "the API is away", {}};
    const bool may_give = pass();
    nodes.publish_error.reset();
    return may_give;
  }
  std::vector<std::string> said_by(const std::string& node) {
    std::vector<std::string> texts;
    for (const net::Prefix& cidr : nodes.of(node).cidrs) texts.push_back(cidr.to_string());
    return texts;
  }

  SomeNodes nodes;
  NodeCidrsMemory memory;
  GoneNodes gone;
  NodeCidrsAdopted adopted;
  NodeCidrsSaid said;
};

TEST(NodeCidrs, ANewNodeSaysItsRangesThatOfTheFirstClusterCidrFirst) {
  Cluster cluster;
  cluster.make("oak");
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.0.0/24", "fd00::/64"));
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said.said, IsEmpty());
}

/// A controller that dies between the record and the object.
TEST(NodeCidrs, WhatIsRecordedIsSaidByTheNextPass) {
  Cluster cluster;
  cluster.make("oak");
  cluster.nodes.publish_error = Error{ErrorCode::unavailable, "the API is away", {}};
  ASSERT_TRUE(cluster.pass());
  ASSERT_EQ(cluster.said.failed.size(), 1U);
  EXPECT_THAT(cluster.said_by("oak"), IsEmpty());
  cluster.nodes.publish_error.reset();
  cluster.make("elm");
  cluster.memory = {};  // another controller
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.0.0/24", "fd00::/64"));
  EXPECT_THAT(cluster.said_by("elm"), ElementsAre("10.244.1.0/24", "fd00:0:0:1::/64"));
}

TEST(NodeCidrs, BesideAnotherProgramNothingIsGiven) {
  Cluster cluster;
  ASSERT_TRUE(cluster.record_unsaid("oak"));
  cluster.nodes.of("oak").cidrs = {World::prefix("10.244.77.0/24")};
  cluster.nodes.of("oak").written_by = "kube-controller-manager";
  cluster.make("elm");
  EXPECT_FALSE(cluster.pass());
  EXPECT_THAT(*cluster.adopted.rival,
              testing::AllOf(HasSubstr("oak"), HasSubstr("10.244.77.0/24"), HasSubstr("kube-controller-manager"),
                             HasSubstr("--allocate-node-cidrs=false")));
  EXPECT_FALSE(cluster.pass()) << "for good";
  EXPECT_THAT(cluster.said_by("elm"), IsEmpty());
}

TEST(NodeCidrs, OneNodesFaultKeepsNobodyElseWaiting) {
  Cluster cluster;
  cluster.make("oak");
  cluster.make("elm");
  cluster.make("ash");
  cluster.make("out", {"192.168.0.0/24"});
  cluster.nodes.of("elm").damage = Error{ErrorCode::corrupt, "node elm says the range \"odd\"", {}};
  cluster.nodes.of("ash").being_deleted = true;
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.0.0/24", "fd00::/64"));
  EXPECT_THAT(cluster.said_by("elm"), IsEmpty());
  EXPECT_THAT(cluster.said_by("ash"), IsEmpty());
  std::vector<std::string> failed;
  for (const auto& [node, error] : cluster.adopted.failed) failed.push_back(node);
  EXPECT_THAT(failed, ElementsAre("elm", "out"));
}

std::vector<std::string> failed_in(const NodeCidrsAdopted& adopted) {
  std::vector<std::string> nodes;
  for (const auto& [node, error] : adopted.failed) nodes.push_back(node);
  return nodes;
}

/// A record of before is in its grace yet, and then it is gone while another node says its range.
TEST(NodeCidrs, WhatAnotherNodesRecordStandsInTheWayOfIsNobodyElses) {
  Cluster cluster;
  cluster.make("old");
  ASSERT_TRUE(cluster.pass());
  cluster.nodes.nodes.clear();
  cluster.put(core::node_key("old"), std::nullopt);
  cluster.make("heir", {"10.244.0.0/24", "fd00::/64"});
  cluster.make("a");
  cluster.make("b");
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(failed_in(cluster.adopted), ElementsAre("heir", "heir"));
  ASSERT_EQ(cluster.adopted.overlaps.size(), 2U);
  EXPECT_EQ(
      cluster.adopted.overlaps.front(),
      (core::SaidOverlap{{"heir", World::prefix("10.244.0.0/24")}, {"old", World::prefix("10.244.0.0/24")}, true}));
  ASSERT_TRUE(release_node_ranges(cluster.context, "old", core::IfRecorded::refuse));
  ReconcileOptions options;
  options.said = cluster.adopted.said;
  options.as_they_are = cluster.adopted.as_they_are;
  cluster.make("c");
  // The round of the cursor: without what is said, one of these would get the heir's.
  const core::NodeRangeSpec small{{{World::prefix("10.244.0.0/22"), 24}, {World::prefix("fd00::/62"), 64}}, {}};
  ASSERT_TRUE(configure_node_ranges(cluster.context, small));
  cluster.make("d");
  const auto done = reconcile_node_ranges(cluster.context, cluster.gone, options);
  ASSERT_TRUE(done);
  ASSERT_EQ(done->assigned.size(), 1U);
  EXPECT_EQ(done->assigned.front().cidrs,
            (std::vector{World::prefix("10.244.3.0/24"), World::prefix("fd00:0:0:3::/64")}));
  ASSERT_EQ(done->refused.size(), 1U);
  EXPECT_THAT(done->refused.front().refusal->message, HasSubstr("beside 1 that nodes' objects say without a record"));
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.adopted.adopted, testing::SizeIs(2)) << "and now the heir's is its own by the record too";
}

/// Else two nodes would say one range.
TEST(NodeCidrs, ARecordIsNotSaidBesideAnotherNodesWord) {
  Cluster cluster;
  ASSERT_TRUE(cluster.record_unsaid("oak"));
  cluster.make("elm", {"10.244.0.0/25"});
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), IsEmpty());
  ASSERT_EQ(cluster.said.failed.size(), 1U);
  EXPECT_EQ(cluster.said.failed.front().first, "oak");
  EXPECT_THAT(
      cluster.said.failed.front().second.message,
      testing::AllOf(HasSubstr("elm"), HasSubstr("10.244.0.0/25"), HasSubstr("croft node range release oak --force")));
  ASSERT_TRUE(release_node_ranges(cluster.context, "oak", core::IfRecorded::release));
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.1.0/24", "fd00:0:0:1::/64"));
}

TEST(NodeCidrs, WhatAnotherNodeSaysIsNotTakenDownByHand) {
  Cluster cluster;
  cluster.make("oak");
  cluster.make("elm", {"10.244.7.0/25"});
  const auto look = look_at_node_cidrs(cluster.nodes);
  ASSERT_TRUE(look);
  const auto done = adopt_node_range(cluster.context, "oak", World::prefix("10.244.7.0/24"), look->said);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::already_exists);
  EXPECT_THAT(done.error().message, testing::AllOf(HasSubstr("10.244.7.0/25"), HasSubstr("elm")));
  EXPECT_TRUE(adopt_node_range(cluster.context, "elm", World::prefix("10.244.7.0/25"), look->said)) << "its own";
}

/// Another controller gave one after this one's look: what it gives back a moment later is no trouble to tell of.
TEST(NodeCidrs, OfTwoRangesThatWereGivenAtOnceOneIsSaid) {
  Cluster cluster;
  store::Capabilities one_by_one = cluster.store.capabilities();
  one_by_one.atomic_commit = false;
  cluster.store.set_capabilities(one_by_one);
  cluster.make("oak");
  for (const char* cidr : {"10.244.3.0/24", "10.244.7.0/24", "fd00:0:0:1::/64"}) {
    const core::NodeRange range{"oak", World::prefix(cidr)};
    cluster.put(core::node_range_key(range.cidr), range);
  }
  const auto done = say_node_cidrs(cluster.context, cluster.nodes);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(done->failed, IsEmpty());
  ASSERT_EQ(done->surplus.size(), 1U);
  EXPECT_EQ(done->surplus[0].range.cidr.to_string(), "10.244.7.0/24");
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.3.0/24", "fd00:0:0:1::/64"));
}

TEST(NodeCidrs, WithoutConfigurationNothingIsDone) {
  World world;
  SomeNodes nodes;
  nodes.nodes.push_back({"oak", {World::prefix("10.0.0.0/24")}, {}, false, {}});
  NodeCidrsMemory memory;
  EXPECT_THAT(adopt_node_cidrs(world.context, nodes, memory, false)->adopted, IsEmpty());
  EXPECT_THAT(say_node_cidrs(world.context, nodes)->said, IsEmpty());
}

}  // namespace
}  // namespace croft::engine
