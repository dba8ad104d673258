#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/claim_choice.h"
#include "ipam/decide/explain.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"

namespace croft::core {

namespace {

using net::Family;
using net::Prefix;
using testing::HasSubstr;

AssignRequest request(Family family, const std::string& container = "c1") {
  AssignRequest wanted;
  wanted.owner = {"net", container, "eth0"};
  wanted.node = kNode;
  wanted.count.v4 = family == Family::v4 ? 1 : 0;
  wanted.count.v6 = family == Family::v6 ? 1 : 0;
  return wanted;
}

/// One pool in an otherwise empty register.
struct PoolScene : TestRegister {
  PoolScene(const Prefix& cidr, int block_length) {
    pool.name = "p";
    pool.cidr = cidr;
    pool.block_length = block_length;
    put(pool_key("p"), pool);
  }
  void reserve(const char* name, std::vector<Prefix> cidrs) {
    put(reservation_key(name), Reservation{name, std::move(cidrs), {}});
  }

  [[nodiscard]] Result<AssignAnswer> assign(const AssignRequest& wanted) {
    return decided(plan_assign, wanted, clock.now());
  }
  [[nodiscard]] std::string add(const std::string& container = "c1") {
    const auto answer = assign(request(pool.cidr.family(), container));
    if (!answer) return answer.error().message;
    if (const auto* refusal = std::get_if<Refusal>(&*answer))
      return refusal->summary + ": " + refusal->considered.front().reason;
    return std::get<Assigned>(*answer).addresses.front().address.to_string();
  }
  [[nodiscard]] Result<ClaimChoice> choose() {
    return decide<ClaimChoice>([&](const Snapshot& s) {
      return core::decide(s, [&](Reader& reader) -> Flow<Plan<ClaimChoice>> {
        const PoolTable pools(reader);
        TRY_VOID(reader.ready());
        TRY(ClaimChoice choice, choose_block_to_claim(reader, pools, pool, kNode));
        return Plan<ClaimChoice>{std::move(choice), {}};
      });
    });
  }

  Pool pool;
  ManualClock clock;
};

std::vector<std::pair<int, int>> shapes(Family family, int block_length_min) {
  std::vector<std::pair<int, int>> result;
  for (int length = 0; length <= net::bit_length(family); ++length) {
    for (int block = std::max(length, block_length_min); block <= net::bit_length(family); ++block) {
      result.emplace_back(length, block);
    }
  }
  return result;
}

/// Every length of pool and block.
TEST(PoolShape, EveryPairOfLengthsHasABlockToClaim) {
  for (const Family family : {Family::v4, Family::v6}) {
    const net::Address last = net::Address::from(family, net::U128::low_bits(net::bit_length(family)));
    for (const auto& [length, block] : shapes(family, family == Family::v4 ? 20 : 116)) {
      PoolScene scene(Prefix::containing(last, length), block);
      SCOPED_TRACE(scene.pool.cidr.to_string() + " /" + std::to_string(block));
      const auto chosen = scene.choose();
      ASSERT_TRUE(chosen && chosen->block) << (chosen ? chosen->reason : chosen.error().message);
      EXPECT_TRUE(scene.pool.cidr.contains(*chosen->block));
      EXPECT_EQ(chosen->block->length(), block);
      EXPECT_LE(scene.steps, 16U);
    }
  }
}

TEST(PoolShape, EveryPairOfLengthsIsAssignedFromAndReleased) {
  for (const Family family : {Family::v4, Family::v6}) {
    const net::Address inside = family == Family::v4 ? net::Address::v4(0x0a000000) : prefix("fd00::/8").first();
    for (const auto& [length, block] : shapes(family, family == Family::v4 ? 28 : 124)) {
      PoolScene scene(Prefix::containing(inside, length), block);
      SCOPED_TRACE(scene.pool.cidr.to_string() + " /" + std::to_string(block));
      const std::string address = scene.add();
      ASSERT_TRUE(scene.pool.cidr.contains(net::Address::parse(address).value())) << address;
      EXPECT_EQ(scene.add(), address);
      const auto explained = scene.decided(plan_explain, request(family, "c2"), scene.clock.now());
      EXPECT_TRUE(explained);
      const auto released = scene.decided(plan_release_owner, {"net", "c1", "eth0"}, scene.clock.now());
      ASSERT_TRUE(released);
      EXPECT_EQ(released->addresses.size(), 1U);
      EXPECT_LE(scene.steps, 64U);
    }
  }
}

TEST(PoolShape, AReservationOfAnySizeIsPassedOverInAFewSteps) {
  PoolScene scene(prefix("fd00::/64"), 122);
  // All but the last block, in two halves and what is left of the second.
  std::vector<Prefix> reserved;
  for (int length = 65; length <= 122; ++length) {
    reserved.push_back(
        Prefix::containing(scene.pool.cidr.subprefix(net::U128::low_bits(length - 64) - 1, length).first(), length));
  }
  scene.reserve("r", reserved);
  EXPECT_EQ(scene.add(), "fd00::ffff:ffff:ffff:ffc0");
  EXPECT_LT(scene.steps, 5000U);
  // And with the last one, there is none: an answer, not a search through 2^58.
  PoolScene full(prefix("fd00::/64"), 122);
  full.reserve("r", {prefix("fd00::/64")});
  EXPECT_THAT(full.add(), HasSubstr("no IPv6 address"));
  EXPECT_LT(full.steps, 5000U);
}

/// A reservation that ends within a block leaves the rest of that block.
TEST(PoolShape, WhatAReservationLeavesOfABlockIsFound) {
  PoolScene scene(prefix("fd00::/100"), 122);
  std::vector<Prefix> reserved;
  for (int length = 101; length <= 127; ++length) {
    reserved.push_back(scene.pool.cidr.subprefix(net::U128::low_bits(length - 100) - 1, length));
  }
  scene.reserve("r", reserved);  // all but the last two addresses
  EXPECT_EQ(scene.add("c1"), "fd00::fff:fffe");
  EXPECT_EQ(scene.add("c2"), "fd00::fff:ffff");
  EXPECT_THAT(scene.add("c3"), HasSubstr("no IPv6 address"));
  EXPECT_LT(scene.steps, 5000U);
}

TEST(PoolShape, ManySingleReservationsTakeNoMoreSteps) {
  PoolScene scene(prefix("10.0.0.0/15"), 26);
  std::vector<Prefix> reserved;
  for (std::uint32_t i = 0; i < 65536; ++i)
    reserved.push_back(Prefix::containing(net::Address::v4(0x0a000000 + i), 32));
  scene.reserve("r", reserved);
  const std::string address = scene.add();
  EXPECT_TRUE(prefix("10.1.0.0/16").contains(net::Address::parse(address).value())) << address;
  EXPECT_LT(scene.steps, 5000U);
}

TEST(PoolShape, AFullPoolTakesAsManyStepsAsItHasBlocks) {
  PoolScene scene(prefix("10.0.0.0/16"), 30);
  const AffinityOwner other{AffinityOwner::Type::host, "node-b"};
  for (std::uint32_t i = 0; i < 1U << 14; ++i) {
    const Prefix cidr = scene.pool.cidr.subprefix(i, 30);
    Block block = new_block(cidr, other, scene.clock.now(), {});
    block.unallocated = space::OrderedFreeList::from_order(4, {}).value();
    Attribute attribute;
    attribute.handle_id = "net.other";
    block.attributes = {attribute};
    block.allocations.assign(4, 0U);
    scene.put(block_key(cidr), std::move(block));
  }
  EXPECT_THAT(scene.add(), HasSubstr("all 16384 blocks are claimed"));
  EXPECT_LT(scene.steps, 40000U);
}

TEST(PoolShape, ABlockWithoutRoomToCountIsDamageAndNoDeath) {
  PoolScene scene(prefix("10.0.0.0/29"), 30);
  ASSERT_EQ(net::Prefix::containing(net::Address::parse(scene.add()).value(), 29), scene.pool.cidr);
  for (auto [key, value] : scene.records()) {
    if (key.kind != Kind::block) continue;
    std::get<Block>(value).sequence_number = SequenceNumber((std::uint64_t{1} << 63) - 2);
    scene.put(key, value);
    break;
  }
  const auto released = scene.decided(plan_release_owner, {"net", "c1", "eth0"}, scene.clock.now());
  ASSERT_FALSE(released);
  EXPECT_THAT(released.error().message, HasSubstr("no room to grow"));
  EXPECT_THAT(scene.add("c2"), HasSubstr("10.0.0.")) << "the other block serves";
}

/// Clocks at the ends of their type, which a machine without a battery may well have.
TEST(PoolShape, NoClockIsTooOddToAssign) {
  for (const std::int64_t wall : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
    for (const std::int64_t since_boot : {std::int64_t{0}, INT64_MAX}) {
      PoolScene scene(prefix("10.0.0.0/29"), 30);
      Instant now;
      now.wall = WallTime(std::chrono::nanoseconds(wall));
      now.since_boot = std::chrono::nanoseconds(since_boot);
      for (int i = 0; i < 3; ++i) {
        const auto done = scene.decided(plan_assign, request(Family::v4, "c" + std::to_string(i)), now);
        EXPECT_TRUE(done);
        const auto released = scene.decided(plan_release_owner, {"net", "c" + std::to_string(i), "eth0"}, now);
        EXPECT_TRUE(released);
      }
    }
  }
}

struct Call {
  enum class What { add, add_both, del, ahead } what = What::add;
  std::string container, node;
};

Call any_call() {
  return {*rc::gen::element(Call::What::add, Call::What::add, Call::What::add_both, Call::What::del, Call::What::ahead),
          "c" + std::to_string(*rc::gen::inRange(0, 30)), *rc::gen::element<std::string>("node-a", "node-b")};
}

/// The answer as text.
std::string decide_one(TestRegister& reg, const Call& call, const Instant& now) {
  const Owner owner{"net", call.container, "eth0"};
  if (call.what == Call::What::del) {
    const auto done = reg.decided(plan_release_owner, owner, now);
    if (!done) return done.error().message;
    std::string text = "released";
    for (const auto& address : done->addresses) text += " " + address.to_string();
    return text;
  }
  AssignRequest request;
  request.owner = owner;
  request.node = node(call.node.c_str());
  request.count.v6 = call.what == Call::What::add_both ? 1 : 0;
  if (call.what == Call::What::ahead) {
    const auto done = reg.decided(plan_claim_ahead, request, net::Family::v4, 3, now);
    if (!done) return done.error().message;
    return *done ? "ahead " + (**done).block.to_string() : "not ahead";
  }
  const auto done = reg.decided(plan_assign, request, now);
  if (!done) return done.error().message;
  if (const auto* refusal = std::get_if<Refusal>(&*done)) return refusal->summary;
  std::string text = "assigned";
  for (const auto& one : std::get<Assigned>(*done).addresses) {
    text += " " + one.address.to_string() + (one.held_before ? " again" : "");
  }
  return text;
}

TEST(TogetherProperty, ComesToWhatItComesToOneAfterTheOther) {
  EXPECT_TRUE(rc::check([] {
    TestRegister one_by_one;
    one_by_one.foreign_writers = *rc::gen::arbitrary<bool>();
    one_by_one.knows_claimed = *rc::gen::arbitrary<bool>();
    const auto cooldown = std::chrono::seconds(*rc::gen::element(0, 10));
    const int length = *rc::gen::inRange(27, 32);
    for (const auto& [name, cidr, block] :
         {std::tuple{"a", prefix("10.0.0.0/26"), length}, std::tuple{"six", prefix("fd00::/121"), 124}}) {
      const PoolSpec spec{name, cidr, block, GatewayChoice{GatewayChoice::Kind::none, {}}, cooldown, {}};
      RC_ASSERT(one_by_one.decided(plan_create_pool, spec).has_value());
    }
    TestRegister together = one_by_one;
    ManualClock clock;
    for (int batches = *rc::gen::inRange(1, 6); batches > 0; --batches) {
      together.begin_batch();
      for (int calls = *rc::gen::inRange(1, 20); calls > 0; --calls) {
        const Call call = any_call();
        const std::string expected = decide_one(one_by_one, call, clock.now());
        const std::string got = decide_one(together, call, clock.now());
        RC_ASSERT(got == expected);
      }
      together.end_batch();
      const bool same = together.records() == one_by_one.records();
      RC_ASSERT(same);
      clock.advance(std::chrono::seconds(*rc::gen::inRange(0, 15)));
    }
  }));
}

}  // namespace

}  // namespace croft::core
