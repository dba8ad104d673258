#include "base/space/dense_bitmap.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace croft::core::space {
namespace {

std::vector<std::uint32_t> taken_of(const DenseBitmap& bitmap) {
  std::vector<std::uint32_t> taken;
  bitmap.for_each_taken([&](Ordinal ordinal) { taken.push_back(ordinal.value); });
  return taken;
}

DenseBitmap of_words(std::uint32_t size, const std::vector<std::uint64_t>& words) {
  DenseBitmap bitmap(size);
  bitmap.set_words([&](std::size_t i) { return i < words.size() ? words[i] : 0; });
  return bitmap;
}

TEST(DenseBitmap, WordsReplaceWhatWasTaken) {
  const std::vector<std::uint64_t> words{0x8000000000000001U, 0xffU, 0xffU};
  EXPECT_EQ(taken_of(of_words(66, words)), (std::vector<std::uint32_t>{0, 63, 64, 65}));
  EXPECT_EQ(of_words(66, words).free_count(), 62U);
  EXPECT_EQ(of_words(66, words).words(), (std::vector<std::uint64_t>{0x8000000000000001U, 3}));
  EXPECT_EQ(of_words(128, words).free_count(), 118U);
  EXPECT_EQ(of_words(5000, {}).free_count(), 5000U);
  DenseBitmap full(5000);
  EXPECT_EQ(full.take_all(Ordinal{0}, Ordinal{4999}), 5000U);
  full.set_words([](std::size_t) { return std::uint64_t{0}; });
  EXPECT_EQ(full.free_count(), 5000U);
  EXPECT_TRUE(of_words(0, words).words().empty());
}

TEST(DenseBitmap, ASearchOfThreeLevelsFindsTheOneFreeOrdinalFromWhereverItBegins) {
  const std::uint32_t size = 300'000;
  for (const std::uint32_t free : {0U, 63U, 4095U, 4096U, 262'143U, 262'144U, 299'999U}) {
    DenseBitmap bitmap(size);
    bitmap.take_all(Ordinal{0}, Ordinal{size - 1});
    EXPECT_EQ(bitmap.next_free(0, size), std::nullopt);
    EXPECT_TRUE(bitmap.give_back(Ordinal{free}));
    for (const std::uint32_t from : {0U, 1U, 64U, 4096U, 150'000U, 262'144U, 299'999U}) {
      EXPECT_EQ(bitmap.next_free(from, size), from <= free ? std::optional(Ordinal{free}) : std::nullopt) << from;
      EXPECT_EQ(bitmap.next_free(from, free), std::nullopt) << from;
    }
    EXPECT_TRUE(bitmap.take(Ordinal{free}));
    EXPECT_EQ(bitmap.next_free(0, size), std::nullopt);
  }
}

TEST(DenseBitmapDeathTest, AnOrdinalOutsideStopsTheProcess) {
  DenseBitmap bitmap(64);
  EXPECT_DEATH(static_cast<void>(bitmap.is_free(Ordinal{64})), "size_");
  EXPECT_DEATH(static_cast<void>(bitmap.take(Ordinal{64})), "size_");
  EXPECT_DEATH(static_cast<void>(bitmap.give_back(Ordinal{64})), "size_");
  EXPECT_DEATH(static_cast<void>(bitmap.take_all(Ordinal{0}, Ordinal{64})), "size_");
}

/// Beside the free ordinals in a std::set: slow, and plainly right.
RC_GTEST_PROP(DenseBitmapProperty, BehavesAsASetOfFreeOrdinals, ()) {
  const std::uint32_t size = *rc::gen::element<std::uint32_t>(1, 3, 63, 64, 65, 200, 4095, 4096, 4097, 9000);
  DenseBitmap bitmap(size);
  std::set<std::uint32_t> free;
  for (std::uint32_t i = 0; i < size; ++i) free.insert(free.end(), i);
  const int steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const std::uint32_t place = *rc::gen::inRange<std::uint32_t>(0, size);
    const std::uint32_t count = *rc::gen::element<std::uint32_t>(1, 1, 64, 65, 4096, size);
    const std::uint32_t end = std::min(size, place + count);
    const auto first = free.lower_bound(place), last = free.lower_bound(end);
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        RC_ASSERT(bitmap.take(Ordinal{place}) == (free.erase(place) == 1));
        break;
      case 1:
        for (std::uint32_t i = place; i < end; ++i) {
          RC_ASSERT(bitmap.give_back(Ordinal{i}) == free.insert(i).second);
        }
        break;
      case 2:
        RC_ASSERT(bitmap.take_all(Ordinal{place}, Ordinal{end - 1}) ==
                  static_cast<std::uint32_t>(std::distance(first, last)));
        free.erase(first, last);
        break;
      default:
        RC_ASSERT(bitmap.next_free(place, end) == (first == last ? std::nullopt : std::optional(Ordinal{*first})));
    }
    RC_ASSERT(bitmap.free_count() == free.size());
    RC_ASSERT(bitmap.is_free(Ordinal{place}) == free.contains(place));
  }
  std::vector<std::uint32_t> taken;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (!free.contains(i)) taken.push_back(i);
  }
  RC_ASSERT(taken_of(bitmap) == taken);
  // Built of its words, it is the same space.
  const DenseBitmap rebuilt = of_words(size, bitmap.words());
  RC_ASSERT(taken_of(rebuilt) == taken);
  RC_ASSERT(rebuilt.free_count() == free.size());
}

}  // namespace
}  // namespace croft::core::space
