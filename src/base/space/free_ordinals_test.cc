#include "base/space/free_ordinals.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace croft::core::space {
namespace {

using testing::ElementsAre;

std::vector<std::uint32_t> taken_of(const auto& space) {
  std::vector<std::uint32_t> taken;
  space.for_each_taken([&](Ordinal ordinal) { taken.push_back(ordinal.value); });
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

TEST(OrderedFreeList, TheLongestIdleGoesFirst) {
  auto list = OrderedFreeList::all_free(4);
  EXPECT_EQ(list.take_next(), Ordinal{0});
  EXPECT_EQ(list.take_next(), Ordinal{1});
  EXPECT_TRUE(list.give_back(Ordinal{1}));
  EXPECT_TRUE(list.give_back(Ordinal{0}));
  EXPECT_THAT(list.order(), ElementsAre(2U, 3U, 1U, 0U));
  EXPECT_EQ(list.take_next(), Ordinal{2});
}

TEST(OrderedFreeList, AnOrderThatCannotBeIsCorrupt) {
  const auto outside = OrderedFreeList::from_order(64, {0, 64});
  EXPECT_EQ(outside.error(), (Error{ErrorCode::corrupt, "free ordinal 64 lies outside a space of 64", ""}));
  const auto twice = OrderedFreeList::from_order(64, {5, 6, 5});
  EXPECT_EQ(twice.error(), (Error{ErrorCode::corrupt, "free ordinal 5 is listed twice", ""}));
  EXPECT_TRUE(OrderedFreeList::from_order(0, {}));
  EXPECT_EQ(OrderedFreeList::from_order(64, {}).value().free_count(), 0U);
}

TEST(OrderedFreeList, EqualityIsOfSizeAndOrderAndNotOfThePast) {
  auto used = OrderedFreeList::all_free(3);
  EXPECT_TRUE(used.take_next());
  EXPECT_TRUE(used.give_back(Ordinal{0}));
  EXPECT_EQ(used, OrderedFreeList::from_order(3, {1, 2, 0}).value());
  EXPECT_NE(used, OrderedFreeList::all_free(3));
  EXPECT_NE(OrderedFreeList::from_order(3, {1}).value(), OrderedFreeList::from_order(4, {1}).value());
  EXPECT_EQ(OrderedFreeList(), OrderedFreeList::all_free(0));
}

class OrderedFreeListBorders : public testing::TestWithParam<std::uint32_t> {};

TEST_P(OrderedFreeListBorders, DrainsInOrderAndFillsAgain) {
  auto list = OrderedFreeList::all_free(GetParam());
  for (std::uint32_t i = 0; i < GetParam(); ++i) ASSERT_EQ(list.take_next(), Ordinal{i});
  EXPECT_EQ(list.take_next(), std::nullopt);
  EXPECT_EQ(list.free_count(), 0U);
  EXPECT_TRUE(list.order().empty());
  EXPECT_EQ(taken_of(list).size(), GetParam());
  for (std::uint32_t i = GetParam(); i > 0; --i) ASSERT_TRUE(list.give_back(Ordinal{i - 1}));
  EXPECT_TRUE(std::ranges::equal(list.order(), OrderedFreeList::all_free(GetParam()).order(), {}, {},
                                 [last = GetParam() - 1](std::uint32_t value) { return last - value; }));
}

INSTANTIATE_TEST_SUITE_P(Sizes, OrderedFreeListBorders,
                         testing::Values(1U, 2U, 63U, 64U, 65U, 4095U, 4096U, 4097U, 1U << 20),
                         [](const auto& size) { return std::to_string(size.param); });

TEST(OrderedFreeListDeathTest, AnOrdinalOutsideStopsTheProcess) {
  auto list = OrderedFreeList::all_free(64);
  EXPECT_DEATH(static_cast<void>(list.is_free(Ordinal{64})), "size");
  EXPECT_DEATH(static_cast<void>(list.take(Ordinal{64})), "size");
  EXPECT_DEATH(static_cast<void>(list.give_back(Ordinal{64})), "size");
}

/// The order in a std::deque: slow, and plainly right.
struct ListModel {
  std::uint32_t size;
  std::deque<std::uint32_t> free;

  explicit ListModel(std::uint32_t count) : size(count) {
    for (std::uint32_t i = 0; i < count; ++i) free.push_back(i);
  }
  [[nodiscard]] bool has(std::uint32_t value) const { return std::ranges::find(free, value) != free.end(); }
  bool take(std::uint32_t value) { return std::erase(free, value) == 1; }
  bool give_back(std::uint32_t value) {
    if (has(value)) return false;
    free.push_back(value);
    return true;
  }
  std::optional<Ordinal> take_next_if(const std::function<bool(Ordinal)>& accepts) {
    const auto it = std::ranges::find_if(free, [&](std::uint32_t value) { return accepts(Ordinal{value}); });
    if (it == free.end()) return std::nullopt;
    const Ordinal found{*it};
    free.erase(it);
    return found;
  }
};

struct Command {
  int kind;  // 0 take_next, 1 take_next_if, 2 take, 3 give_back
  std::uint32_t value;
};

/// Gives one command to both; true when both answer the same and look the same after it.
bool agree_after(OrderedFreeList& list, ListModel& model, const Command& command) {
  const auto accepts = [&](Ordinal ordinal) { return ordinal.value % 3 != command.value % 3; };
  bool same = true;
  switch (command.kind) {
    case 0:
      same = list.take_next() == model.take_next_if([](Ordinal) { return true; });
      break;
    case 1:
      same = list.take_next_if(accepts) == model.take_next_if(accepts);
      break;
    case 2:
      same = list.take(Ordinal{command.value}) == model.take(command.value);
      break;
    default:
      same = list.give_back(Ordinal{command.value}) == model.give_back(command.value);
  }
  return same && list.free_count() == model.free.size() && std::ranges::equal(list.order(), model.free) &&
         list.is_free(Ordinal{command.value}) == model.has(command.value);
}

TEST(OrderedFreeListModel, AgreesOnEverySequenceOfSixCommandsOnThreeOrdinals) {
  constexpr Command kCommands[] = {{0, 0}, {1, 0}, {2, 0}, {2, 1}, {2, 2}, {3, 0}, {3, 1}, {3, 2}};
  constexpr unsigned kSequences = 8U * 8 * 8 * 8 * 8 * 8;
  for (unsigned sequence = 0; sequence < kSequences; ++sequence) {
    OrderedFreeList list = OrderedFreeList::all_free(3);
    ListModel model(3);
    for (unsigned rest = sequence, step = 0; step < 6; ++step, rest /= 8) {
      ASSERT_TRUE(agree_after(list, model, kCommands[rest % 8])) << "sequence " << sequence << ", step " << step;
    }
  }
}

RC_GTEST_PROP(OrderedFreeListProperty, BehavesAsADeque, ()) {
  const std::uint32_t size = *rc::gen::element<std::uint32_t>(1, 2, 7, 63, 64, 65, 300);
  OrderedFreeList list = OrderedFreeList::all_free(size);
  ListModel model(size);
  const int steps = *rc::gen::inRange(1, 400);
  for (int step = 0; step < steps; ++step) {
    const Command command{*rc::gen::inRange(0, 4), *rc::gen::inRange<std::uint32_t>(0, size)};
    RC_ASSERT(agree_after(list, model, command));
  }
  const auto stored = list.order();
  RC_ASSERT(OrderedFreeList::from_order(size, {stored.begin(), stored.end()}).value() == list);
  RC_ASSERT(taken_of(list).size() == size - model.free.size());
}

}  // namespace
}  // namespace croft::core::space
