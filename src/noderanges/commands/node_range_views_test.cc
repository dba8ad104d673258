#include "noderanges/commands/node_range_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/croft/json_output.h"
#include "ipam/use/test_world.h"
#include "noderanges/commands/node_range_inputs.h"

namespace croft::app {
namespace {

class NodeRangeViews : public testing::Test, public engine::World {
 protected:
  void SetUp() override {
    configure({{prefix("10.244.0.0/22"), 24}, {prefix("fd00:244::/48"), 64}}, {prefix("10.244.3.0/24")});
    for (const char* node : {"a", "b"}) ASSERT_TRUE(engine::assign_node_ranges(context, node));
  }
  void configure(std::vector<core::ClusterCidr> clusters, std::vector<net::Prefix> excluded) {
    const auto done = engine::configure_node_ranges(context, {std::move(clusters), std::move(excluded)});
    ASSERT_TRUE(done) << done.error().message;
  }
  core::NodeRangeOverview seen() { return engine::read_node_range_overview(context).value(); }
};

TEST_F(NodeRangeViews, Ranges) {
  EXPECT_EQ(table_of(seen().ranges, false).to_string(),
            "NODE   CIDR\n"
            "a      10.244.0.0/24\n"
            "b      10.244.1.0/24\n"
            "a      fd00:244::/64\n"
            "b      fd00:244:0:1::/64\n");
  put(core::node_key("b"), std::nullopt);
  EXPECT_EQ(table_of(seen().ranges, true).to_string(),
            "NODE   CIDR                CLUSTER-CIDR    RECORD\n"
            "a      10.244.0.0/24       10.244.0.0/22   yes\n"
            "b      10.244.1.0/24       10.244.0.0/22   no\n"
            "a      fd00:244::/64       fd00:244::/48   yes\n"
            "b      fd00:244:0:1::/64   fd00:244::/48   no\n");
  EXPECT_THAT(json_of(seen().ranges).json(),
              testing::StartsWith("[\n  {\n    \"node\": \"a\",\n    \"cidr\": \"10.244.0.0/24\",\n"
                                  "    \"clusterCidr\": \"10.244.0.0/22\",\n"
                                  "    \"nodeRecorded\": true\n  },\n"));
}

TEST_F(NodeRangeViews, WhatWantsTheOperatorsEye) {
  EXPECT_EQ(text_of(seen()),
            "CLUSTER-CIDR    NODE-LENGTH   RANGES   TAKEN   EXCLUDED   FREE    USED%\n"
            "10.244.0.0/22   24            4        3       1          1       75.0\n"
            "fd00:244::/48   64            65536    2       0          65534   0.0\n"
            "excluded: 10.244.3.0/24\n");
  put(core::node_key("b"), std::nullopt);
  node("c", {});
  put(core::node_range_key(prefix("10.244.0.128/25")), core::NodeRange{"d", prefix("10.244.0.128/25")});
  configure({{prefix("10.244.0.0/22"), 24}}, {});
  const std::string text = text_of(seen());
  EXPECT_THAT(text, testing::HasSubstr("node/c lacks a range: `croft node range assign c`\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("node/b has a range and no record: `croft node range release b` when it is gone\n"));
  EXPECT_THAT(text, testing::HasSubstr("node/a keeps fd00:244::/64, which lies in no cluster CIDR\n"));
  const std::string yaml = json_of(seen()).yaml();
  EXPECT_THAT(yaml, testing::StartsWith("- configured: true\n  clusterCidrs:\n    - cidr: \"10.244.0.0/22\"\n"
                                        "      nodeLength: 24\n      ranges: 4\n      taken: 2\n"));
  EXPECT_THAT(yaml, testing::HasSubstr("  nodesWithoutRange:\n    - \"c\"\n"));
  EXPECT_THAT(yaml, testing::HasSubstr("  nodesGone:\n    - \"d\"\n    - \"b\"\n"));
}

TEST_F(NodeRangeViews, WhatNodesSay) {
  const std::vector<core::NodeRange> said{{"c", prefix("10.244.0.128/25")}};
  EXPECT_THAT(text_of(seen(), said),
              testing::HasSubstr("node/c says 10.244.0.128/25, which is not recorded; nobody else gets it\n"));
  EXPECT_THAT(json_of(seen(), said).yaml(), testing::HasSubstr("  saidUnrecorded:\n    - node: \"c\"\n"));
}

TEST_F(NodeRangeViews, WhatWasDone) {
  EXPECT_EQ(json_of(engine::assign_node_ranges(context, "c").value()).yaml(),
            "- node: \"c\"\n  cidrs:\n    - \"10.244.2.0/24\"\n    - \"fd00:244:0:2::/64\"\n"
            "  added:\n    - \"10.244.2.0/24\"\n    - \"fd00:244:0:2::/64\"\n");
  EXPECT_EQ(json_of(engine::release_node_ranges(context, "c", core::IfRecorded::release).value()).yaml(),
            "- node: \"c\"\n  released:\n    - \"10.244.2.0/24\"\n    - \"fd00:244:0:2::/64\"\n");
}

TEST_F(NodeRangeViews, SubnetEnv) {
  EXPECT_EQ(subnet_env_of(seen(), "b", 1450, true).value(),
            "FLANNEL_NETWORK=10.244.0.0/22\nFLANNEL_SUBNET=10.244.1.1/24\n"
            "FLANNEL_IPV6_NETWORK=fd00:244::/48\nFLANNEL_IPV6_SUBNET=fd00:244:0:1::1/64\n"
            "FLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n");
  configure({{prefix("10.244.0.0/22"), 24}, {prefix("10.9.0.0/24"), 24}}, {});
  EXPECT_EQ(subnet_env_of(seen(), "a", 1500, false).value(),
            "FLANNEL_NETWORK=10.244.0.0/22,10.9.0.0/24\nFLANNEL_SUBNET=10.244.0.1/24\n"
            "FLANNEL_IPV6_NETWORK=fd00:244::/64\nFLANNEL_IPV6_SUBNET=fd00:244::1/64\n"
            "FLANNEL_MTU=1500\nFLANNEL_IPMASQ=false\n");
  EXPECT_EQ(subnet_env_of(seen(), "x", 1450, true).error().code, ErrorCode::not_found);
  configure({{prefix("10.9.0.0/30"), 32}}, {});
  ASSERT_TRUE(engine::assign_node_ranges(context, "one"));
  EXPECT_EQ(subnet_env_of(seen(), "one", 1450, true).error().code, ErrorCode::invalid_argument);
}

/// A cluster that became dual stack: an object takes no other range for as long as it lives.
TEST_F(NodeRangeViews, NodesWhoseObjectsSayOneFamily) {
  node("c", {});
  const std::vector<core::NodeRange> said{{"a", prefix("10.244.0.0/24")},
                                          {"b", prefix("10.244.1.0/24")},
                                          {"b", prefix("fd00:244:0:1::/64")},
                                          {"c", prefix("fd00:244:0:9::/64")}};
  const std::string text = text_of(seen(), said);
  EXPECT_THAT(text, testing::HasSubstr("node/a stays IPv4 until the node is deleted and rejoins: its object says "
                                       "10.244.0.0/24 and takes no other\n"));
  EXPECT_THAT(text, testing::HasSubstr("node/c stays IPv6 until the node is deleted and rejoins: its object says "
                                       "fd00:244:0:9::/64 and takes no other\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("node/b")));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("node range assign")));
  EXPECT_THAT(json_of(seen(), said).yaml(), testing::HasSubstr("nodesOfOneFamily:\n    - node: \"a\"\n"));
  // Its record has one of IPv6 that nobody routes.
  EXPECT_EQ(subnet_env_of(seen(), "a", 1450, true, said).value(),
            "FLANNEL_NETWORK=10.244.0.0/22\nFLANNEL_SUBNET=10.244.0.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n");
  EXPECT_THAT(subnet_env_of(seen(), "a", 1450, true, {{"a", prefix("10.7.0.0/24")}}).error().message,
              testing::HasSubstr("no range that the object of node \"a\" says is recorded"));
}

TEST(NodeRangeViewsEmpty, NotConfigured) {
  engine::World world;
  const auto seen = engine::read_node_range_overview(world.context).value();
  EXPECT_EQ(text_of(seen), "node ranges are not configured\n");
  EXPECT_THAT(json_of(seen).json(), testing::HasSubstr("\"configured\": false"));
}

/// "CIDR/mask ..." and what is excluded behind a bar, or the error's text.
std::string read(const NodeRangeFlags& flags) {
  const auto done = read_node_range_flags(flags);
  if (!done) return done.error().message;
  std::string text;
  for (const core::ClusterCidr& one : done->spec.cluster_cidrs) {
    text += one.cidr.to_string() + ">" + std::to_string(one.node_length) + " ";
  }
  for (const net::Prefix& cidr : done->spec.excluded) text += "|" + cidr.to_string();
  for (const std::string& warning : done->warnings) text += "!" + warning;
  return text;
}

TEST(NodeRangeFlags, DefaultsAndFamilies) {
  EXPECT_EQ(read({"10.244.0.0/16", 0, 0, 0, ""}), "10.244.0.0/16>24 ");
  EXPECT_EQ(read({"10.244.0.0/16,fd00:244::/48", 0, 0, 0, ""}), "10.244.0.0/16>24 fd00:244::/48>64 ");
  EXPECT_EQ(read({"fd00:244::/48,10.244.0.0/16", 0, 26, 60, "10.96.0.0/12,fd00:96::/112"}),
            "fd00:244::/48>60 10.244.0.0/16>26 |10.96.0.0/12|fd00:96::/112");
  EXPECT_EQ(read({"10.244.0.0/16", 25, 0, 0, ""}), "10.244.0.0/16>25 ");
  EXPECT_EQ(read({"fd00::/48", 56, 0, 0, ""}), "fd00::/48>56 ");
  EXPECT_EQ(read({"10.244.0.0/16,10.245.0.0/16", 0, 25, 0, ""}), "10.244.0.0/16>25 10.245.0.0/16>25 ");
}

TEST(NodeRangeFlags, TheReferencesErrors) {
  EXPECT_EQ(read({}), "Controller: Must specify --cluster-cidr if --allocate-node-cidrs is set");
  EXPECT_EQ(read({"10.0.0.0/16,fd00::/48", 24, 0, 0, ""}),
            "usage of --node-cidr-mask-size is not allowed with dual-stack clusters");
  EXPECT_EQ(read({"10.0.0.0/16", 24, 24, 0, ""}),
            "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if "
            "--node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags");
  EXPECT_EQ(read({"fd00::/48", 0, 24, 0, ""}),
            "usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster");
  EXPECT_EQ(read({"10.0.0.0/16", 0, 0, 64, ""}),
            "usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster");
  EXPECT_THAT(
      read({"10.0.0.0/25", 0, 0, 0, ""}),
      testing::HasSubstr("Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to "
                         "--node-cidr-mask-size configured for CIDR family"));
  EXPECT_EQ(read({"10.0.0.0/16", 0, 0, 0, "10.1.0.0/24,fd00::/112,10.2.0.0/24"}),
            "--service-cluster-ip-range can not contain more than two entries");
  EXPECT_EQ(read({"10.0.0.0/16", 0, 0, 0, "10.1.0.0/24,10.2.0.0/24"}),
            "serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)");
  EXPECT_THAT(read({"10.0.0.0/16", 0, 0, 0, "10.1.0.0/24,nonsense"}),
              testing::HasSubstr("|10.1.0.0/24!Unsuccessful parsing of service CIDR \"nonsense\""));
  EXPECT_THAT(read({"10.0.0.1/16", 0, 0, 0, ""}), testing::HasSubstr("--cluster-cidr: "));
  EXPECT_THAT(read({"10.0.0.0/16,", 0, 0, 0, ""}), testing::HasSubstr("--cluster-cidr: "));
}

}  // namespace
}  // namespace croft::app
