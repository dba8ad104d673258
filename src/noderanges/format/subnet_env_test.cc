#include "noderanges/format/subnet_env.h"

#include <gtest/gtest.h>

namespace croft::wire {
namespace {

using namespace net::literals;

// As flanneld v0.26 wrote them (docs/notes/node-ranges.md#subnet-env).
constexpr const char* kFour =
    "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n";
constexpr const char* kBoth =
    "FLANNEL_NETWORK=10.244.0.0/16,10.245.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\n"
    "FLANNEL_IPV6_NETWORK=fd00:244::/48\nFLANNEL_IPV6_SUBNET=fd00:244:0:1::1/64\n"
    "FLANNEL_MTU=1500\nFLANNEL_IPMASQ=false\n";
constexpr const char* kSix =
    "FLANNEL_IPV6_NETWORK=fd00:244::/48\nFLANNEL_IPV6_SUBNET=fd00:244::1/64\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n";

TEST(SubnetEnv, Bytes) {
  SubnetEnv env;
  env.families = {{{"10.244.0.0/16"_prefix}, first_usable("10.244.1.0/24"_prefix).value()}};
  EXPECT_EQ(encode_subnet_env(env), kFour);
  env = {{{{"10.244.0.0/16"_prefix, "10.245.0.0/16"_prefix}, {"10.244.1.1"_ip, 24}},
          {{"fd00:244::/48"_prefix}, first_usable("fd00:244:0:1::/64"_prefix).value()}},
         1500,
         false};
  EXPECT_EQ(encode_subnet_env(env), kBoth);
  env = {{{{"fd00:244::/48"_prefix}, {"fd00:244::1"_ip, 64}}}};
  EXPECT_EQ(encode_subnet_env(env), kSix);
}

TEST(SubnetEnv, TheFirstUsableAddress) {
  EXPECT_EQ(first_usable("10.0.0.0/31"_prefix).value().to_string(), "10.0.0.1/31");
  EXPECT_EQ(first_usable("10.0.0.4/32"_prefix).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(first_usable("255.255.255.255/32"_prefix).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace croft::wire
