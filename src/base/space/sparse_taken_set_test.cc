#include "base/space/sparse_taken_set.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace croft::core::space {
namespace {

constexpr U128 kEnd = U128::max();

TEST(SparseTakenSet, AnEmptySpaceOfAnySizeCostsNothing) {
  const SparseTakenSet set;
  EXPECT_EQ(set.next_free(0, kEnd), U128{0});
  EXPECT_EQ(set.next_free(kEnd, kEnd), kEnd);
  EXPECT_FALSE(set.is_taken(kEnd));
  EXPECT_EQ(set.used_slots(), 0U);
}

TEST(SparseTakenSet, TakesAndGivesBackAtBothEnds) {
  SparseTakenSet set;
  for (const U128 number : {U128{0}, U128{63}, U128{64}, U128{1, 0}, kEnd - 1, kEnd}) {
    EXPECT_TRUE(set.take(number));
    EXPECT_FALSE(set.take(number));
    EXPECT_TRUE(set.is_taken(number));
  }
  EXPECT_EQ(set.taken_count(), 6U);
  EXPECT_EQ(set.next_free(kEnd - 1, kEnd), std::nullopt);
  EXPECT_EQ(set.next_free(0, 0), std::nullopt);
  EXPECT_EQ(set.next_free(0, kEnd), U128{1});
  EXPECT_TRUE(set.give_back(kEnd));
  EXPECT_FALSE(set.give_back(kEnd));
  EXPECT_FALSE(set.give_back(U128{5}));
  EXPECT_EQ(set.next_free(kEnd - 1, kEnd), kEnd);
}

TEST(SparseTakenSet, PassesOverLongRunsOfTakenNumbers) {
  SparseTakenSet set;
  const U128 base{0x20010db800000000, 0};
  for (std::uint64_t i = 0; i < 60'000; ++i) ASSERT_TRUE(set.take(base + i));
  EXPECT_EQ(set.next_free(base, base + 60'000), base + 60'000);
  EXPECT_EQ(set.next_free(base, base + 59'999), std::nullopt);
  EXPECT_LE(set.slots().size(), 2048U);
}

TEST(SparseTakenSet, ARoundThroughALargeRangeDoesNotGrow) {
  SparseTakenSet set;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    set.take(U128{1, i});
    if (i >= 100) set.give_back(U128{1, i - 100});
  }
  EXPECT_EQ(set.taken_count(), 100U);
  EXPECT_LE(set.slots().size(), 64U);
}

RC_GTEST_PROP(SparseTakenSet, IsASetOfNumbers, ()) {
  // Few numbers in few places, so that neighbourhoods fill and slots collide.
  const auto bases = *rc::gen::container<std::vector<std::uint64_t>>(3, rc::gen::arbitrary<std::uint64_t>());
  const auto numbers = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 3), rc::gen::inRange(0, 300)));
  SparseTakenSet set;
  std::set<U128> model;
  for (const auto& [base, offset] : numbers) {
    const U128 number =
        U128{bases[static_cast<std::size_t>(base)], ~std::uint64_t{150}} + static_cast<unsigned>(offset);
    if (model.erase(number) > 0) {
      RC_ASSERT(set.give_back(number));
    } else {
      RC_ASSERT(set.take(number));
      model.insert(number);
    }
    RC_ASSERT(set.taken_count() == model.size());
  }
  for (const std::uint64_t base : bases) {
    U128 first{base, ~std::uint64_t{150}};
    const U128 last = first + 300;
    if (last < first) continue;  // wrapped at the end of all numbers
    for (; first <= last; ++first) {
      RC_ASSERT(set.is_taken(first) == model.contains(first));
      U128 expected = first;
      while (model.contains(expected) && expected < last) ++expected;
      const auto wanted = model.contains(expected) ? std::nullopt : std::optional(expected);
      RC_ASSERT(set.next_free(first, last) == wanted);
    }
  }
  std::set<U128> seen;
  set.for_each_taken([&](U128 number) { seen.insert(number); });
  RC_ASSERT(seen == model);
}

}  // namespace
}  // namespace croft::core::space
