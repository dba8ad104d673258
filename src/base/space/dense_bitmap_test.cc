#include "base/space/dense_bitmap.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace croft::core::space {
namespace {

// Around one word, and many.
constexpr std::uint32_t kBorderSizes[] = {1, 2, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 65537};

std::vector<std::uint32_t> taken_of(const DenseBitmap& bitmap) {
  std::vector<std::uint32_t> taken;
  bitmap.for_each_taken([&](Ordinal ordinal) { taken.push_back(ordinal.value); });
  return taken;
}

DenseBitmap full(std::uint32_t size) {
  DenseBitmap bitmap(size);
  for (std::uint32_t i = 0; i < size; ++i) EXPECT_TRUE(bitmap.take(Ordinal{i}));
  return bitmap;
}

std::optional<Ordinal> take_first(DenseBitmap& bitmap) {
  const std::uint32_t taken = bitmap.take_at_or_after(0);
  return taken == bitmap.size() ? std::nullopt : std::optional(Ordinal{taken});
}

class DenseBitmapBorders : public testing::TestWithParam<std::uint32_t> {};

TEST_P(DenseBitmapBorders, FillsInOrderToTheLastOrdinal) {
  DenseBitmap bitmap(GetParam());
  for (std::uint32_t i = 0; i < GetParam(); ++i) {
    ASSERT_EQ(bitmap.free_count(), GetParam() - i);
    ASSERT_EQ(take_first(bitmap), Ordinal{i});
  }
  EXPECT_EQ(bitmap.free_count(), 0U);
  EXPECT_EQ(take_first(bitmap), std::nullopt);
  EXPECT_EQ(bitmap.next_free(Ordinal{0}), std::nullopt);
  EXPECT_EQ(taken_of(bitmap).size(), GetParam());
}

TEST_P(DenseBitmapBorders, TheOneFreeOrdinalIsFoundFromEverywhere) {
  DenseBitmap bitmap = full(GetParam());
  const std::uint32_t last = GetParam() - 1;
  const std::set<std::uint32_t> places{
      0, last / 2, last, std::min(last, 63U), std::min(last, 64U), std::min(last, 4096U)};
  for (const std::uint32_t place : places) {
    ASSERT_TRUE(bitmap.give_back(Ordinal{place}));
    for (const std::uint32_t from : places) {
      EXPECT_EQ(bitmap.next_free(Ordinal{from}), Ordinal{place});
      EXPECT_EQ(bitmap.next_free_at_or_after(Ordinal{from}),
                from <= place ? std::optional(Ordinal{place}) : std::nullopt);
    }
    EXPECT_EQ(bitmap.next_free(Ordinal{GetParam()}), Ordinal{place});
    EXPECT_EQ(bitmap.next_free(Ordinal{0xffffffffU}), Ordinal{place});
    EXPECT_EQ(bitmap.next_free_at_or_after(Ordinal{GetParam()}), std::nullopt);
    ASSERT_TRUE(bitmap.take(Ordinal{place}));
  }
}

TEST_P(DenseBitmapBorders, EmptiedItHasAllOrdinalsAgain) {
  DenseBitmap bitmap = full(GetParam());
  for (std::uint32_t i = 0; i < GetParam(); ++i) ASSERT_TRUE(bitmap.give_back(Ordinal{i}));
  EXPECT_EQ(bitmap.free_count(), GetParam());
  EXPECT_TRUE(taken_of(bitmap).empty());
  for (std::uint32_t i = 0; i < GetParam(); ++i) ASSERT_EQ(bitmap.next_free_at_or_after(Ordinal{i}), Ordinal{i});
}

DenseBitmap of_words(std::uint32_t size, const std::vector<std::uint64_t>& words) {
  DenseBitmap bitmap(size);
  bitmap.set_words([&](std::size_t i) { return i < words.size() ? words[i] : 0; });
  return bitmap;
}

std::vector<std::uint64_t> words_of(const DenseBitmap& bitmap) {
  std::vector<std::uint64_t> words;
  for (std::size_t i = 0; i < bitmap.word_count(); ++i) words.push_back(bitmap.taken_word(i));
  return words;
}

TEST_P(DenseBitmapBorders, BuiltOfWordsAllButOneSetItFindsTheOne) {
  const std::uint32_t size = GetParam();
  // All bits of all words, past the end too.
  std::vector<std::uint64_t> words(size / 64 + 1, ~std::uint64_t{0});
  const std::uint32_t hole = size / 2;
  words[hole / 64] &= ~(std::uint64_t{1} << hole % 64);
  DenseBitmap bitmap = of_words(size, words);
  EXPECT_EQ(bitmap.free_count(), 1U);
  EXPECT_EQ(bitmap.next_free(Ordinal{size - 1}), Ordinal{hole});
  EXPECT_EQ(take_first(bitmap), Ordinal{hole});
  EXPECT_EQ(bitmap.next_free(Ordinal{0}), std::nullopt);
  EXPECT_EQ(taken_of(bitmap).size(), size);
  EXPECT_EQ(words_of(bitmap), words_of(full(size)));
}

INSTANTIATE_TEST_SUITE_P(Sizes, DenseBitmapBorders, testing::ValuesIn(kBorderSizes),
                         [](const auto& size) { return std::to_string(size.param); });

TEST(DenseBitmap, NothingIsFreeInASpaceOfNone) {
  DenseBitmap bitmap(0);
  EXPECT_EQ(take_first(bitmap), std::nullopt);
  EXPECT_EQ(bitmap.next_free(Ordinal{0}), std::nullopt);
  EXPECT_TRUE(taken_of(bitmap).empty());
}

TEST(DenseBitmap, WordsReplaceWhatWasTaken) {
  const std::vector<std::uint64_t> words{0x8000000000000001U, 0xffU, 0xffU};
  EXPECT_EQ(taken_of(of_words(66, words)), (std::vector<std::uint32_t>{0, 63, 64, 65}));
  EXPECT_EQ(of_words(66, words).free_count(), 62U);
  EXPECT_EQ(words_of(of_words(66, words)), (std::vector<std::uint64_t>{0x8000000000000001U, 3}));
  EXPECT_EQ(taken_of(of_words(5000, words)).size(), 18U);
  EXPECT_EQ(of_words(5000, {}).free_count(), 5000U);
  DenseBitmap full_once = full(5000);
  full_once.set_words([](std::size_t) { return std::uint64_t{0}; });
  EXPECT_EQ(full_once.free_count(), 5000U);
  EXPECT_TRUE(taken_of(full_once).empty());
  EXPECT_EQ(take_first(full_once), Ordinal{0});
  EXPECT_EQ(full_once.next_free_at_or_after(Ordinal{4999}), Ordinal{4999});
  EXPECT_EQ(of_words(0, words).free_count(), 0U);
  EXPECT_EQ(of_words(0, words).word_count(), 0U);
}

TEST(DenseBitmapDeathTest, AnOrdinalOutsideStopsTheProcess) {
  DenseBitmap bitmap(64);
  EXPECT_DEATH(static_cast<void>(bitmap.is_free(Ordinal{64})), "size_");
  EXPECT_DEATH(static_cast<void>(bitmap.take(Ordinal{64})), "size_");
  EXPECT_DEATH(static_cast<void>(bitmap.give_back(Ordinal{64})), "size_");
  EXPECT_DEATH(static_cast<void>(bitmap.take_all(Ordinal{0}, Ordinal{64})), "size_");
  EXPECT_DEATH(static_cast<void>(bitmap.taken_word(1)), "word_count");
}

/// The free ordinals in a std::set: slow, and plainly right.
struct Model {
  std::uint32_t size;
  std::set<std::uint32_t> free;

  explicit Model(std::uint32_t count) : size(count) {
    for (std::uint32_t i = 0; i < count; ++i) free.insert(free.end(), i);
  }
  [[nodiscard]] std::optional<Ordinal> at_or_after(std::uint32_t from) const {
    const auto it = free.lower_bound(from);
    return it == free.end() ? std::nullopt : std::optional(Ordinal{*it});
  }
  [[nodiscard]] std::optional<Ordinal> wrapping(std::uint32_t from) const {
    const auto found = at_or_after(from);
    return found ? found : at_or_after(0);
  }
  std::optional<Ordinal> take_first() {
    const auto found = at_or_after(0);
    if (found) free.erase(found->value);
    return found;
  }
  [[nodiscard]] std::vector<std::uint32_t> taken() const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (!free.contains(i)) out.push_back(i);
    }
    return out;
  }
};

/// Takes or gives back a run of ordinals, so that whole words fill and empty.
void change_run(DenseBitmap& bitmap, Model& model, bool taking, std::uint32_t start, std::uint32_t count) {
  for (std::uint32_t i = start; i < std::min(model.size, start + count); ++i) {
    if (taking) {
      RC_ASSERT(bitmap.take(Ordinal{i}) == (model.free.erase(i) == 1));
    } else {
      RC_ASSERT(bitmap.give_back(Ordinal{i}) == model.free.insert(i).second);
    }
  }
}

RC_GTEST_PROP(DenseBitmapProperty, BehavesAsASetOfFreeOrdinals, ()) {
  const std::uint32_t size = *rc::gen::element<std::uint32_t>(1, 3, 63, 64, 65, 200, 4095, 4096, 4097, 9000);
  DenseBitmap bitmap(size);
  Model model(size);
  const int steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const std::uint32_t place = *rc::gen::inRange<std::uint32_t>(0, size);
    const std::uint32_t count = *rc::gen::element<std::uint32_t>(1, 1, 64, 65, 4096, size);
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        change_run(bitmap, model, true, place, count);
        break;
      case 4: {
        const std::uint32_t last = std::min(size, place + count) - 1;
        const auto end = model.free.upper_bound(last);
        const auto begin = model.free.lower_bound(place);
        RC_ASSERT(bitmap.take_all(Ordinal{place}, Ordinal{last}) ==
                  static_cast<std::uint32_t>(std::distance(begin, end)));
        model.free.erase(begin, end);
        break;
      }
      case 5: {
        const auto found = model.at_or_after(place);
        RC_ASSERT(bitmap.take_at_or_after(place) == found.value_or(Ordinal{size}).value);
        if (found) model.free.erase(found->value);
        break;
      }
      case 1:
        change_run(bitmap, model, false, place, count);
        break;
      default:
        for (std::uint32_t i = 0; i < std::min(count, 100U); ++i) RC_ASSERT(take_first(bitmap) == model.take_first());
    }
    RC_ASSERT(bitmap.free_count() == model.free.size());
    RC_ASSERT(bitmap.is_free(Ordinal{place}) == model.free.contains(place));
    RC_ASSERT(bitmap.next_free_at_or_after(Ordinal{place}) == model.at_or_after(place));
    RC_ASSERT(bitmap.next_free(Ordinal{place}) == model.wrapping(place));
  }
  RC_ASSERT(taken_of(bitmap) == model.taken());

  // Built of its words, it is the same space, and stays so.
  DenseBitmap rebuilt = of_words(size, words_of(bitmap));
  RC_ASSERT(taken_of(rebuilt) == model.taken());
  RC_ASSERT(rebuilt.free_count() == model.free.size());
  while (const auto next = model.take_first()) RC_ASSERT(take_first(rebuilt) == next);
  RC_ASSERT(take_first(rebuilt) == std::nullopt);
  for (std::uint32_t i = 0; i < size; i += 7) {
    RC_ASSERT(rebuilt.give_back(Ordinal{i}));
    RC_ASSERT(rebuilt.next_free(Ordinal{0}) == Ordinal{0});
  }
}

}  // namespace
}  // namespace croft::core::space
