#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "noderanges/commands/node_range_inputs.h"

namespace croft::app {
namespace {

using testing::HasSubstr;

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
  EXPECT_THAT(read({"10.0.0.0/25", 0, 0, 0, ""}),
              HasSubstr("Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to "
                        "--node-cidr-mask-size configured for CIDR family"));
  EXPECT_EQ(read({"10.0.0.0/16", 0, 0, 0, "10.1.0.0/24,fd00::/112,10.2.0.0/24"}),
            "--service-cluster-ip-range can not contain more than two entries");
  EXPECT_EQ(read({"10.0.0.0/16", 0, 0, 0, "10.1.0.0/24,10.2.0.0/24"}),
            "serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)");
  EXPECT_THAT(read({"10.0.0.0/16", 0, 0, 0, "10.1.0.0/24,nonsense"}),
              HasSubstr("|10.1.0.0/24!Unsuccessful parsing of service CIDR \"nonsense\""));
  EXPECT_THAT(read({"10.0.0.1/16", 0, 0, 0, ""}), HasSubstr("--cluster-cidr: "));
  EXPECT_THAT(read({"10.0.0.0/16,", 0, 0, 0, ""}), HasSubstr("--cluster-cidr: "));
}

}  // namespace
}  // namespace croft::app
