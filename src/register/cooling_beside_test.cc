#include "register/cooling_beside.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "register/pool.h"

namespace croft::core {
namespace {

using namespace std::chrono_literals;

class CoolingBesideTest : public testing::Test {
 protected:
  CoolingBesideTest() : block_(new_block(net::Prefix::parse("10.0.0.0/30").value(), {}, clock_.now(), {})) {
    for (int i = 0; i < 3; ++i) block_ = taken(std::move(block_), "net.c" + std::to_string(i));
  }
  static Block taken(Block block, const std::string& handle_id) {
    Attribute attribute;
    attribute.handle_id = handle_id;
    return stamped(take_next(std::move(block), attribute, [](const net::Address&) { return false; })->block);
  }
  void release_one(std::uint32_t ordinal, const Cooldowns& cooldowns) {
    const net::Ordinal one(ordinal);
    block_ = stamped(release(std::move(block_), {&one, 1}, cooldowns, clock_.now()));
  }

  ManualClock clock_;
  Block block_;
};

TEST_F(CoolingBesideTest, OthersSeeItFreeAndLastAndItComesBackAsItWas) {
  release_one(1, Cooldowns(30s));
  clock_.advance(1s);
  release_one(0, Cooldowns(30s));
  const auto [seen, beside] = without_cooling(block_);
  ASSERT_TRUE(check_block(seen));
  EXPECT_EQ(state_of(seen, net::Ordinal(0)), AddressState::free);
  const auto order = seen.unallocated.order();
  EXPECT_EQ(std::vector(order.begin(), order.end()), (std::vector<std::uint32_t>{3, 1, 0}))
      << "the longest released first";
  ASSERT_EQ(beside.size(), 2U);
  const Block back = with_cooling(seen, beside);
  ASSERT_TRUE(check_block(back));
  for (const std::uint32_t i : {0U, 1U}) {
    EXPECT_EQ(state_of(back, net::Ordinal(i)), AddressState::cooling);
    EXPECT_EQ(attribute_of(back, net::Ordinal(i))->cooling, attribute_of(block_, net::Ordinal(i))->cooling);
    EXPECT_EQ(sequence_of(back, net::Ordinal(i)), sequence_of(block_, net::Ordinal(i)));
  }
  EXPECT_EQ(back.unallocated, block_.unallocated);
}

TEST_F(CoolingBesideTest, WhatIsTakenMeanwhileIsOutOfDate) {
  release_one(1, Cooldowns(30s));
  const auto [seen, beside] = without_cooling(block_);
  Block theirs = taken(taken(seen, "k8s.x"), "k8s.y");  // 3, then 1
  const Block back = with_cooling(theirs, beside);
  EXPECT_EQ(back, theirs);
}

/// Another deleted the block and made it anew with the numbers of a clock that is behind.
TEST_F(CoolingBesideTest, WhatIsOfABlockBeforeThisOneFitsAsFarAsItCan) {
  release_one(1, Cooldowns(30s));
  const auto [seen, beside] = without_cooling(block_);
  clock_.jump_wall(-24h);
  const Block anew = new_block(block_.cidr, {}, clock_.now(), {});
  ASSERT_LT(anew.sequence_number, beside.front().sequence_number);
  const Block back = with_cooling(anew, beside);
  ASSERT_TRUE(check_block(back)) << check_block(back).error().message;
  EXPECT_EQ(state_of(back, net::Ordinal(1)), AddressState::cooling) << "it rests on, whoever made the block";
  EXPECT_EQ(sequence_of(back, net::Ordinal(1)), SequenceNumber());
  EXPECT_EQ(back.unallocated.free_count(), 3U);
}

/// The same with a clock that goes: the new block counts from a later nanosecond.
TEST_F(CoolingBesideTest, WhatIsOlderThanTheBlockRestsOnButItsNumberIsNotOfThisOne) {
  release_one(1, Cooldowns(30s));
  const auto [seen, beside] = without_cooling(block_);
  clock_.advance(2min);
  const Block anew = new_block(block_.cidr, {}, clock_.now(), {});
  const Block back = with_cooling(anew, beside);
  ASSERT_TRUE(check_block(back)) << check_block(back).error().message;
  EXPECT_EQ(state_of(back, net::Ordinal(1)), AddressState::cooling) << "a cooldown may be longer than that";
  EXPECT_EQ(sequence_of(back, net::Ordinal(1)), SequenceNumber());
}

TEST_F(CoolingBesideTest, WhatIsOlderThanTheBlockByMoreThanAnyCooldownIsDropped) {
  release_one(1, Cooldowns(30s));
  const auto [seen, beside] = without_cooling(block_);
  clock_.advance(kCooldownMax + kClockSkewMax + 1min);
  const Block anew = new_block(block_.cidr, {}, clock_.now(), {});
  EXPECT_EQ(with_cooling(anew, beside), anew);
}

/// Released by a machine whose clock was years ahead, before the block was made: it rests no longer than from then.
TEST_F(CoolingBesideTest, WhatIsOlderThanTheBlockDoesNotRestForYears) {
  release_one(1, Cooldowns(30s));
  auto [seen, beside] = without_cooling(block_);
  beside.front().cooling.released_at.wall += 24h * 3650;
  beside.front().cooling.released_at.boot = {};
  clock_.advance(2min);
  const Block anew = new_block(block_.cidr, {}, clock_.now(), {});
  const Block back = with_cooling(anew, beside);
  ASSERT_EQ(state_of(back, net::Ordinal(1)), AddressState::cooling);
  clock_.advance(kClockSkewMax + 31s);
  EXPECT_TRUE(cooldown_ended(*attribute_of(back, net::Ordinal(1))->cooling, 30s, clock_.now()));
}

/// Numbers that differ by writes alone are of one block.
TEST_F(CoolingBesideTest, ManyWritesMakeNoOtherBlock) {
  release_one(1, Cooldowns(30s));
  auto [seen, beside] = without_cooling(block_);
  seen.sequence_number.value += 1'000'000'000;
  const Block back = with_cooling(seen, beside);
  EXPECT_EQ(attribute_of(back, net::Ordinal(1))->cooling, beside.front().cooling);
  EXPECT_EQ(sequence_of(back, net::Ordinal(1)), beside.front().sequence_number);
}

TEST_F(CoolingBesideTest, WhatIsNotOfTheBlockIsPassedOver) {
  CoolingBeside far;
  far.ordinal = 4;
  EXPECT_EQ(with_cooling(block_, {far}), block_);
}

TEST_F(CoolingBesideTest, CalicosOwnWayStaysInTheBlock) {
  release_one(1, Cooldowns(0s, 60s));
  const auto [seen, beside] = without_cooling(block_);
  EXPECT_EQ(seen, block_);
  EXPECT_TRUE(beside.empty());
}

}  // namespace
}  // namespace croft::core
