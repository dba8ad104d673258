#include "install/commands/pool_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

core::Pool pool(const char* name, const char* cidr, bool disabled = false) {
  core::Pool made;
  made.name = name;
  made.cidr = net::Prefix::parse(cidr).value();
  made.disabled = disabled;
  return made;
}
const core::Pool kFour = pool("default-ipv4-ippool", "10.244.0.0/16");
const core::Pool kSix = pool("default-ipv6-ippool", "fd00:10:244::/56");

TEST(PoolFamilies, WhatThePoolsHaveIsFine) {
  EXPECT_THAT(compare_families({true, false}, {kFour}).value(), IsEmpty());
  EXPECT_THAT(compare_families({false, true}, {kSix}).value(), IsEmpty());
  EXPECT_THAT(compare_families({true, true}, {kFour, kSix}).value(), IsEmpty());
}

TEST(PoolFamilies, WithoutAnyPoolNothingIsSaid) {
  for (const Families& wanted : {Families{true, false}, Families{false, true}, Families{true, true}}) {
    EXPECT_THAT(compare_families(wanted, {}).value(), IsEmpty());
  }
}

TEST(PoolFamilies, AFamilyOfWhichThereIsNoneIsRefused) {
  const auto of_six = compare_families({true, false}, {kSix});
  ASSERT_FALSE(of_six);
  EXPECT_EQ(of_six.error().code, ErrorCode::refused_by_configuration);
  EXPECT_THAT(of_six.error().message,
              AllOf(HasSubstr("are to get IPv4"), HasSubstr("IPv6 alone"), HasSubstr("default-ipv6-ippool"),
                    HasSubstr("--ipv6 --no-ipv4"), HasSubstr("install.ipv4=false")));
  const auto of_four = compare_families({true, true}, {kFour});
  ASSERT_FALSE(of_four);
  EXPECT_THAT(of_four.error().message, AllOf(HasSubstr("are to get IPv6"), HasSubstr("neither --ipv6")));
  EXPECT_FALSE(compare_families({true, true}, {kSix}));
  EXPECT_FALSE(compare_families({false, true}, {kFour}));
}

/// Its pods wait until it is enabled again, and the node's agent starts meanwhile.
TEST(PoolFamilies, ADisabledPoolIsOne) {
  EXPECT_TRUE(compare_families({true, true}, {kFour, pool("six", "fd00::/56", true)}));
}

TEST(PoolFamilies, PoolsThatServeNobodyAreTold) {
  EXPECT_THAT(compare_families({true, false}, {kFour, kSix}).value(),
              ElementsAre(AllOf(HasSubstr("pools of IPv6 (\"default-ipv6-ippool\")"), HasSubstr("install.ipv6=true"))));
  EXPECT_THAT(compare_families({false, true}, {kFour, kSix}).value(), ElementsAre(HasSubstr("pools of IPv4")));
  EXPECT_THAT(compare_families({true, false}, {kFour, pool("six", "fd00::/56", true)}).value(), IsEmpty());
}

}  // namespace
}  // namespace croft::app
