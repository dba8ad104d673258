#include "base/net/intervals.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/arbitrary.h"

namespace croft::net {
namespace {

using namespace literals;

TEST(Intervals, NeighboursAndOverlapsBecomeOne) {
  const Intervals set({"10.0.0.128/25"_prefix, "10.0.0.0/25"_prefix, "10.0.0.7/32"_prefix, "10.0.2.0/24"_prefix,
                       "::/0"_prefix, Prefix{}, "255.255.255.255/32"_prefix});
  EXPECT_EQ(set.size(), 4U);
  EXPECT_TRUE(set.covers("10.0.0.0/24"_prefix));
  EXPECT_FALSE(set.covers("10.0.0.0/23"_prefix));
  EXPECT_TRUE(set.overlaps("10.0.0.0/23"_prefix));
  EXPECT_FALSE(set.overlaps("10.0.1.0/24"_prefix));
  EXPECT_EQ(set.count_in("10.0.0.0/22"_prefix), Count(512));
  EXPECT_EQ(set.count_in("::/0"_prefix), Count::power_of_two(128));
  EXPECT_EQ(set.last_from("10.0.0.3"_ip), "10.0.0.255"_ip);
  EXPECT_FALSE(set.last_from("10.0.1.3"_ip));
  EXPECT_FALSE(Intervals().contains("10.0.0.1"_ip));
  EXPECT_TRUE(Intervals().empty());
}

/// Against the definition, on prefixes close enough to each other to touch.
RC_GTEST_PROP(IntervalsProperty, SayWhatThePrefixesSay, (std::vector<std::pair<std::uint8_t, std::uint8_t>> shapes)) {
  const auto near = [](std::uint8_t value, int length) {
    return Prefix::containing(Address::v6({0xfd00'0000'0000'0000, value}), 120 + length % 9);
  };
  std::vector<Prefix> prefixes;
  for (const auto& [value, length] : shapes) prefixes.push_back(near(value, length));
  const Intervals set(prefixes);
  const auto is_in = [&](const Address& address) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const Prefix& p) { return p.contains(address); });
  };
  const Prefix asked = near(*rc::gen::arbitrary<std::uint8_t>(), *rc::gen::inRange(0, 9));
  std::uint64_t inside = 0;
  for (std::optional<Address> a = asked.first(); a && asked.contains(*a); a = a->next()) {
    RC_ASSERT(set.contains(*a) == is_in(*a));
    if (!is_in(*a)) continue;
    ++inside;
    const Address last = set.last_from(*a).value();
    RC_ASSERT(is_in(last));
    RC_ASSERT(!is_in(last.next().value()));
  }
  RC_ASSERT(set.count_in(asked) == Count(inside));
  RC_ASSERT(set.overlaps(asked) == (inside > 0));
  RC_ASSERT(set.covers(asked) == (Count(inside) == Count::of(asked)));
}

}  // namespace
}  // namespace croft::net
