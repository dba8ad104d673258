#include "noderanges/format/subnet_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire {
namespace {

using namespace net::literals;

// As flanneld v0.26 wrote them (docs/reference/node-ranges.md#subnet-env).
constexpr const char* kFour =
    "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n";
constexpr const char* kBoth =
    "FLANNEL_NETWORK=10.244.0.0/16,10.245.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\n"
    "FLANNEL_IPV6_NETWORK=fd00:244::/48\nFLANNEL_IPV6_SUBNET=fd00:244:0:1::1/64\n"
    "FLANNEL_MTU=1500\nFLANNEL_IPMASQ=false\n";
constexpr const char* kSix =
    "FLANNEL_IPV6_NETWORK=fd00:244::/48\nFLANNEL_IPV6_SUBNET=fd00:244::1/64\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n";

TEST(SubnetEnv, BytesBothWays) {
  SubnetEnv env;
  env.families = {{{"10.244.0.0/16"_prefix}, first_usable("10.244.1.0/24"_prefix).value()}};
  EXPECT_EQ(encode_subnet_env(env), kFour);
  EXPECT_EQ(decode_subnet_env(kFour).value(), env);
  env = {{{{"10.244.0.0/16"_prefix, "10.245.0.0/16"_prefix}, {"10.244.1.1"_ip, 24}},
          {{"fd00:244::/48"_prefix}, first_usable("fd00:244:0:1::/64"_prefix).value()}},
         1500,
         false};
  EXPECT_EQ(encode_subnet_env(env), kBoth);
  EXPECT_EQ(decode_subnet_env(kBoth).value(), env);
  EXPECT_EQ(encode_subnet_env(decode_subnet_env(kSix).value()), kSix);
}

TEST(SubnetEnv, LinesInAnyOrderWithOthersBetween) {
  const auto env = decode_subnet_env(
      "# by hand\r\n\nFLANNEL_IPMASQ=true\r\nFLANNEL_MTU=9\nFLANNEL_SUBNET=10.244.1.1/24\nOTHER=x=y\n"
      "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_MTU=1450");
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ(encode_subnet_env(*env), kFour);
}

TEST(SubnetEnv, ErrorsNameTheKey) {
  const auto error = [](const std::string& text) {
    const auto env = decode_subnet_env(text);
    return env ? "none" : env.error().message;
  };
  EXPECT_EQ(error(""),
            "missing FLANNEL_NETWORK, FLANNEL_IPV6_NETWORK, FLANNEL_SUBNET, FLANNEL_IPV6_SUBNET, FLANNEL_MTU, "
            "FLANNEL_IPMASQ");
  EXPECT_EQ(error("FLANNEL_NETWORK=10.244.0.0/16\n"), "missing FLANNEL_SUBNET");
  EXPECT_EQ(error("FLANNEL_IPV6_SUBNET=fd00::1/64\n"), "missing FLANNEL_IPV6_NETWORK");
  const std::string range = "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\n";
  EXPECT_EQ(error(range + "FLANNEL_MTU=1450\n"), "missing FLANNEL_IPMASQ");
  EXPECT_EQ(error(range + "FLANNEL_MTU=1450\nFLANNEL_IPMASQ=yes\n"),
            "FLANNEL_IPMASQ: \"yes\" is neither true nor false");
  for (const char* mtu : {"", "67", "65536", "-1", "1e3", "99999999999999999999"}) {
    EXPECT_THAT(error(range + "FLANNEL_MTU=" + mtu + "\nFLANNEL_IPMASQ=true\n"), testing::HasSubstr("is no MTU"));
  }
  EXPECT_THAT(error("FLANNEL_NETWORK=10.244.0.0/16,\nFLANNEL_SUBNET=10.244.1.1/24\n"),
              testing::StartsWith("FLANNEL_NETWORK: \"\" is no CIDR"));
  EXPECT_THAT(error("FLANNEL_NETWORK=fd00::/48\nFLANNEL_SUBNET=10.244.1.1/24\n"),
              testing::StartsWith("FLANNEL_NETWORK: fd00::/48 is of the other family"));
  EXPECT_THAT(error("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1\n"),
              testing::StartsWith("FLANNEL_SUBNET: invalid"));
  EXPECT_THAT(error(std::string(kSubnetEnvBytesMax + 1, 'x')), testing::HasSubstr("too long"));
}

TEST(SubnetEnv, TheFirstUsableAddress) {
  EXPECT_EQ(first_usable("10.0.0.0/31"_prefix).value().to_string(), "10.0.0.1/31");
  EXPECT_EQ(first_usable("10.0.0.4/32"_prefix).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(first_usable("255.255.255.255/32"_prefix).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace croft::wire
