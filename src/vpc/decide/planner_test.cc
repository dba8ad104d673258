#include "vpc/decide/planner.h"

#include <rapidcheck.h>

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

class WarmPlanner : public testing::Test {
 protected:
  Wish wish(const Counts& counts, std::uint32_t waiting = 0) {
    return plan_stock(counts, marks_, waiting, memory_, clock_.now());
  }
  void grew(Outcome outcome, double jitter = 0) { memory_ = after_growing(memory_, outcome, jitter, clock_.now()); }
  Marks marks_;
  PlannerMemory memory_;
  ManualClock clock_;
};

TEST_F(WarmPlanner, TheMarksAreChecked) {
  EXPECT_TRUE(check_marks({.low = 0, .high = 0}));
  EXPECT_FALSE(check_marks({.low = 0, .high = kMarkMax + 1}));
}

/// The rests after conflicts are told in scenarios/somebodys.txt.
TEST_F(WarmPlanner, WhatIsSomebodyElsesIsNotAskedForOnAndOn) {
  for (int i = 0; i < 40; ++i) grew(Outcome::conflict);
  EXPECT_TRUE(may_borrow({}, marks_, memory_));
  clock_.advance(1h);
  EXPECT_EQ(wish({}).grow, 1U) << "an hour at the most";
  grew(Outcome::done);
  EXPECT_EQ(wish({}).grow, 3U);
  // And never more than the marks allow, however long it takes.
  Counts counts;
  counts.quarantined = counts.conflicting = marks_.high + kConflictsMax - 1;
  EXPECT_EQ(wish(counts).grow, 1U);
  ++counts.conflicting;
  ++counts.quarantined;
  EXPECT_EQ(wish(counts, 1).grow, 0U);
  EXPECT_TRUE(wish(counts, 1).is_at_limit);
  EXPECT_TRUE(may_borrow(counts, marks_, {}));
  EXPECT_NE(wish(counts).why.find("croft vpc release"), std::string::npos);
  counts.conflicting = 0;
  counts.doubted = counts.claimed = marks_.high + kConflictsMax;
  EXPECT_EQ(wish(counts, 1).grow, 0U);
  EXPECT_TRUE(wish(counts, 1).is_at_limit);
  EXPECT_NE(wish(counts).why.find("network namespaces"), std::string::npos);
  counts.claimed = 0;
  EXPECT_EQ(wish(counts).grow, 3U) << "what waits for its pod, or is unknown, keeps nobody from starting";
}

// Whatever the stock does, one step never both grows and shrinks, never passes a mark, and a stock between its marks is
// left alone: no address is bought and sold in turns.
TEST_F(WarmPlanner, ItComesToRestBetweenTheMarks) {
  EXPECT_TRUE(rc::check([] {
    Marks marks;
    marks.low = *rc::gen::inRange<std::uint32_t>(0, 120);
    marks.high = marks.low + *rc::gen::inRange<std::uint32_t>(0, 60);
    marks.node_max = *rc::gen::element<std::uint32_t>(0, 110, 200);
    Counts counts;
    counts.free = *rc::gen::inRange<std::uint32_t>(0, 200);
    counts.held = *rc::gen::inRange<std::uint32_t>(0, 110);
    counts.cooling = *rc::gen::inRange<std::uint32_t>(0, 20);
    ManualClock clock;
    PlannerMemory memory;
    bool has_grown = false, has_shrunk = false;
    for (int round = 0; round < 400; ++round) {
      const Wish wish = plan_stock(counts, marks, 0, memory, clock.now());
      RC_ASSERT(wish.grow == 0 || wish.shrink == 0);
      has_grown |= wish.grow > 0;
      has_shrunk |= wish.shrink > 0;
      counts.free += wish.grow;
      counts.free -= wish.shrink;
      if (wish.grow > 0) {
        RC_ASSERT(counts.free <= marks.low);
        RC_ASSERT(marks.node_max == 0 || counts.on_node() <= marks.node_max);
        memory = after_growing(memory, Outcome::done, 0.5, clock.now());
      }
      if (wish.shrink > 0) {
        RC_ASSERT(counts.free >= marks.high);
        memory = after_shrinking(memory, Outcome::done, 0.5, clock.now());
      }
      clock.advance(std::chrono::seconds{10});
    }
    RC_ASSERT(!(has_grown && has_shrunk));
    RC_ASSERT(counts.free <= marks.high);
    const bool is_at_limit = marks.node_max > 0 && counts.on_node() >= marks.node_max;
    RC_ASSERT(counts.free >= marks.low || is_at_limit);
  }));
}

}  // namespace
}  // namespace croft::core::warm
