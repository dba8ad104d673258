#include "ipam/decide/block_overlap.h"

#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/manual_clock.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/release.h"
#include "ipam/decide/test_overlap_world.h"
#include "register/test_values.h"

namespace croft::core {
namespace {

using net::Address;
using net::Prefix;
using testing::HasSubstr;

class Overlap4 : public testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(Overlap4, AClaimAfterAForeignChangeOfTheLengthKeepsOffTheOldBlocks) {
  const auto [before, after, keys_at_hand] = GetParam();
  OverlapWorld world("10.79.0.0/25", before, keys_at_hand);
  std::set<Address> held;
  for (int i = 0; i < 8; ++i) held.insert(world.add("c" + std::to_string(i), "node-a").value());
  const std::vector<Prefix> old = world.blocks();
  world.set_length(after);
  // The old block's owner goes on using it; others have the rest.
  std::size_t count = 0;
  for (const char* on : {"node-b", "node-a"}) {
    for (int i = 0; i < 130; ++i) {
      const auto address = world.add(std::string("d") + on + std::to_string(i), on);
      if (!address) break;
      EXPECT_TRUE(held.insert(*address).second) << address->to_string() << " has a second holder";
      ++count;
    }
    EXPECT_FALSE(world.any_overlap());
  }
  // Of the pool only what the old blocks keep from larger ones is lost.
  std::set<Prefix> spoiled;
  std::size_t used = 0;
  for (const Prefix& block : old) {
    if (after >= before) continue;
    spoiled.insert(Prefix::containing(block.first(), after));
    used += block_size(block);
  }
  EXPECT_EQ(count, 128 - 8 - (spoiled.size() * (std::size_t{1} << (32 - after)) - used));
}

INSTANTIATE_TEST_SUITE_P(Lengths, Overlap4,
                         testing::Combine(testing::Values(26, 29, 32), testing::Values(25, 26, 28, 30),
                                          testing::Bool()));

TEST(Overlap, ARefusalSaysSo) {
  OverlapWorld world("10.79.0.0/26", 28);
  const Address held = world.add("c0", "node-a").value();
  world.set_length(26);
  const auto answer = world.decide(world.request("c1", "node-b"));
  const auto& refusal = std::get<Refusal>(answer.value());
  EXPECT_THAT(refusal.considered.front().reason,
              HasSubstr("block " + Prefix::containing(held, 28).to_string() + " is not of /26"));
  auto exact = world.request("c2", "node-b");
  exact.addresses = {Address::parse("10.79.0.1").value()};
  const auto refused = world.decide(exact);
  EXPECT_THAT(std::get<Refusal>(refused.value()).considered.front().reason,
              HasSubstr("block 10.79.0.0/26 overlaps block " + Prefix::containing(held, 28).to_string()));
  const auto claimed = world.reg.decide<ClaimOutcome>([&](const Snapshot& s) {
    return plan_claim_affinity(s, node("node-b"), prefix("10.79.0.0/26"), world.clock.now());
  });
  EXPECT_THAT(claimed.error().message, HasSubstr("overlaps block"));
  EXPECT_FALSE(world.any_overlap());
}

/// A claim of the node without a block is not made into one over another.
TEST(Overlap, AClaimWithoutABlockStaysOne) {
  OverlapWorld world("10.79.0.0/26", 28);
  ASSERT_TRUE(world.add("c0", "node-a"));
  world.set_length(26);
  const Affinity row{node("node-b"), prefix("10.79.0.0/26"), AffinityState::pending, false};
  world.reg.put(affinity_key(row.owner, row.cidr), row);
  EXPECT_FALSE(world.add("c1", "node-b"));
  EXPECT_FALSE(world.any_overlap());
}

/// Both exist: foreign writers have made one over the other.
TEST(Overlap, NothingIsTakenFromBlocksThatOverlap) {
  for (const bool keys_at_hand : {false, true}) {
    OverlapWorld world("10.79.0.0/26", 28, keys_at_hand);
    const Prefix old = prefix("10.79.0.0/26");
    Block block = new_block(old, node("node-a"), world.clock.now(), {});
    world.reg.put(block_key(old), block);
    world.reg.put(affinity_key(node("node-a"), old), Affinity{node("node-a"), old, AffinityState::confirmed, false});
    for (int i = 0; i < 4; ++i) {
      const Prefix small = old.subprefix(static_cast<std::uint64_t>(i), 28);
      world.reg.put(block_key(small), new_block(small, node("node-c"), world.clock.now(), {}));
    }
    EXPECT_FALSE(world.add("c0", "node-a")) << "its own";
    EXPECT_FALSE(world.add("c1", "node-b")) << "borrowed, or taken over";
  }
}

/// The larger one is nobody's, and so in no list at hand.
TEST(Overlap, NothingIsBorrowedFromUnderABlockThatIsNobodys) {
  for (const bool keys_at_hand : {false, true}) {
    OverlapWorld world("10.79.0.0/26", 28, keys_at_hand);
    world.reg.put(block_key(prefix("10.79.0.0/26")), new_block(prefix("10.79.0.0/26"), {}, world.clock.now(), {}));
    for (std::uint64_t i = 0; i < 4; ++i) {
      const Prefix small = prefix("10.79.0.0/26").subprefix(i, 28);
      world.reg.put(block_key(small), new_block(small, node("node-c"), world.clock.now(), {}));
      world.reg.put(affinity_key(node("node-c"), small),
                    Affinity{node("node-c"), small, AffinityState::confirmed, false});
    }
    EXPECT_FALSE(world.add("c1", "node-b"));
  }
}

/// More blocks than a window shows, which nobody claims, so that they are in no list at hand: their nodes were removed.
TEST(Overlap, WhatALookLeavesOpenIsNotClaimed) {
  for (const bool keys_at_hand : {false, true}) {
    OverlapWorld world("fd00:79::/118", 128, keys_at_hand);
    for (std::uint64_t i = 0; i < 330; ++i) {
      const Prefix cidr = prefix("fd00:79::/118").subprefix(i, 128);
      world.reg.put(block_key(cidr), new_block(cidr, {}, world.clock.now(), {}));
    }
    world.set_length(122);
    for (int i = 6; i < 10; ++i) {
      static_cast<void>(world.add("c" + std::to_string(i), "node-a"));
      auto exact = world.request("d" + std::to_string(i), "node-a");
      exact.addresses = {prefix("fd00:79::/118").subprefix(static_cast<std::uint64_t>(i * 28), 128).first()};
      static_cast<void>(world.decide(exact));
    }
    static_cast<void>(world.reg.decide<ClaimOutcome>([&](const Snapshot& s) {
      return plan_claim_affinity(s, node("node-b"), prefix("fd00:79::c0/122"), world.clock.now());
    }));
    EXPECT_FALSE(world.any_overlap());
  }
}

/// The CIDR of a block's record is taken whole: larger than Croft makes blocks, larger than the pool, unreadable.
struct LargeBlock {
  const char* pool;
  int length;
  const char* block;
  bool is_read;
};
class LargeBlocks : public testing::TestWithParam<std::tuple<LargeBlock, int>> {};

TEST_P(LargeBlocks, KeepEverybodyElseOut) {
  const auto& [scene, store] = GetParam();
  OverlapWorld world(scene.pool, scene.length, store == 1);
  world.reg.foreign_writers = store != 2;
  const Prefix large = prefix(scene.block);
  const AffinityOwner owner = node("w5");
  if (scene.is_read) {
    Block block = new_block(large, owner, world.clock.now(), {});
    block = stamped(
        take_next(std::move(block), Attribute{"net.p0", {}, {}, {}}, [](const Address&) { return false; })->block);
    world.reg.put(block_key(large), std::move(block));
  } else {
    world.reg.put(block_key(large), Damaged{Kind::block, Error{ErrorCode::corrupt, "damaged", {}}});
  }
  world.reg.put(affinity_key(owner, large), Affinity{owner, large, AffinityState::confirmed, false});
  const std::size_t before = world.reg.records().size();
  for (int i = 0; i < 4; ++i) {
    const auto given = world.add("c" + std::to_string(i), "n" + std::to_string(i));
    EXPECT_TRUE(!given || !large.contains(*given)) << given->to_string();
    auto exact = world.request("d" + std::to_string(i), "n" + std::to_string(i));
    exact.addresses = {
        prefix(scene.pool).subprefix(static_cast<std::uint64_t>(i), net::bit_length(large.family())).first()};
    if (large.contains(exact.addresses.front())) {
      const auto answer = world.decide(exact);
      EXPECT_TRUE(!answer || std::holds_alternative<Refusal>(*answer));
    }
  }
  EXPECT_EQ(world.reg.records().size() == before, large.contains(prefix(scene.pool)));
}
INSTANTIATE_TEST_SUITE_P(Table, LargeBlocks,
                         testing::Combine(testing::Values(LargeBlock{"10.233.96.0/19", 21, "10.233.96.0/19", true},
                                                          LargeBlock{"10.233.96.0/19", 26, "10.233.96.0/19", false},
                                                          LargeBlock{"10.233.64.0/18", 26, "10.233.96.0/19", true},
                                                          LargeBlock{"10.233.96.0/24", 26, "10.233.96.0/22", true},
                                                          LargeBlock{"10.233.96.0/20", 32, "10.0.0.0/8", false},
                                                          LargeBlock{"10.233.96.0/20", 28, "0.0.0.0/0", false},
                                                          LargeBlock{"fd00:79::/112", 122, "fd00:79::/113", true},
                                                          LargeBlock{"fd00:79::/112", 122, "fd00:79::/112", true},
                                                          LargeBlock{"fd00:79:0:1::/112", 124, "fd00:79::/48", false}),
                                          testing::Values(0, 1, 2)));

RC_GTEST_PROP(Overlap, AGlanceFindsWhatIsThere, ()) {
  const bool v4 = *rc::gen::arbitrary<bool>();
  const int bits = v4 ? 32 : 128;
  const Address base = *rc::gen::element(Address::parse(v4 ? "10.0.96.0" : "fd00::").value(),
                                         Address::parse(v4 ? "10.9.0.0" : "fd00:0:1::1:0:0").value(),
                                         Address::parse(v4 ? "10.255.240.0" : "fd00:1:2:3:4:5:6:0").value(),
                                         Address::parse(v4 ? "10.1.16.0" : "fd00:1:2:3:4:5:0:f000").value());
  const auto any = [&](int shortest) {
    const int length = *rc::gen::inRange(shortest, bits + 1);
    const auto offset = *rc::gen::inRange<std::uint64_t>(0, 4096);
    return Prefix::containing(Address::from(base.family(), base.value() + net::U128(offset)), length);
  };
  TestRegister reg;
  reg.foreign_writers = true;
  const Prefix block = any(bits - 12);
  std::vector<Prefix> there;
  for (auto count = *rc::gen::inRange(0, 6); count > 0; --count) {
    there.push_back(any(*rc::gen::element(0, bits - 16, bits - 12)));
    reg.put(block_key(there.back()), Block{});
  }
  const bool expected =
      std::any_of(there.begin(), there.end(), [&](const Prefix& p) { return p != block && p.overlaps(block); });
  const auto found = reg.plan<std::optional<Prefix>>([&](const Snapshot& s) -> Step<std::optional<Prefix>> {
    Reader reader(s);
    const Overlap overlap = glance_at_overlap(reader, block);
    if (!reader.complete()) return reader.missing();
    EXPECT_FALSE(overlap.unknown);
    return Plan<std::optional<Prefix>>{overlap.block, {}};
  });
  RC_ASSERT(found->answer.has_value() == expected);
}

/// As text "fd00:1:2:3:4:4::" lies behind "fd00:1:2:3:4:4:0:1".
TEST(Overlap, AGlanceFindsALargerBlockWhoseNameIsShortened) {
  TestRegister reg;
  reg.foreign_writers = true;
  reg.put(block_key(prefix("fd00:1:2:3:4:4::/94")), Block{});
  const auto found = reg.plan<std::optional<Prefix>>([&](const Snapshot& s) -> Step<std::optional<Prefix>> {
    Reader reader(s);
    const Overlap overlap = glance_at_overlap(reader, prefix("fd00:1:2:3:4:5:1:f400/118"));
    if (!reader.complete()) return reader.missing();
    return Plan<std::optional<Prefix>>{overlap.block, {}};
  });
  EXPECT_EQ(found->answer, prefix("fd00:1:2:3:4:4::/94"));
}

/// Calico deletes the blocks that cool, and the pool comes back with another length.
TEST(Overlap, WhatCoolsRestsOnInABlockOfAnotherLength) {
  for (const auto& [after, keys_at_hand] :
       {std::pair(26, true), std::pair(27, false), std::pair(29, true), std::pair(32, false)}) {
    SCOPED_TRACE(after);
    OverlapWorld world("10.79.0.0/26", 28, keys_at_hand);
    const std::set<Address> resting = world.rest_four_and_come_back_with(after);
    for (int i = 0; i < 60; ++i) {
      const auto address = world.add("d" + std::to_string(i), i < 28 ? "node-a" : "node-b");
      ASSERT_TRUE(address) << i;
      EXPECT_FALSE(resting.contains(*address)) << address->to_string();
    }
    EXPECT_FALSE(world.add("e", "node-b"));
    auto exact = world.request("f", "node-a");
    exact.addresses = {*resting.begin()};
    EXPECT_THAT(std::get<Refusal>(world.decide(exact).value()).considered.front().reason, HasSubstr("cooling until"));
    world.clock.advance(std::chrono::seconds{601});
    EXPECT_TRUE(world.add("e", "node-b"));
  }
}

/// The same, but the block of the new length is made by the other program, which knows nothing of what rests.
TEST(Overlap, WhatCoolsRestsOnInABlockThatAnotherProgramMade) {
  for (const auto& [after, keys_at_hand, on] :
       {std::tuple(26, false, "node-a"), std::tuple(26, true, "node-a"), std::tuple(27, false, "node-b"),
        std::tuple(27, true, "node-b"), std::tuple(29, false, "node-a"), std::tuple(29, true, "node-b")}) {
    SCOPED_TRACE(std::to_string(after) + on);
    OverlapWorld world("10.79.0.0/26", 28, keys_at_hand);
    const std::set<Address> resting = world.rest_four_and_come_back_with(after);
    for (std::uint64_t i = 0; i < std::uint64_t{1} << (after - 26); ++i) {
      world.make_as_another(prefix("10.79.0.0/26").subprefix(i, after), "node-a");
    }
    auto exact = world.request("f", on);
    exact.addresses = {*resting.begin()};
    EXPECT_THAT(std::get<Refusal>(world.decide(exact).value()).considered.front().reason, HasSubstr("cooling until"));
    for (int i = 0; i < 60; ++i) {
      const auto address = world.add("d" + std::to_string(i), on);
      ASSERT_TRUE(address) << i;
      EXPECT_FALSE(resting.contains(*address)) << address->to_string();
    }
    EXPECT_FALSE(world.add("e", on));
    world.clock.advance(std::chrono::seconds{601});
    EXPECT_TRUE(world.add("e", on));
  }
}

/// A block that was left empty is taken over with it.
TEST(Overlap, WhatCoolsRestsOnInABlockThatIsTakenOver) {
  for (const bool keys_at_hand : {false, true}) {
    OverlapWorld world("10.79.0.0/27", 28, keys_at_hand);
    world.set_cooldown(std::chrono::seconds{600});
    const Address resting = world.add("c", "node-a").value();
    world.del("c");
    world.lose_blocks();
    world.set_length(27);
    world.make_as_another(prefix("10.79.0.0/27"), "node-a");
    world.clock.advance(std::chrono::minutes{2});
    for (int i = 0; i < 31; ++i) {
      const auto address = world.add("d" + std::to_string(i), "node-b");
      ASSERT_TRUE(address) << i;
      EXPECT_NE(*address, resting);
    }
    EXPECT_FALSE(world.add("e", "node-b"));
  }
}

/// A refusal keeps it too, with the mark of the boot that counts.
TEST(Overlap, ARefusalTakesInWhatRests) {
  OverlapWorld world("10.79.0.0/26", 28);
  world.set_cooldown(std::chrono::seconds{600});
  const Address resting = world.add("c", "node-a").value();
  world.del("c");
  world.lose_blocks();
  world.set_length(26);
  world.make_as_another(prefix("10.79.0.0/26"), "node-a");
  auto exact = world.request("f", "node-a");
  exact.addresses = {resting};
  EXPECT_TRUE(std::holds_alternative<Refusal>(world.decide(exact).value()));
  const auto* block = world.reg.get(block_key(prefix("10.79.0.0/26")));
  EXPECT_EQ(state_of(*block, *net::ordinal_of(block->cidr, resting)), AddressState::cooling);
}

/// Asked together with the block, and not at all of a block that this process wrote: no ADD waits for it. What has
/// ended goes.
TEST(Overlap, WhatMayRestCostsNoRound) {
  for (const bool keys_at_hand : {false, true}) {
    OverlapWorld plain("10.79.0.0/26", 26, keys_at_hand);
    ASSERT_TRUE(plain.add("a", "node-a"));
    ASSERT_TRUE(plain.add("b", "node-a"));
    const int rounds = plain.reg.rounds;

    OverlapWorld world("10.79.0.0/26", 28, keys_at_hand);
    world.set_cooldown(std::chrono::seconds{600});
    ASSERT_TRUE(world.add("c", "node-a"));
    world.del("c");
    world.lose_blocks();
    world.set_length(26);
    world.make_as_another(prefix("10.79.0.0/26"), "node-a");
    ASSERT_TRUE(world.add("d0", "node-a"));
    world.clock.advance(std::chrono::seconds{601});
    world.touch_as_another(prefix("10.79.0.0/26"));
    ASSERT_TRUE(world.add("d1", "node-a"));
    for (const auto& [key, value] : world.reg.records()) EXPECT_NE(key.kind, Kind::block_beside) << key.name;
    ASSERT_TRUE(world.add("d2", "node-a"));
    EXPECT_EQ(world.reg.rounds, rounds);
    world.touch_as_another(prefix("10.79.0.0/26"));
    ASSERT_TRUE(world.add("d3", "node-a"));
    EXPECT_EQ(world.reg.rounds, rounds + (keys_at_hand ? 1 : 0));
  }
}

TEST(Overlap, NothingIsTakenFromABlockUnderWhichSomethingUnknownRests) {
  OverlapWorld world("10.79.0.0/26", 28);
  const Key beside = block_beside_key(prefix("10.79.0.0/27"));
  world.reg.put(beside, Damaged{Kind::block_beside, Error{ErrorCode::corrupt, "damaged", {}}});
  world.make_as_another(prefix("10.79.0.0/28"), "node-a");
  const auto address = world.add("c", "node-a");
  ASSERT_TRUE(address);
  EXPECT_FALSE(prefix("10.79.0.0/27").contains(*address));
}

/// A store's list is read once where looks don't tell, not a look for each of what may be many.
TEST(Overlap, WhereLooksDoNotTellTheListIsReadOnce) {
  for (const bool keys_at_hand : {false, true}) {
    OverlapWorld world("fd00:79::/118", 127, keys_at_hand);
    const auto put = [&](std::uint64_t i) {
      const Prefix cidr = prefix("fd00:79::/118").subprefix(i, 127);
      const AffinityOwner other = node("node-" + std::to_string(i));
      world.reg.put(block_key(cidr), new_block(cidr, other, world.clock.now(), {}));
      world.reg.put(affinity_key(other, cidr), Affinity{other, cidr, AffinityState::confirmed, false});
    };
    for (std::uint64_t i = 1; i < 300; ++i) put(i);
    // The first block of all, for which names of any length have to be looked at.
    world.reg.put(claim_cursor_key(node("node-a"), "a"), ClaimCursor{prefix("fd00:79::/118").subprefix(511, 127)});
    EXPECT_EQ(world.add("c", "node-a"), Address::parse("fd00:79::").value());
    EXPECT_LT(world.reg.rounds, 8);
    put(0);
    for (std::uint64_t i = 300; i < 512; ++i) put(i);
    EXPECT_TRUE(world.add("d", "node-b")) << "borrowed";
    EXPECT_LT(world.reg.rounds, 16);
    auto exact = world.request("e", "node-b");
    exact.addresses = {Address::parse("fd00:79::1").value()};
    EXPECT_TRUE(std::holds_alternative<Assigned>(world.decide(exact).value()));
  }
}

/// One record that covers all of a pool is told, at once, and as what it is.
TEST(Overlap, WhereAllOfAPoolIsUnclearTheRecordIsNamed) {
  for (const auto& [cidr, length, keys_at_hand] :
       {std::tuple("10.80.0.0/20", 29, false), std::tuple("10.80.0.0/20", 29, true),
        std::tuple("10.80.0.0/20", 32, true), std::tuple("10.80.0.0/20", 32, false),
        std::tuple("fd00:79::/116", 126, false)}) {
    SCOPED_TRACE(std::string(cidr) + " " + std::to_string(length));
    OverlapWorld world(cidr, length, keys_at_hand);
    ASSERT_TRUE(world.add("a", "node-a"));
    for (const Prefix& block : world.blocks()) world.touch_as_another(block);
    const Error why{ErrorCode::corrupt, "beside 10.80.0.0/20 is damaged", {}};
    world.reg.put(block_beside_key(prefix(cidr)), Damaged{Kind::block_beside, why});
    for (const char* on : {"node-a", "node-b"}) {
      const auto answer = world.decide(world.request("b", on));
      ASSERT_TRUE(answer);
      ASSERT_TRUE(std::holds_alternative<Refusal>(*answer));
      EXPECT_EQ(std::get<Refusal>(*answer).code, ErrorCode::corrupt);
      EXPECT_THAT(std::get<Refusal>(*answer).summary, HasSubstr(why.message));
      EXPECT_LT(world.reg.rounds, 12);
    }
  }
}

/// Damage that one family steps around is not why the other has nothing.
TEST(Overlap, EachFamilyIsRefusedForItsOwnReason) {
  OverlapWorld world("10.80.0.0/28", 29);
  ASSERT_TRUE(world.add("a", "node-a"));
  const Prefix own = world.blocks().front();
  world.touch_as_another(own);
  const Key beside = block_beside_key(Prefix::containing(own.first(), 30));
  world.reg.put(beside, Damaged{Kind::block_beside, Error{ErrorCode::corrupt, "damaged", {}}});
  Pool six;
  six.name = "six";
  six.cidr = prefix("fd00:80::/126");
  six.block_length = 126;
  six.cooldown = std::chrono::seconds{0};
  world.reg.put(pool_key("six"), six);
  const auto ask = [&](const std::string& container, std::uint32_t ipv4) {
    auto wanted = world.request(container, "node-a");
    wanted.count.v4 = ipv4;
    wanted.count.v6 = 1;
    return world.decide(wanted).value();
  };
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(std::holds_alternative<Assigned>(ask("s" + std::to_string(i), 0)));
  const AssignAnswer both = ask("both", 1);
  ASSERT_TRUE(std::holds_alternative<Refusal>(both));
  EXPECT_EQ(std::get<Refusal>(both).code, ErrorCode::exhausted) << std::get<Refusal>(both).summary;
  EXPECT_TRUE(world.add("four", "node-a"));
  EXPECT_FALSE(own.contains(*world.add("five", "node-a"))) << "the test needs the damage to be in the way";
}

/// What rests under it is not known: the others serve.
TEST(Overlap, ABlockUnderWhichSomethingUnknownRestsIsNotClaimed) {
  OverlapWorld world("10.79.0.0/26", 28);
  const Key beside = block_beside_key(prefix("10.79.0.0/27"));
  world.reg.put(beside, Damaged{Kind::block_beside, Error{ErrorCode::corrupt, "damaged", {}}});
  for (int i = 0; i < 32; ++i) {
    const auto address = world.add("c" + std::to_string(i), "node-a");
    ASSERT_TRUE(address) << i;
    EXPECT_FALSE(prefix("10.79.0.0/27").contains(*address));
  }
  EXPECT_FALSE(world.add("d", "node-a"));
}

/// Of a damaged claim nobody knows what it says: its block is passed over, also where the node meets it as its own by
/// its place (Capabilities::reads_one_by_one), and the others serve.
TEST(DamagedClaim, ItsBlockIsPassedOverAndTheOthersServe) {
  OverlapWorld world("10.79.0.0/27", 29);
  world.reg.reads_one_by_one = true;
  ASSERT_TRUE(world.add("c", "node-a"));
  const Prefix own = world.blocks().front();
  const auto row = affinity_key(node("node-a"), own);
  const Error why{ErrorCode::corrupt, "affinity is damaged", {}};
  world.reg.put(row, Damaged{Kind::affinity, why});
  for (int i = 0; i < 24; ++i) {
    const auto answer = world.decide(world.request("d" + std::to_string(i), "node-a"));
    ASSERT_TRUE(answer) << i << ": " << answer.error().message;
    ASSERT_TRUE(std::holds_alternative<Assigned>(*answer)) << i << ": " << std::get<Refusal>(*answer).summary;
    EXPECT_FALSE(own.contains(std::get<Assigned>(*answer).addresses.front().address)) << i;
  }
  EXPECT_NE(damage_of(world.reg.records().at(row)), nullptr) << "what can't be read is not written over";
  const auto answer = world.decide(world.request("e", "node-a"));
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_TRUE(std::holds_alternative<Refusal>(*answer)) << "the others are full";
  EXPECT_EQ(std::get<Refusal>(*answer).code, ErrorCode::corrupt);
  EXPECT_THAT(std::get<Refusal>(*answer).summary, HasSubstr(why.message));
}

/// The same of what another node left empty, where there is a claim of this node's too.
TEST(DamagedClaim, ABlockLeftEmptyIsNotTakenOverUnderIt) {
  for (const bool is_one_by_one : {false, true}) {
    OverlapWorld world("10.79.0.0/28", 29);
    world.reg.reads_one_by_one = is_one_by_one;
    for (const char* one : {"10.79.0.0/29", "10.79.0.8/29"}) {
      world.make_as_another(prefix(one), "node-b");
    }
    world.clock.advance(std::chrono::minutes(2));
    const auto put = [&](const char* one) {
      const auto row = affinity_key(node("node-a"), prefix(one));
      world.reg.put(row, Damaged{Kind::affinity, Error{ErrorCode::corrupt, "affinity is damaged", {}}});
    };
    put("10.79.0.0/29");
    EXPECT_TRUE(prefix("10.79.0.8/29").contains(world.add("c", "node-a").value()));
    put("10.79.0.8/29");
    world.reg.apply({to_delete(block_key(prefix("10.79.0.8/29")), Guard::none)});
    const auto answer = world.decide(world.request("d", "node-a"));
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_TRUE(std::holds_alternative<Assigned>(*answer)) << "borrowed";
    EXPECT_EQ(world.reg.get(block_key(prefix("10.79.0.0/29")))->affinity, node("node-b"));
  }
}

/// Two pools over the same addresses, as no Calico makes them: of two claims at once one is decided again.
TEST(Overlap, ClaimsInPoolsOfDifferentLengthsExcludeOneAnother) {
  for (const bool keys_at_hand : {false, true}) {
    OverlapWorld world("10.79.0.0/26", 26, keys_at_hand);
    Pool other;
    other.name = "b";
    other.cidr = prefix("10.79.0.0/26");
    other.block_length = 28;
    world.reg.put(pool_key("b"), other);
    const auto plan = [&](const std::string& on, const std::string& pool, bool exact) {
      auto wanted = world.request("c-" + on, on);
      wanted.pools.v4 = {pool};
      if (exact) wanted.count.v4 = 0;
      if (exact) wanted.addresses = {Address::parse("10.79.0.5").value()};
      return world.reg.plan<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, wanted, world.clock.now()); })
          ->writes;
    };
    const auto conflict = [](const std::vector<PlannedWrite>& one, const std::vector<PlannedWrite>& two) {
      return std::any_of(one.begin(), one.end(), [&](const PlannedWrite& a) {
        return !a.only_check && std::any_of(two.begin(), two.end(), [&](const PlannedWrite& b) {
          return a.key == b.key && b.guard == Guard::as_read;
        });
      });
    };
    const auto in_a = plan("node-a", "a", false), in_b = plan("node-b", "b", false);
    ASSERT_FALSE(in_a.empty());
    ASSERT_FALSE(in_b.empty());
    EXPECT_TRUE(conflict(in_a, in_b));
    EXPECT_TRUE(conflict(in_b, in_a));
    EXPECT_TRUE(conflict(plan("node-a", "a", true), in_b));
    const auto by_hand = world.reg.plan<ClaimOutcome>([&](const Snapshot& s) {
      return plan_claim_affinity(s, node("node-c"), prefix("10.79.0.0/26"), world.clock.now());
    });
    EXPECT_TRUE(conflict(by_hand->writes, in_b));
    // Of one kind alone there are none: nothing more is written.
    world.reg.apply({to_delete(pool_key("b"), Guard::none)});
    for (const PlannedWrite& write : plan("node-a", "a", false)) EXPECT_NE(write.key, pool_set_key());
  }
}

/// More names in a window than are shown: the list of all blocks tells.
TEST(Overlap, WhereTheNamesAreTooManyTheListTells) {
  OverlapWorld world("10.79.0.0/24", 32);
  for (std::uint64_t i = 0; i < 256; ++i) {
    const Prefix cidr = prefix("10.79.0.0/24").subprefix(i, 32);
    world.reg.put(block_key(cidr), Block{});
    if (i % 2 == 0) world.reg.put(block_key(Prefix::containing(cidr.first(), 31)), Block{});
  }
  const auto found = world.reg.plan<bool>([&](const Snapshot& s) -> Step<bool> {
    Reader reader(s);
    const Overlap overlap = overlap_of(reader, prefix("10.79.0.0/30"));
    if (!reader.complete()) return reader.missing();
    return Plan<bool>{overlap.block.has_value(), {}};
  });
  EXPECT_TRUE(found->answer);
}

}  // namespace
}  // namespace croft::core
