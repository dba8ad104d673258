#include "ipam/decide/draft.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/pool_changes.h"
#include "register/address_claims.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {

namespace {

using net::Address;
using net::Prefix;

class OnePool : public testing::Test {
 protected:
  [[nodiscard]] PoolSpec spec(GatewayChoice::Kind gateway = GatewayChoice::Kind::first_address) const {
    PoolSpec spec;
    spec.name = "a";
    spec.cidr = Prefix::parse("10.79.0.0/28").value();
    spec.gateway = GatewayChoice{gateway, {}};
    spec.cooldown = std::chrono::seconds{0};
    return spec;
  }
  PoolCreated create(GatewayChoice::Kind gateway = GatewayChoice::Kind::first_address) {
    return reg_.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec(gateway)); }).value();
  }
  /// As `croft record remove` does with a damaged one.
  void remove_reservation() { reg_.apply({to_delete(reservation_key("pool-a"), Guard::none)}); }
  [[nodiscard]] bool has_reservation() const { return reg_.get(reservation_key("pool-a")) != nullptr; }
  std::optional<Address> add(const std::string& container) {
    AssignRequest request;
    request.owner = {"net", container, "eth0"};
    request.node = kNode;
    const auto answer =
        reg_.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, request, clock_.now()); });
    const auto* assigned = answer ? std::get_if<Assigned>(&*answer) : nullptr;
    return assigned != nullptr ? std::optional(assigned->addresses.front().address) : std::nullopt;
  }
  std::set<Address> fill() {
    std::set<Address> given;
    while (const auto one = add("c" + std::to_string(given.size()))) given.insert(*one);
    return given;
  }

  ManualClock clock_;
  TestRegister reg_;
};

TEST_F(OnePool, KeepsItsGatewayAndEndsWithoutTheReservation) {
  for (const bool foreign : {false, true}) {
    reg_ = TestRegister();
    reg_.foreign_writers = foreign;
    create();
    remove_reservation();
    const auto given = fill();
    EXPECT_EQ(given.size(), 13U);
    for (const char* kept : {"10.79.0.0", "10.79.0.1", "10.79.0.15"})
      EXPECT_FALSE(given.contains(address(kept))) << kept;
  }
}

TEST_F(OnePool, CreatedAgainGetsItsReservationBack) {
  create();
  const Reservation before = *reg_.get(reservation_key("pool-a"));
  remove_reservation();
  EXPECT_TRUE(create().existed_before);
  ASSERT_TRUE(has_reservation());
  EXPECT_EQ(*reg_.get(reservation_key("pool-a")), before);
}

/// A damaged one is not absent: the operator removes it first.
TEST_F(OnePool, CreatedAgainLeavesADamagedReservation) {
  create();
  reg_.damage(reservation_key("pool-a"));
  EXPECT_TRUE(create().existed_before);
  EXPECT_FALSE(has_reservation());
}

/// It may be another program's, which hands out its first and last address.
TEST_F(OnePool, WithoutAGatewayBesideForeignWritersStaysAsItIs) {
  reg_.foreign_writers = true;
  create(GatewayChoice::Kind::none);
  remove_reservation();
  EXPECT_TRUE(create(GatewayChoice::Kind::none).existed_before);
  EXPECT_FALSE(has_reservation());
  EXPECT_EQ(fill().size(), 16U);
}

class DeletedBlock : public OnePool {
 protected:
  DeletedBlock() {
    create(GatewayChoice::Kind::none);
    cidr_ = Prefix::parse("10.79.0.0/28").value();
    Block block = new_block(cidr_, kNode, clock_.now(), SequenceNumber(std::uint64_t{1} << 62));
    block.deleted = true;
    number_ = block.sequence_number;
    reg_.put(block_key(cidr_), block);
  }
  Prefix cidr_;
  SequenceNumber number_;
};

TEST_F(DeletedBlock, MayBeClaimed) {
  const auto outcome = reg_.decide<ClaimOutcome>([&](const Snapshot& s) {
    return plan_claim_affinity(s, {kNode.type, "node-b"}, cidr_, clock_.now());
  });
  EXPECT_EQ(outcome.value(), ClaimOutcome::claimed);
  EXPECT_FALSE(reg_.get(block_key(cidr_))->deleted);
  EXPECT_GT(reg_.get(block_key(cidr_))->sequence_number, number_);
}

/// Nothing is given out of it, and nothing beside it.
TEST_F(DeletedBlock, WithHoldersIsDamaged) {
  Block block = new_block(cidr_, kNode, clock_.now(), {});
  block = take_address(block, address("10.79.0.3"), Attribute{"net.c9", {}, {}, {}})->block;
  block.deleted = true;
  reg_.put(block_key(cidr_), block);
  EXPECT_FALSE(add("c0"));
  EXPECT_EQ(*reg_.get(block_key(cidr_)), block);
}

/// `croft record remove` asks for --force where this says something.
TEST(Records, WhatSomebodyLivesByIsNotRemovedWithoutAWord) {
  for (const Kind kind : {Kind::block, Kind::reservation, Kind::node, Kind::block_beside, Kind::ipam_config}) {
    EXPECT_NE(loss_without(kind), "") << static_cast<int>(kind);
  }
  for (const Kind kind : {Kind::vacancy, Kind::affinity, Kind::handle}) {
    EXPECT_EQ(loss_without(kind), "") << static_cast<int>(kind);
  }
}

TEST(PoolTableTest, SaysWhichPoolsOverlap) {
  std::uint64_t state = 7;
  const auto drawn = [&](std::uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<KeyedValue> records;
    const std::uint64_t count = 1 + drawn(10);
    for (std::uint64_t i = 0; i < count; ++i) {
      Pool pool;
      pool.name = "p" + std::to_string(i);
      const auto place = static_cast<std::uint32_t>(0x0A000000 + (drawn(4) << 12) + (drawn(4) << 8));
      pool.cidr = Prefix::containing(Address::v4(place), static_cast<int>(18 + drawn(7)));
      pool.block_length = static_cast<int>(26 + drawn(2));
      records.emplace_back(pool_key(pool.name), pool);
    }
    Snapshot snapshot;
    snapshot.set_foreign_writers(true);
    snapshot.set_list({Kind::pool, ""}, std::move(records));
    snapshot.set_list({Kind::reservation, ""}, {});
    snapshot.set(ipam_config_key(), std::nullopt);
    Reader reader(snapshot);
    const PoolTable pools(reader);
    std::set<std::string> told, expected;
    for (const auto& [inner, outer] : pools.overlaps()) {
      EXPECT_TRUE(outer->cidr.contains(inner->cidr) && outer != inner);
      EXPECT_TRUE(told.insert(inner->name).second);
    }
    for (const Pool* one : pools.pools()) {
      for (const Pool* other : pools.pools()) {
        const bool is_around = other->cidr.contains(one->cidr) && (other->cidr != one->cidr || other->name < one->name);
        if (other != one && is_around) expected.insert(one->name);
      }
    }
    EXPECT_EQ(told, expected);
  }
}

using net::Prefix;
using testing::ElementsAre;
using testing::HasSubstr;

/// The claims of a register with a pool 10.1.0.0/24 and blocks in it and beside it.
class StrayBlocks : public testing::Test {
 protected:
  StrayBlocks() {
    Pool pool;
    pool.name = "a";
    pool.cidr = prefix("10.1.0.0/24");
    pool.block_length = 26;
    reg_.put(pool_key("a"), pool);
    for (const char* cidr : {"10.1.0.64/26", "10.79.0.192/26", "fd00:79::40/122"}) {
      reg_.put(block_key(prefix(cidr)), new_block(prefix(cidr), std::nullopt, ManualClock().now(), {}));
    }
  }
  template <class Ask>
  auto ask(Ask question) {
    using Answer = decltype(question(std::declval<const AddressClaims&>()));
    const auto plan = reg_.plan<Answer>([&](const Snapshot& s) -> Step<Answer> {
      Reader reader(s);
      const AddressClaims claims(reader);
      if (!reader.complete()) return reader.missing();
      return Plan<Answer>{question(claims), {}};
    });
    return plan->answer;
  }
  TestRegister reg_;
};

TEST_F(StrayBlocks, ClaimTheirAddressesAgainstNodeRangesAndServices) {
  const auto cluster = ask([](const AddressClaims& c) { return c.against_cluster_cidr(prefix("10.79.0.0/22")); });
  EXPECT_THAT(cluster.value_or(""), HasSubstr("block 10.79.0.192/26 of a pool that is gone"));
  EXPECT_EQ(ask([](const AddressClaims& c) { return c.against_cluster_cidr(prefix("10.80.0.0/22")); }), std::nullopt);
  const auto services = ask([](const AddressClaims& c) { return c.against_services(prefix("10.79.0.192/27")); });
  EXPECT_THAT(services.value_or(""), HasSubstr("block 10.79.0.192/26"));
  EXPECT_TRUE(ask([](const AddressClaims& c) { return c.against_services(prefix("fd00:79::/112")); }));
}

/// A node range configured before the pool went keeps off them too; what lies in a pool is the pool's.
TEST_F(StrayBlocks, AreNotForNodes) {
  EXPECT_THAT(ask([](const AddressClaims& c) { return c.not_for_nodes(); }),
              ElementsAre(prefix("10.1.0.0/24"), prefix("10.79.0.192/26"), prefix("fd00:79::40/122")));
}

/// Whatever its length, and whatever lies under its name.
TEST_F(StrayBlocks, ABlockOfAnyLengthIsTakenWhole) {
  for (const char* cidr : {"10.0.0.0/8", "::/0"}) reg_.put(block_key(prefix(cidr)), Block{});
  EXPECT_TRUE(ask([](const AddressClaims& c) { return c.against_cluster_cidr(prefix("10.80.0.0/22")); }));
  EXPECT_TRUE(ask([](const AddressClaims& c) { return c.against_services(prefix("fd00:80::/112")); }));
  PoolSpec spec;
  spec.name = "b";
  spec.cidr = prefix("10.90.0.0/24");
  const auto created = reg_.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); });
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("block 10.0.0.0/8"));
}

}  // namespace

}  // namespace croft::core
