#include "base/net/count.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/arbitrary.h"

namespace croft::net {
namespace {

using namespace literals;

static_assert(Count::of("10.0.0.0/26"_prefix) == Count(64) && Count::of("::1/128"_prefix) == Count(1));
static_assert(Count::power_of_two(0) == Count(1) && Count(3) - 5 == Count() && Count(5) - 3 == Count(2));
static_assert(Count::of("::/0"_prefix) > Count::of("::/1"_prefix) && !Count::of("fd00::/64"_prefix).fits_64());
static_assert(Count::of("::/1"_prefix) + Count::of("8000::/1"_prefix) == Count::of("::/0"_prefix));
static_assert(Count::of("::/0"_prefix) - Count::of("::/1"_prefix) == Count::of("::/1"_prefix));
static_assert(Count::of("::/0"_prefix) + 1 == Count::of("::/0"_prefix) && Count::of("::/0"_prefix) - 0 > Count());

TEST(Count, PrintsAllDigits) {
  EXPECT_EQ(Count().to_string(), "0");
  EXPECT_EQ(Count(1'000'000'000).to_string(), "1000000000");
  EXPECT_EQ((Count::of("fd00::/64"_prefix) - 1).to_string(), "18446744073709551615");
  EXPECT_EQ(Count::of("fd00::/64"_prefix).to_string(), "18446744073709551616");
  EXPECT_EQ(Count::of("fd00::/48"_prefix).to_string(), "1208925819614629174706176");
  EXPECT_EQ((Count::of("::/0"_prefix) - 1).to_string(), "340282366920938463463374607431768211455");
  EXPECT_EQ(Count::of("::/0"_prefix).to_string(), "340282366920938463463374607431768211456");
  EXPECT_EQ(Count::of("::/0"_prefix).as_double(), 0x1p128);
  EXPECT_EQ(Count::of("fd00::/64"_prefix).as_double(), 0x1p64);
}

/// Each power of two is twice the one before, digit by digit.
TEST(Count, EveryPowerOfTwoIsExact) {
  std::string digits = "1";
  for (int log2 = 0; log2 <= 128; ++log2) {
    EXPECT_EQ(Count::power_of_two(log2).to_string(), digits) << log2;
    int carry = 0;
    for (auto it = digits.rbegin(); it != digits.rend(); ++it) {
      const int twice = 2 * (*it - '0') + carry;
      *it = static_cast<char>('0' + twice % 10);
      carry = twice / 10;
    }
    if (carry != 0) digits.insert(0, 1, '1');
  }
}

RC_GTEST_PROP(CountProperty, WhatIsAddedCanBeTakenAway, (Prefix a, Prefix b)) {
  const Count sum = Count::of(a) + Count::of(b);
  RC_ASSERT(sum >= Count::of(a) && sum >= Count::of(b));
  if (sum < Count::power_of_two(128)) RC_ASSERT(sum - Count::of(b) == Count::of(a));
  RC_ASSERT(Count::of(a) - Count::of(a) == Count());
}

}  // namespace
}  // namespace croft::net
