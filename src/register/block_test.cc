#include "register/block.h"

#include <rapidcheck.h>

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "register/pool.h"
#include "register/test_register.h"

namespace croft::core {

namespace {

using net::Address;
using net::Ordinal;
using net::Prefix;
using testing::HasSubstr;
using namespace std::chrono_literals;

const Prefix kCidr = Prefix::parse("10.10.0.16/28").value();
const IsReserved kNothingReserved = [](const Address&) { return false; };

Attribute holder(const std::string& container) {
  Attribute result;
  result.handle_id = "net." + container;
  result.secondary = {{"node", "node-a"}, {"ifname", "eth0"}};
  return result;
}
Owner owner(const std::string& container) { return {"net", container, "eth0"}; }

Taken must_take(Block block, const std::string& container) {
  auto taken = take_next(std::move(block), holder(container), kNothingReserved);
  EXPECT_TRUE(taken);
  return *std::move(taken);
}

Block released(const Block& block, const std::string& container, std::chrono::seconds cooldown, const Instant& now) {
  const auto ordinals = held_by(block, owner(container));
  EXPECT_FALSE(ordinals.empty());
  return release(block, ordinals, cooldown, now);
}

TEST(Block, NewOneIsAllFreeInOrder) {
  const ManualClock clock;
  const Block block = new_block(kCidr, kNode, clock.now(), {});
  EXPECT_TRUE(check_block(block));
  EXPECT_TRUE(is_empty(block));
  EXPECT_EQ(block.sequence_number.value, 1768471200000000000U);
  EXPECT_EQ(free_count(block, kNothingReserved), 16U);
  EXPECT_EQ(block.unallocated.order().front(), 0U);
}

TEST(Block, SequenceStartsAboveTheHighWaterMarkWhateverTheClockSays) {
  ManualClock clock;
  const Block first = with_next_sequence_number(new_block(kCidr, kNode, clock.now(), {}));
  clock.jump_wall(-24h * 3650);
  const Block second = new_block(kCidr, kNode, clock.now(), first.sequence_number);
  EXPECT_GT(second.sequence_number, first.sequence_number);
}

TEST(Block, AnAddressLiesInTheBlockItsLengthSays) {
  // Pool 10.10.0.0/24 with blocks of 28: 10.10.0.17 belongs to 10.10.0.16/28.
  EXPECT_EQ(Prefix::containing(address("10.10.0.17"), 28), kCidr);
  EXPECT_EQ(net::ordinal_of(kCidr, address("10.10.0.17")), Ordinal(1));
}

TEST(Block, HandsOutFirstInFirstOut) {
  const ManualClock clock;
  Block block = new_block(kCidr, kNode, clock.now(), {});
  for (int i = 0; i < 16; ++i) {
    const Taken taken = must_take(block, "c" + std::to_string(i));
    EXPECT_EQ(net::ordinal_of(kCidr, taken.address)->value, static_cast<std::uint32_t>(i));
    block = taken.block;
  }
  EXPECT_FALSE(take_next(block, holder("x"), kNothingReserved));
  block = released(block, "c7", 0s, clock.now());
  block = released(block, "c3", 0s, clock.now());
  EXPECT_EQ(must_take(block, "x").address, address("10.10.0.23"));
}

TEST(Block, ReservedStayInPlaceAndAreSkipped) {
  const ManualClock clock;
  const Block block = new_block(kCidr, kNode, clock.now(), {});
  const IsReserved first_two = [](const Address& a) { return a < address("10.10.0.18"); };
  EXPECT_EQ(free_count(block, first_two), 14U);
  const auto taken = take_next(block, holder("a"), first_two);
  EXPECT_EQ(taken->address, address("10.10.0.18"));
  EXPECT_EQ(taken->block.unallocated.order().front(), 0U);
  EXPECT_FALSE(take_next(block, holder("a"), [](const Address&) { return true; }));
}

TEST(Block, ExplicitAddressTwiceIsRefusedAlsoWhileCooling) {
  const ManualClock clock;
  const Block block = new_block(kCidr, kNode, clock.now(), {});
  const Taken taken = take_address(block, address("10.10.0.20"), holder("a")).value();
  EXPECT_EQ(take_address(taken.block, address("10.10.0.20"), holder("b")).error().code, ErrorCode::already_exists);
  const Block cooling = released(taken.block, "a", 30s, clock.now());
  EXPECT_THAT(take_address(cooling, address("10.10.0.20"), holder("b")).error().message, HasSubstr("cooling"));
}

TEST(Block, SequenceOfAnAllocationIsTheBlocksBeforeTheWrite) {
  const ManualClock clock;
  Block block = new_block(kCidr, kNode, clock.now(), {});
  const SequenceNumber before = block.sequence_number;
  block = with_next_sequence_number(must_take(block, "a").block);
  EXPECT_EQ(sequence_of(block, Ordinal(0)), before);
  EXPECT_EQ(block.sequence_number.value, before.value + 1);
  EXPECT_EQ(sequence_of(block, Ordinal(5)).value, 0U);
}

TEST(Block, ReleaseCoolsThenFreesToTheTail) {
  ManualClock clock;
  Block block = must_take(new_block(kCidr, kNode, clock.now(), {}), "a").block;
  block = must_take(block, "b").block;
  block = released(block, "a", 30s, clock.now());
  EXPECT_TRUE(check_block(block));
  EXPECT_EQ(state_of(block, Ordinal(0)), AddressState::cooling);
  EXPECT_EQ(attribute_of(block, Ordinal(0))->cooling->previous_handle, "net.a");
  EXPECT_FALSE(attribute_of(block, Ordinal(0))->handle_id);
  EXPECT_TRUE(held_by(block, owner("a")).empty());
  clock.advance(29999ms);
  EXPECT_EQ(with_cooled_freed(block, 30s, clock.now()), block);
  EXPECT_EQ(first_cooldown_end(block, 30s, clock.now()), clock.now().wall + 1ms);
  clock.advance(1ms);
  block = with_cooled_freed(block, 30s, clock.now());
  EXPECT_EQ(state_of(block, Ordinal(0)), AddressState::free);
  EXPECT_EQ(block.unallocated.order().back(), 0U);
  EXPECT_EQ(block.attributes.size(), 1U);
  EXPECT_FALSE(block.sequence_number_for_allocation.contains(0U));
  EXPECT_TRUE(check_block(block));
}

TEST(Block, LongestReleasedIsFreedFirst) {
  ManualClock clock;
  Block block = new_block(kCidr, kNode, clock.now(), {});
  for (const char* c : {"a", "b", "c"}) block = must_take(block, c).block;
  for (const char* c : {"c", "a", "b"}) {
    block = released(block, c, 10s, clock.now());
    clock.advance(1s);
  }
  clock.advance(1min);
  const Block cooled = with_cooled_freed(block, 10s, clock.now());
  const auto order = cooled.unallocated.order();
  EXPECT_EQ((std::vector(order.end() - 3, order.end())), (std::vector<std::uint32_t>{2, 0, 1}));
}

TEST(Block, ContradictionsAreNamed) {
  const ManualClock clock;
  const Block good = must_take(new_block(kCidr, kNode, clock.now(), {}), "a").block;
  ASSERT_TRUE(check_block(good));
  const auto expect_corrupt = [&](const char* text, const std::function<void(Block&)>& spoil) {
    Block bad = good;
    spoil(bad);
    const auto result = check_block(bad);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, ErrorCode::corrupt);
    EXPECT_THAT(result.error().message, HasSubstr(text));
    EXPECT_THAT(result.error().message, HasSubstr("10.10.0.16/28"));
  };
  expect_corrupt("15 allocations", [](Block& b) { b.allocations.pop_back(); });
  expect_corrupt("attribute 7 of 1", [](Block& b) { b.allocations[0] = 7; });
  expect_corrupt("both allocated", [](Block& b) { b.allocations[3] = 0; });
  expect_corrupt("neither allocated", [](Block& b) { b.allocations[0].reset(); });
  expect_corrupt("it is deleted, and 1 of its addresses are taken", [](Block& b) { b.deleted = true; });
  expect_corrupt("belongs to no ordinal", [](Block& b) { b.attributes.emplace_back(); });
  expect_corrupt("free list is of another size", [](Block& b) { b.unallocated = space::OrderedFreeList::all_free(8); });
  expect_corrupt("sequence number for ordinal 16", [](Block& b) { b.sequence_number_for_allocation[16] = {}; });
  expect_corrupt("newer than its block",
                 [](Block& b) { b.sequence_number_for_allocation[0] = with_next_sequence_number(b).sequence_number; });
  expect_corrupt("out of range", [](Block& b) { b.sequence_number = SequenceNumber(~std::uint64_t{0}); });
  expect_corrupt("both held and cooling", [](Block& b) { b.attributes[0].cooling = Cooling{}; });
}

/// The dumb model: who holds what, what cools since when, what is free in which order.
struct Model {
  std::map<std::uint32_t, std::string> held;
  std::map<std::uint32_t, std::chrono::nanoseconds> cooling;
  std::deque<std::uint32_t> free;
};

TEST(BlockProperty, AgreesWithTheModelUnderAnyHistory) {
  EXPECT_TRUE(rc::check([] {
    const int length = *rc::gen::inRange(24, 33);
    const auto cooldown = std::chrono::seconds(*rc::gen::element(0, 5));
    const Prefix cidr = Prefix::containing(Address::v4(0x0a0a0000), length);
    ManualClock clock;
    Block block = new_block(cidr, kNode, clock.now(), {});
    Model model;
    for (std::uint32_t i = 0; i < block_size(cidr); ++i) model.free.push_back(i);
    int containers = 0;
    const int steps = *rc::gen::inRange(1, 80);
    for (int step = 0; step < steps; ++step) {
      const SequenceNumber before = block.sequence_number;
      const auto action = *rc::gen::inRange(0, 4);
      // What every read does first.
      block = with_cooled_freed(block, cooldown, clock.now());
      std::vector<std::pair<std::chrono::nanoseconds, std::uint32_t>> ended;
      for (const auto& [ordinal, since] : model.cooling) {
        if (clock.now().since_boot - since >= cooldown) ended.emplace_back(since, ordinal);
      }
      std::sort(ended.begin(), ended.end());
      for (const auto& [since, ordinal] : ended) {
        model.cooling.erase(ordinal);
        model.free.push_back(ordinal);
      }
      if (action <= 1) {
        const std::string name = "c" + std::to_string(containers++);
        auto taken = take_next(block, holder(name), kNothingReserved);
        RC_ASSERT(taken.has_value() == !model.free.empty());
        if (taken) {
          const std::uint32_t ordinal = model.free.front();
          model.free.pop_front();
          RC_ASSERT(net::ordinal_of(cidr, taken->address)->value == ordinal);
          model.held[ordinal] = name;
          block = std::move(taken->block);
        }
      } else if (action == 2 && !model.held.empty()) {
        auto it = model.held.begin();
        std::advance(it, *rc::gen::inRange<std::size_t>(0, model.held.size()));
        block = released(block, it->second, cooldown, clock.now());
        if (cooldown == 0s) {
          model.free.push_back(it->first);
        } else {
          model.cooling[it->first] = clock.now().since_boot;
        }
        model.held.erase(it);
      } else {
        clock.advance(std::chrono::milliseconds(*rc::gen::inRange(1, 4000)));
      }
      block = with_next_sequence_number(std::move(block));
      RC_ASSERT(block.sequence_number > before);
      RC_ASSERT(check_block(block).has_value());
      for (std::uint32_t i = 0; i < block_size(cidr); ++i) {
        const AddressState expected = model.held.contains(i)      ? AddressState::held
                                      : model.cooling.contains(i) ? AddressState::cooling
                                                                  : AddressState::free;
        RC_ASSERT(state_of(block, Ordinal(i)) == expected);
      }
    }
  }));
}

}  // namespace

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
    return with_next_sequence_number(
        take_next(std::move(block), attribute, [](const net::Address&) { return false; })->block);
  }
  void release_one(std::uint32_t ordinal, const Cooldowns& cooldowns) {
    const net::Ordinal one(ordinal);
    block_ = with_next_sequence_number(release(std::move(block_), {&one, 1}, cooldowns, clock_.now()));
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

/// Another deleted the block and made it anew, with the numbers of a clock that is behind, or of one that goes on.
TEST_F(CoolingBesideTest, WhatIsOfABlockBeforeThisOneRestsOnButItsNumberIsNotOfThisOne) {
  release_one(1, Cooldowns(30s));
  const auto [seen, beside] = without_cooling(block_);
  for (const std::chrono::minutes later : {std::chrono::minutes(-24h), 24h + 2min}) {
    clock_.jump_wall(later);
    const Block anew = new_block(block_.cidr, {}, clock_.now(), {});
    ASSERT_EQ(anew.sequence_number < beside.front().sequence_number, later < 0s) << later.count();
    const Block back = with_cooling(anew, beside);
    ASSERT_TRUE(check_block(back)) << check_block(back).error().message;
    EXPECT_EQ(state_of(back, net::Ordinal(1)), AddressState::cooling) << later.count();
    EXPECT_EQ(sequence_of(back, net::Ordinal(1)), SequenceNumber()) << later.count();
    EXPECT_EQ(back.unallocated.free_count(), 3U) << later.count();
  }
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
