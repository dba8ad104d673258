#include "hostlocal/directory/index_file.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace croft::store::hostlocal {
namespace {

using net::Address;
using net::U128;

const std::vector<Address> kNone;
constexpr Address kFirst = Address::v6(U128{0});
constexpr Address kLast = Address::v6(U128::max());

Address at(U128 number) { return Address::v6(number); }

TEST(HostLocalView, TakesAndGivesBackAtBothEnds) {
  View view(kNone);
  EXPECT_EQ(view.next_free(kFirst, kLast), kFirst);
  EXPECT_EQ(view.next_free(kLast, kLast), kLast);
  const std::vector<U128> numbers{0, 63, 64, {1, 0}, U128::max() - 1, U128::max()};
  for (const U128 number : numbers) view.add(at(number), 1);
  EXPECT_EQ(view.reservation_count(), numbers.size());
  EXPECT_EQ(view.next_free(at(U128::max() - 1), kLast), std::nullopt);
  EXPECT_EQ(view.next_free(kFirst, kFirst), std::nullopt);
  EXPECT_EQ(view.next_free(kFirst, kLast), at(1));
  view.remove(kLast, 1);
  EXPECT_EQ(view.next_free(at(U128::max() - 1), kLast), kLast);
  EXPECT_FALSE(view.failed());
  view.remove(kLast, 1);
  EXPECT_TRUE(view.failed()) << "what was not there can't go";
}

TEST(HostLocalView, PassesOverLongRunsOfTakenAddresses) {
  std::vector<Address> taken;
  for (std::uint32_t i = 0; i < 60'000; ++i) taken.push_back(Address::v4(0x0a000000 + i));
  const View view(taken);
  EXPECT_EQ(view.reservation_count(), 60'000U);
  EXPECT_EQ(view.next_free(Address::v4(0x0a000000), Address::v4(0x0a000000 + 60'000)),
            Address::v4(0x0a000000 + 60'000));
  EXPECT_EQ(view.next_free(Address::v4(0x0a000000), Address::v4(0x0a000000 + 59'999)), std::nullopt);
}

TEST(HostLocalView, WithoutRoomItHasFailed) {
  View view(kNone);
  for (std::uint64_t i = 0; i < 65; ++i) view.add(at({i, 0}), 1);
  EXPECT_TRUE(view.failed());
  EXPECT_FALSE(view.has_room());
}

RC_GTEST_PROP(HostLocalView, IsAMapOfHolders, ()) {
  // Few numbers in few places and few hashes, so that neighbourhoods fill and slots and cells collide.
  const auto bases = *rc::gen::container<std::vector<std::uint64_t>>(3, rc::gen::arbitrary<std::uint64_t>());
  const auto numbers = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 3), rc::gen::inRange(0, 300)));
  const auto number_of = [&](const std::pair<int, int>& pick) {
    return U128{bases[static_cast<std::size_t>(pick.first)], ~std::uint64_t{150}} + static_cast<unsigned>(pick.second);
  };
  std::vector<Address> all;
  for (const auto& pick : numbers) all.push_back(at(number_of(pick)));
  View view(all);
  for (const Address& address : all) view.see_nothing(address);
  std::map<U128, std::uint32_t> model;
  for (const auto& pick : numbers) {
    const U128 number = number_of(pick);
    const auto known = model.find(number);
    if (known != model.end()) {
      view.remove(at(number), known->second);
      model.erase(known);
    } else {
      const auto hash = static_cast<std::uint32_t>(pick.second % 5);
      view.add(at(number), hash);
      model.emplace(number, hash);
    }
    RC_ASSERT(view.reservation_count() == model.size());
  }
  RC_ASSERT(!view.failed());
  for (const std::uint64_t base : bases) {
    U128 first{base, ~std::uint64_t{150}};
    const U128 last = first + 300;
    if (last < first) continue;  // wrapped at the end of all numbers
    for (; first <= last; ++first) {
      U128 expected = first;
      while (model.contains(expected) && expected < last) ++expected;
      const auto wanted = model.contains(expected) ? std::nullopt : std::optional(at(expected));
      RC_ASSERT(view.next_free(at(first), at(last)) == wanted);
    }
  }
  for (std::uint32_t hash = 0; hash < 5; ++hash) {
    std::vector<Address> expected;
    for (const auto& [number, its] : model) {
      if (its == hash) expected.push_back(at(number).unmapped());
    }
    std::sort(expected.begin(), expected.end());
    RC_ASSERT(view.with_hash(hash) == expected);
  }
}

}  // namespace
}  // namespace croft::store::hostlocal
