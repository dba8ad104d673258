#include "base/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Nearest, CountsTypingErrors) {
  EXPECT_EQ(typing_errors_between("pool", "pool"), 0U);
  EXPECT_EQ(typing_errors_between("pol", "pool"), 1U);
  EXPECT_EQ(typing_errors_between("cdir", "cidr"), 1U);  // one swap
  EXPECT_EQ(typing_errors_between("", "abc"), 3U);
  EXPECT_EQ(typing_errors_between("abc", ""), 3U);
  EXPECT_EQ(typing_errors_between("node", "pool"), 3U);
}

TEST(Nearest, NamesWhatIsMeantTheNearestFirst) {
  EXPECT_THAT(nearest_words("pooll", {"node", "pools", "pool"}), ElementsAre("pool", "pools"));
  EXPECT_THAT(nearest_words("ipv4_pool", {"ipv4_pools", "ipv6_pools"}), ElementsAre("ipv4_pools", "ipv6_pools"));
  EXPECT_THAT(nearest_words("host", {"host-local", "node"}), ElementsAre("host-local"));
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  EXPECT_THAT(nearest_words("frobnicate", {"node", "pool"}), IsEmpty());
  EXPECT_THAT(nearest_words("x", {"y"}), IsEmpty());
  EXPECT_THAT(nearest_words("", {"y"}), IsEmpty());
  EXPECT_THAT(nearest_words(std::string(1 << 20, 'x'), {std::string(1 << 20, 'x')}), IsEmpty());
  EXPECT_EQ(did_you_mean("frobnicate", {"pool"}), "");
}

TEST(Nearest, SaysItAsAQuestion) {
  EXPECT_EQ(did_you_mean("pol", {"pool"}), "; did you mean \"pool\"?");
  EXPECT_EQ(did_you_mean("pooll", {"pool", "pools"}), "; did you mean \"pool\" or \"pools\"?");
}

}  // namespace
}  // namespace croft
