#include "store/copy/decide/copied.h"

#include <algorithm>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::core {
namespace {

using testing::HasSubstr;
using Phase = Pause::Phase;
using What = Due::What;

std::optional<Pause> pause(Phase phase) { return Pause{phase, "etcd:other", {}}; }

TEST(CopyStepTest, GoesOnWhereThePausesSayItIs) {
  const auto copying = pause(Phase::copying), moved = pause(Phase::moved), filling = pause(Phase::filling);
  const std::optional<Pause> none;
  const auto step = [](const std::optional<Pause>& source, const std::optional<Pause>& target) {
    return next_copy_step({source, target, true, true});
  };
  EXPECT_EQ(step(none, none), CopyStep::begin);
  EXPECT_EQ(step(none, filling), CopyStep::copy);
  EXPECT_EQ(step(none, moved), CopyStep::copy) << "the way back";
  EXPECT_EQ(step(copying, filling), CopyStep::copy);
  EXPECT_EQ(step(moved, filling), CopyStep::open);
  EXPECT_EQ(step(moved, none), CopyStep::done);
  EXPECT_THAT(step(copying, none).error().message, HasSubstr("somebody else opened it"));
  EXPECT_THAT(step(none, copying).error().message, HasSubstr("the other way"));
  EXPECT_THAT(step(moved, moved).error().message, HasSubstr("both stores"));
  EXPECT_THAT(step(copying, moved).error().message, HasSubstr("croft store resume"));
  for (const auto& target : {none, copying, moved, filling}) {
    EXPECT_THAT(step(filling, target).error().message, HasSubstr("no whole register"));
  }
  for (const auto& one : {copying, moved, filling}) {
    EXPECT_THAT(next_copy_step({one, none, false, false}).error().message, HasSubstr("FROM is paused"));
    EXPECT_THAT(next_copy_step({none, one, false, false}).error().message, HasSubstr("TO is paused"));
  }
}

What what(Kind kind, const std::optional<Value>& here, const std::optional<Value>& there) {
  const auto found = due(kind, here ? &*here : nullptr, there ? &*there : nullptr);
  EXPECT_TRUE(found) << found.error().message;
  return found ? found->what : What::nothing;
}

TEST(DueTest, NumbersNeverGoBack) {
  const auto mark = [](std::uint64_t n) { return std::optional<Value>(HighWaterMark{SequenceNumber(n)}); };
  EXPECT_EQ(what(Kind::high_water_mark, mark(5), mark(7)), What::nothing);
  EXPECT_EQ(what(Kind::high_water_mark, mark(7), mark(5)), What::write);
  EXPECT_EQ(what(Kind::high_water_mark, std::nullopt, mark(5)), What::nothing);
  const auto set = [](std::uint64_t n) { return std::optional<Value>(PoolSet{n}); };
  EXPECT_EQ(what(Kind::pool_set, set(1), set(2)), What::nothing);
  const std::optional<Value> pool = Value(Pool{});
  EXPECT_EQ(what(Kind::pool, pool, std::nullopt), What::write);
  EXPECT_EQ(what(Kind::pool, std::nullopt, pool), What::remove);
  EXPECT_EQ(what(Kind::pool, pool, pool), What::nothing);
}

TEST(DueTest, ABlockIsTheSameInEveryFormat) {
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
  other.affinity_claim_time.reset();  // definitions before Calico v3.32 drop it
  EXPECT_NE(Value(block), Value(other));
  EXPECT_EQ(what(Kind::block, block, other), What::nothing);
  Block later = block;
  later.sequence_number.value += 1;
  EXPECT_EQ(what(Kind::block, later, other), What::write);
  const Value here = block, there = later;
  EXPECT_THAT(due(Kind::block, &here, &there).error().message, HasSubstr("another program wrote block 10.0.0.0/28"));
  Block nobodys = other;
  nobodys.affinity.reset();
  EXPECT_EQ(what(Kind::block, block, nobodys), What::write);
  Block swapped = block;
  std::swap(swapped.allocations[0], swapped.allocations[1]);
  EXPECT_EQ(what(Kind::block, block, swapped), What::write) << "another holder";
}

TEST(DueTest, EveryKindIsCopiedOrIsKnownToStay) {
  for (const KindTraits& traits : kKinds) {
    const bool goes = std::ranges::count(kCopiedKinds, traits.kind) == 1;
    const bool stays = std::ranges::count(kStayingKinds, traits.kind) == 1;
    const bool is_kubernetes = traits.system == System::kubernetes;
    const bool is_beside = traits.kind == Kind::block_beside;
    const bool is_of_a_stock = traits.kind == Kind::warm_intent || traits.kind == Kind::warm_node;
    EXPECT_EQ(int{goes} + int{stays} + int{is_kubernetes} + int{is_beside} + int{is_of_a_stock}, 1) << traits.name;
  }
  EXPECT_EQ(kCopiedKinds.back(), Kind::pool) << "a register without pools gives nothing";
}

}  // namespace
}  // namespace croft::core
