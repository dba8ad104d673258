#include "ipam/use/transact.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ipam/use/test_world.h"
#include "register/records.h"
#include "register/snapshot.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;

class TransactTest : public testing::TestWithParam<TurnTaking> {
 protected:
  /// Asks for one record after the other, each of which takes `each`.
  core::Step<int> ask(const core::Snapshot& snapshot, std::chrono::nanoseconds each) {
    core::Reader reader(snapshot);
    for (int i = 0; i <= asked_; ++i) {
      static_cast<void>(reader.get(core::node_key("n" + std::to_string(i))));
    }
    ++asked_;
    world_.clock.advance(each);
    return reader.missing();
  }

  World world_;
  int asked_ = 0;
};

TEST_P(TransactTest, ADecisionThatAsksForEverEndsAtItsDeadline) {
  const auto done = transact(world_.context, GetParam(),
                             [&](const core::Snapshot& snapshot, const Instant&) { return ask(snapshot, 1s); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::deadline_exceeded) << done.error().message;
  EXPECT_LE(asked_, 16) << "the limit is 15 s";
  EXPECT_TRUE(world_.store.take_turn(Deadline::after(world_.clock.now(), 1s))) << "the turn is free again";
}

TEST_P(TransactTest, TheCallersDeadlineCountsToo) {
  world_.context.not_after = Deadline::after(world_.clock.now(), 3s);
  const auto done = transact(world_.context, GetParam(),
                             [&](const core::Snapshot& snapshot, const Instant&) { return ask(snapshot, 1s); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::deadline_exceeded) << done.error().message;
  EXPECT_LE(asked_, 4);
}

/// A decision that conflicts each time, slowly.
TEST_P(TransactTest, NoNewTryBeginsPastTheDeadline) {
  int tries = 0;
  const auto done =
      transact(world_.context, GetParam(), [&](const core::Snapshot& snapshot, const Instant&) -> core::Step<int> {
        core::Reader reader(snapshot);
        static_cast<void>(reader.get(core::node_key("n")));
        if (!reader.is_all_read()) return reader.missing();
        ++tries;
        world_.clock.advance(4s);
        world_.node("n", {{"try", std::to_string(tries)}});  // somebody else, meanwhile
        core::Plan<int> plan;
        plan.writes.push_back(core::to_put(core::node_key("n"), core::Node{"n", {}, {}, {}}));
        return plan;
      });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::deadline_exceeded) << done.error().message;
  EXPECT_LE(tries, 5);
}

/// The waits of one that meets another writer at each try, which takes `took`.
class RivalsTest : public testing::TestWithParam<std::chrono::milliseconds> {
 protected:
  RivalsTest() {
    world_.context.wait_by = [this](std::chrono::nanoseconds span) {
      waits_.push_back(span);
      world_.clock.advance(span);
    };
  }

  void meet_rivals(int rivals) {
    int tries = 0;
    const auto decide = [&](const core::Snapshot& snapshot, const Instant&) -> core::Step<int> {
      core::Reader reader(snapshot);
      static_cast<void>(reader.get(core::node_key("n")));
      if (!reader.is_all_read()) return reader.missing();
      began_last_ = world_.clock.now().since_boot;
      world_.clock.advance(GetParam());
      if (tries++ < rivals) world_.node("n", {{"try", std::to_string(tries)}});
      core::Plan<int> plan;
      plan.writes.push_back(core::to_put(core::node_key("n"), core::Node{"n", {}, {}, {}}));
      return plan;
    };
    done_ = transact(world_.context, TurnTaking::first, decide).has_value();
  }

  World world_;
  std::vector<std::chrono::nanoseconds> waits_;
  std::chrono::nanoseconds began_last_{};
  bool done_ = false;
};

TEST_P(RivalsTest, TheyWaitByWhatATryTakes) {
  constexpr int kRivals = 8;
  world_.context.time_limit = GetParam() * 1000;
  meet_rivals(kRivals);
  EXPECT_TRUE(done_);
  ASSERT_EQ(waits_.size(), kRivals);
  std::chrono::nanoseconds all{};
  for (int i = 0; i < kRivals; ++i) {
    EXPECT_LE(waits_[i], GetParam() * (i + 1));
    all += waits_[i];
  }
  // Half of 36 on the average.
  EXPECT_GE(all, GetParam() * 6);
}

TEST_P(RivalsTest, BehindTheLastWaitIsTimeForATry) {
  world_.context.time_limit = GetParam() * 20;
  const auto begin = world_.clock.now().since_boot;
  meet_rivals(kTriesMax);
  EXPECT_FALSE(done_);
  EXPECT_LE(began_last_, begin + GetParam() * 20);
  EXPECT_GE(began_last_, begin + GetParam() * 10);
}

INSTANTIATE_TEST_SUITE_P(Tries, RivalsTest,
                         testing::Values(std::chrono::milliseconds(20), std::chrono::milliseconds(100),
                                         std::chrono::milliseconds(1000)));

INSTANTIATE_TEST_SUITE_P(Turns, TransactTest, testing::Values(TurnTaking::first, TurnTaking::before_writing));

}  // namespace
}  // namespace croft::engine
