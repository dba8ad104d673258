#include "store/move/decide/store_move.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::core::audit {
namespace {

using testing::HasSubstr;
using End = Seal::End;
using Phase = Seal::Phase;

Seal seal(End end, Phase phase, std::string move = "m") { return {end, phase, std::move(move), "etcd:other", {}}; }
Seals seals(std::optional<Seal> source, std::optional<Seal> target, bool named = true) {
  return {std::move(source), std::move(target), named, named};
}
MoveStep step(std::optional<Seal> source, std::optional<Seal> target) {
  const auto next = next_step(seals(std::move(source), std::move(target)));
  EXPECT_TRUE(next) << next.error().message;
  return next.value_or(MoveStep::done);
}
std::string refusal(std::optional<Seal> source, std::optional<Seal> target, bool named = true) {
  const auto next = next_step(seals(std::move(source), std::move(target), named));
  EXPECT_FALSE(next);
  if (next) return "";
  EXPECT_EQ(next.error().code, ErrorCode::refused_for_safety);
  return next.error().message;
}

TEST(StoreMove, GoesOnWhereTheSealsSayItIs) {
  EXPECT_EQ(step({}, {}), MoveStep::begin);
  EXPECT_EQ(step({}, seal(End::target, Phase::preparing)), MoveStep::look);
  EXPECT_EQ(step({}, seal(End::target, Phase::copying)), MoveStep::copy);
  EXPECT_EQ(step(seal(End::source, Phase::copying), seal(End::target, Phase::copying)), MoveStep::finish);
  EXPECT_EQ(step(seal(End::source, Phase::moved), seal(End::target, Phase::copying)), MoveStep::open);
  EXPECT_EQ(step(seal(End::source, Phase::moved), {}), MoveStep::done);
}

TEST(StoreMove, MovesBackIntoWhereItCameFromAndIntoWhatWasGivenUp) {
  EXPECT_EQ(step({}, seal(End::source, Phase::moved)), MoveStep::take_over);
  EXPECT_EQ(step({}, seal(End::target, Phase::given_up)), MoveStep::take_over);
}

TEST(StoreMove, TouchesNoOtherMove) {
  for (const auto phase : {Phase::preparing, Phase::copying, Phase::moved, Phase::given_up}) {
    EXPECT_THAT(refusal({}, seal(End::target, phase), false), HasSubstr("--to is closed"));
    EXPECT_THAT(refusal({}, seal(End::source, phase), false), HasSubstr("--to is closed"));
    EXPECT_THAT(refusal(seal(End::source, phase), {}, false), HasSubstr("--from is closed"));
    EXPECT_THAT(refusal(seal(End::target, phase), {}), HasSubstr("is being filled"));
  }
  EXPECT_THAT(refusal(seal(End::source, Phase::copying, "a"), seal(End::target, Phase::copying, "b")),
              HasSubstr("move \"b\""));
  EXPECT_THAT(refusal(seal(End::source, Phase::moved, "a"), seal(End::target, Phase::copying, "b")),
              HasSubstr("move \"b\""));
}

TEST(StoreMove, IsNoMoveWhereSomebodyOpenedTheTargetTooEarly) {
  EXPECT_THAT(refusal(seal(End::source, Phase::copying), {}), HasSubstr("before the copy was complete"));
  EXPECT_THAT(refusal(seal(End::source, Phase::copying), seal(End::target, Phase::given_up)), HasSubstr("giving up"));
  EXPECT_THAT(refusal({}, seal(End::source, Phase::copying)), HasSubstr("the other way"));
}

TEST(StoreMove, IsGivenUpTargetFirst) {
  const auto back = [](std::optional<Seal> source, std::optional<Seal> target) {
    return next_step_back(seals(std::move(source), std::move(target))).value();
  };
  EXPECT_EQ(back({}, {}), GiveUpStep::done);
  EXPECT_EQ(back({}, seal(End::target, Phase::preparing)), GiveUpStep::open_target);
  EXPECT_EQ(back({}, seal(End::target, Phase::copying)), GiveUpStep::mark_target);
  EXPECT_EQ(back(seal(End::source, Phase::copying), seal(End::target, Phase::copying)), GiveUpStep::mark_target);
  EXPECT_EQ(back(seal(End::source, Phase::copying), seal(End::target, Phase::given_up)), GiveUpStep::open_source);
  EXPECT_EQ(back({}, seal(End::target, Phase::given_up)), GiveUpStep::done);
  const auto late = next_step_back(seals(seal(End::source, Phase::moved), {}));
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("the way back is a move"));
}

TEST(StoreMove, NumbersNeverGoBack) {
  const auto mark = [](std::uint64_t n) { return std::optional<Value>(HighWaterMark{SequenceNumber(n)}); };
  EXPECT_EQ(due(Kind::high_water_mark, mark(5), mark(7)), mark(7));
  EXPECT_EQ(due(Kind::high_water_mark, mark(7), mark(5)), mark(7));
  EXPECT_EQ(due(Kind::high_water_mark, std::nullopt, mark(5)), mark(5));
  const auto set = [](std::uint64_t n) { return std::optional<Value>(PoolSet{n}); };
  EXPECT_EQ(due(Kind::pool_set, set(1), set(2)), set(2));
  const std::optional<Value> pool = Value(Pool{});
  EXPECT_EQ(due(Kind::pool, pool, std::nullopt), pool);
  EXPECT_EQ(due(Kind::pool, std::nullopt, pool), std::nullopt);
}

TEST(StoreMove, ABlockIsTheSameInEveryFormat) {
  const Instant now{WallTime(std::chrono::milliseconds(1800000000750)), {}, {}};
  Block block =
      new_block(net::Prefix::parse("10.0.0.0/28").value(), AffinityOwner{AffinityOwner::Type::host, "a"}, now, {});
  block.affinity_claim_time = now.wall;
  const auto nobody = [](const net::Address&) { return false; };
  Attribute one, two;
  one.handle_id = "net.one";
  two.handle_id = "net.two";
  block = take_next(std::move(block), one, nobody)->block;
  block = take_next(std::move(block), two, nobody)->block;
  Block other = block;
  std::swap(other.attributes[0], other.attributes[1]);
  std::swap(other.allocations[0], other.allocations[1]);
  other.affinity_claim_time = WallTime(std::chrono::seconds(1800000000));
  EXPECT_NE(Value(block), Value(other));
  EXPECT_EQ(portable(block), portable(other));
  other.sequence_number.value += 1;
  EXPECT_NE(portable(block), portable(other));
}

TEST(StoreMove, ATargetWhoseDefinitionsKeepNoTimeOfAClaimHasTheBlock) {
  const Instant now{WallTime(std::chrono::seconds(1800000000)), {}, {}};
  Block block =
      new_block(net::Prefix::parse("10.0.0.0/28").value(), AffinityOwner{AffinityOwner::Type::host, "a"}, now, {});
  ASSERT_TRUE(block.affinity_claim_time);
  Block pruned = block;
  pruned.affinity_claim_time.reset();
  const auto value = [](const Block& one) { return std::optional(portable(one)); };
  EXPECT_EQ(due(Kind::block, value(block), value(pruned)), value(pruned));
  EXPECT_EQ(due(Kind::block, value(block), std::nullopt), value(block));
  // The other way round the target can keep it, and what it has is not the source's.
  EXPECT_EQ(due(Kind::block, value(pruned), value(block)), value(pruned));
  Block later = block;
  later.affinity_claim_time = now.wall + std::chrono::seconds(5);
  EXPECT_EQ(due(Kind::block, value(block), value(later)), value(block));
  Block other = pruned;
  other.sequence_number.value += 1;
  EXPECT_EQ(due(Kind::block, value(block), value(other)), value(block));
  other = pruned;
  other.affinity.reset();
  EXPECT_EQ(due(Kind::block, value(block), value(other)), value(block));
}

TEST(StoreMove, EveryKindMovesOrIsKnownToStay) {
  for (const KindTraits& traits : kKinds) {
    const bool moves = std::ranges::count(kMovedKinds, traits.kind) == 1;
    const bool stays = std::ranges::count(kStayingKinds, traits.kind) == 1;
    const bool is_kubernetes = traits.system == System::kubernetes;
    const bool is_of_a_stock = traits.kind == Kind::warm_intent || traits.kind == Kind::warm_node;
    EXPECT_EQ(int{moves} + int{stays} + int{is_kubernetes} + int{is_of_a_stock}, 1) << traits.name;
  }
}

}  // namespace
}  // namespace croft::core::audit
