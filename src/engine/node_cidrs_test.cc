#include "engine/node_cidrs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/test_world.h"

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
    EXPECT_TRUE(reconcile_node_ranges(context, gone, options));
    auto done = say_node_cidrs(context, nodes);
    EXPECT_TRUE(done) << done.error().message;
    said = *std::move(done);
    return true;
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

TEST(NodeCidrs, WhatNodesSayAlreadyIsNobodyElses) {
  Cluster cluster;
  cluster.make("oak");
  cluster.make("elm", {"10.244.0.0/24"});
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("elm"), ElementsAre("10.244.0.0/24"))
      << "and gets no second family, which it could not say";
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.1.0/24", "fd00::/64"));
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
  cluster.make("oak");
  cluster.nodes.publish_error = Error{ErrorCode::unavailable, "the API is away", {}};
  ASSERT_TRUE(cluster.pass());
  cluster.nodes.publish_error.reset();
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

/// Another controller of ours said what is recorded: that is no other program.
TEST(NodeCidrs, WhatIsRecordedMaySomebodyElseHaveSaid) {
  Cluster cluster;
  cluster.make("oak");
  cluster.nodes.publish_error = Error{ErrorCode::unavailable, "the API is away", {}};
  ASSERT_TRUE(cluster.pass());
  cluster.nodes.publish_error.reset();
  cluster.nodes.of("oak").cidrs = {World::prefix("fd00::/64"), World::prefix("10.244.0.0/24")};
  EXPECT_TRUE(cluster.pass());
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
