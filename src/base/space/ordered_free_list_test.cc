#include "base/space/ordered_free_list.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace croft::core::space {
namespace {

using testing::ElementsAre;

std::vector<std::uint32_t> taken_of(const OrderedFreeList& list) {
  std::vector<std::uint32_t> taken;
  list.for_each_taken([&](Ordinal ordinal) { taken.push_back(ordinal.value); });
  return taken;
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
