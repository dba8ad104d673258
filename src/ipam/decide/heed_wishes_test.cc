#include "ipam/decide/heed_wishes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::core {
namespace {

using testing::ElementsAre;

net::Address ip(const char* text) { return net::Address::parse(text).value(); }

/// As a configuration asks: pool a of IPv4, an address.
AssignRequest configured() {
  AssignRequest request;
  request.count = {1, 0};
  request.pools.v4 = {asked_pool("a")};
  request.addresses = {ip("10.0.0.9")};
  return request;
}

TEST(HeedWishes, NothingSaidChangesNothing) {
  AssignRequest request = configured();
  ASSERT_TRUE(heed_wishes({}, {}, request));
  EXPECT_EQ(request.pools.v4, configured().pools.v4);
  EXPECT_EQ(request.count.v4, 1U);
  EXPECT_EQ(request.count.v6, 0U);
  EXPECT_EQ(request.addresses, configured().addresses);
}

TEST(HeedWishes, ThePodCountsBeforeItsNamespaceAndThatBeforeTheConfiguration) {
  AnnotatedWishes said;
  said.name_space.pools = {{{asked_pool("of-namespace")}}, {{asked_pool("six-of-namespace")}}};
  said.name_space.families = net::PerFamily<bool>{true, true};
  AssignRequest request = configured();
  ASSERT_TRUE(heed_wishes(said, {}, request));
  EXPECT_THAT(request.pools.v4, ElementsAre(asked_pool("of-namespace")));
  EXPECT_THAT(request.pools.v6, ElementsAre(asked_pool("six-of-namespace")));
  EXPECT_EQ(request.count.v6, 1U);
  said.pod.pools.v4 = {asked_pool("of-pod")};
  said.pod.families = net::PerFamily<bool>{false, true};
  said.pod.addresses = {ip("fd00::9"), ip("10.0.0.9")};
  request = configured();
  ASSERT_TRUE(heed_wishes(said, {}, request));
  EXPECT_THAT(request.pools.v4, ElementsAre(asked_pool("of-pod")));
  EXPECT_THAT(request.pools.v6, ElementsAre(asked_pool("six-of-namespace")));
  EXPECT_EQ(request.count.v4, 0U);
  EXPECT_EQ(request.count.v6, 1U);
  EXPECT_THAT(request.addresses, ElementsAre(ip("10.0.0.9"), ip("fd00::9")));
}

TEST(HeedWishes, WhatTheRuntimeHandedOverStays) {
  AnnotatedWishes said;
  said.pod.pools = {{{asked_pool("x")}}, {{asked_pool("y")}}};
  said.name_space = said.pod;
  said.pod.addresses = {ip("10.0.0.10")};
  said.pod.families = net::PerFamily<bool>{false, true};
  AssignRequest request = configured();
  ASSERT_TRUE(heed_wishes(said, {{false, true}, false, false}, request));
  EXPECT_THAT(request.pools.v4, ElementsAre(asked_pool("a")));
  EXPECT_THAT(request.pools.v6, ElementsAre(asked_pool("y")));
  EXPECT_EQ(request.count.v4, 1U);
  EXPECT_THAT(request.addresses, ElementsAre(ip("10.0.0.9")));
}

TEST(HeedWishes, AddressesAreBounded) {
  AnnotatedWishes said;
  for (std::uint8_t i = 0; i < kWishedAddressesMax; ++i) {
    said.pod.addresses.push_back(ip(("10.0.1." + std::to_string(i)).c_str()));
  }
  AssignRequest request = configured();
  const auto heeded = heed_wishes(said, {}, request);
  ASSERT_FALSE(heeded);
  EXPECT_EQ(heeded.error().code, ErrorCode::invalid_argument);
}

TEST(HeedWishes, SomethingHasToBeAsked) {
  AssignRequest request;
  request.count = {0, 0};
  EXPECT_FALSE(check_something_is_asked(request));
  request.addresses = {ip("10.0.0.9")};
  EXPECT_TRUE(check_something_is_asked(request));
}

}  // namespace
}  // namespace croft::core
