#include "ipam/decide/claim.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/claim_ahead.h"
#include "ipam/decide/pool_changes.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {

namespace {

class Claim : public testing::Test {
 protected:
  Claim() {
    PoolSpec spec;
    spec.name = "a";
    spec.cidr = prefix("10.1.0.0/26");
    spec.block_length = 29;
    pool_ = make_pool(spec).value();
    snapshot_.set_list({Kind::pool, ""}, {{pool_key("a"), pool_}});
    snapshot_.set_list({Kind::reservation, ""}, {});
    snapshot_.set(ipam_config_key(), std::nullopt);
    snapshot_.set_keys({Kind::affinity, owned_names_of(kNode, net::Family::v4)}, std::vector<Key>());
  }
  [[nodiscard]] net::Prefix at(std::uint64_t index) const { return pool_.cidr.subprefix(index, 29); }
  void knows(const net::Prefix& cidr, const AffinityOwner* owner = nullptr) {
    snapshot_.set(block_key(cidr), owner != nullptr
                                       ? std::optional<Value>(new_block(cidr, *owner, clock_.now(), std::nullopt))
                                       : std::nullopt);
    snapshot_.set(high_water_mark_key(cidr), std::nullopt);
    snapshot_.set(affinity_key(kNode, cidr), std::nullopt);
  }
  /// The choice, or nothing when more must be read; `missing_` says what.
  std::optional<ClaimChoice> choose(const std::map<net::Prefix, const Affinity*>* own = nullptr) {
    Reader reader(snapshot_);
    const PoolTable pools(reader);
    auto choice = choose_block_to_claim(reader, pools, pool_, kNode, {}, own);
    missing_ = reader.missing();
    return choice ? std::optional(*std::move(choice)) : std::nullopt;
  }
  /// What the store was asked for, which answers so.
  FreeBlock answer(std::optional<net::Prefix> found, std::uint64_t there = 0) {
    EXPECT_EQ(missing_.free_blocks.size(), 1U);
    FreeBlock asked = *missing_.free_blocks.begin();
    snapshot_.set_free_block(asked, {found, false, {}, there, {}});
    return asked;
  }

  const AffinityOwner other_{AffinityOwner::Type::host, "other"};
  ManualClock clock_;
  Pool pool_;
  Snapshot snapshot_;
  Missing missing_;
};

TEST_F(Claim, WhatIsMostLikelyFreeIsLookedUpAlong) {
  EXPECT_FALSE(choose());
  const net::Prefix start = missing_.free_blocks.begin()->start;
  EXPECT_TRUE(missing_.records.contains(block_key(start)));
  EXPECT_TRUE(missing_.records.contains(high_water_mark_key(start)));
  EXPECT_TRUE(missing_.records.contains(affinity_key(kNode, start)));
  answer(start);
  knows(start);
  EXPECT_EQ(choose()->block, start) << "one round of reading";
}

TEST_F(Claim, ABlockMadeSinceIsPassedOver) {
  EXPECT_FALSE(choose());
  const net::Prefix start = missing_.free_blocks.begin()->start;
  knows(start, &other_);
  answer(at(2));
  EXPECT_FALSE(choose()) << "the candidate itself has not been read";
  EXPECT_TRUE(missing_.records.contains(block_key(at(2))));
  knows(at(2), &other_);  // another node was quicker
  EXPECT_FALSE(choose());
  const FreeBlock again = answer(at(5));
  EXPECT_TRUE(again.out.contains(at(2)));
  EXPECT_TRUE(again.as_stored) << "a memory that was wrong once is not asked again";
  EXPECT_FALSE(choose());
  knows(at(5));
  EXPECT_EQ(choose()->block, at(5));
}

TEST_F(Claim, WhatIsDamagedKeepsOnlyItsOwnBlockOut) {
  EXPECT_FALSE(choose());
  const net::Prefix start = missing_.free_blocks.begin()->start;
  knows(start);
  snapshot_.set_unreadable(affinity_key(kNode, start), {ErrorCode::corrupt, "damaged", {}});
  answer(start);
  EXPECT_FALSE(choose());
  EXPECT_FALSE(missing_.free_blocks.begin()->as_stored);
  answer(at(2) == start ? at(3) : at(2));
  EXPECT_FALSE(choose());
  knows(at(2) == start ? at(3) : at(2));
  EXPECT_TRUE(choose()->block);
}

TEST_F(Claim, NoneLeftSaysWhoHasThem) {
  EXPECT_FALSE(choose());
  knows(missing_.free_blocks.begin()->start, &other_);
  answer(std::nullopt, 8);
  const auto choice = choose();
  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->block);
  EXPECT_TRUE(choice->others);
  EXPECT_EQ(choice->reason, "all 8 blocks are claimed: 0 by this node and without a free address, 8 by other nodes");
}

/// Where lists may lag, a claim of moments ago is met at the place where the search begins.
TEST_F(Claim, AnUnknownOwnBlockIsMet) {
  const std::map<net::Prefix, const Affinity*> none;
  EXPECT_FALSE(choose(&none));
  const net::Prefix start = missing_.free_blocks.begin()->start;
  knows(start, &kNode);
  answer(at(2));
  EXPECT_FALSE(choose(&none)) << "the candidate is read along";
  knows(at(2));
  EXPECT_EQ(choose(&none)->own, start);
  const std::map<net::Prefix, const Affinity*> known{{start, nullptr}};
  EXPECT_EQ(choose(&known)->block, at(2));
}

constexpr std::uint32_t kLeastFree = 8;

/// A pool of 64 blocks of sixteen addresses, and node-a, which knows all keys of blocks.
class ClaimAhead : public testing::Test {
 protected:
  void SetUp() override {
    reg.knows_claimed = true;
    PoolSpec spec{"a", prefix("10.0.0.0/22"), 28, GatewayChoice{GatewayChoice::Kind::none, {}}, std::chrono::seconds(0),
                  {}};
    ASSERT_TRUE(reg.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); }));
  }
  static AssignRequest like(const char* by = "node-a") {
    AssignRequest request;
    request.node = node(by);
    return request;
  }
  void add(int pods, const char* by = "node-a") {
    for (int i = 0; i < pods; ++i) {
      AssignRequest request = like(by);
      request.owner = {"net", by + std::to_string(++pods_), "eth0"};
      const auto answer =
          reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, request, clock.now()); });
      ASSERT_TRUE(answer && std::holds_alternative<Assigned>(*answer));
    }
  }
  /// The block, and then it is claimed.
  std::optional<ClaimedAhead> claim(const AssignRequest& request) {
    const auto decided = reg.decide<std::optional<ClaimedAhead>>(
        [&](const Snapshot& s) { return plan_claim_ahead(s, request, net::Family::v4, kLeastFree, clock.now()); });
    EXPECT_TRUE(decided) << decided.error().message;
    return decided ? *decided : std::nullopt;
  }

  TestRegister reg;
  ManualClock clock;

 private:
  int pods_ = 0;
};

TEST_F(ClaimAhead, OnlyWhenFewAreFree) {
  EXPECT_FALSE(claim(like())) << "it has none yet";
  add(8);
  EXPECT_FALSE(claim(like())) << "eight are free";
  add(1);
  const auto ahead = claim(like());
  ASSERT_TRUE(ahead);
  const Block* block = reg.get(block_key(ahead->block));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->affinity, node("node-a"));
  EXPECT_EQ(block->sequence_number, ahead->sequence_number);
  EXPECT_FALSE(claim(like())) << "one ahead";
}

TEST_F(ClaimAhead, ItIsUsedWhenTheOthersAreFull) {
  add(9);
  const auto ahead = claim(like());
  ASSERT_TRUE(ahead);
  add(8);
  EXPECT_NE(reg.get(block_key(ahead->block))->sequence_number, ahead->sequence_number);
  const auto kept = reg.decide<AffinityOutcome>([&](const Snapshot& s) {
    return plan_release_affinity(s, {node("node-a"), ahead->block, true, ahead->sequence_number}, clock.now());
  });
  EXPECT_EQ(*kept, AffinityOutcome::changed) << "what was used is not given back";
}

TEST_F(ClaimAhead, NotUnderLimits) {
  add(9);
  AssignRequest limited = like();
  limited.block_limit = 20;
  EXPECT_FALSE(claim(limited));
  AssignRequest at_default = like();
  at_default.default_block_limit = 1;
  EXPECT_FALSE(claim(at_default));
  for (const bool is_limit : {true, false}) {
    IpamConfig config;
    config.max_blocks_per_host = is_limit ? 20 : 0;
    config.auto_allocate_blocks = is_limit;
    config.strict_affinity = !is_limit;
    reg.put(ipam_config_key(), config);
    EXPECT_FALSE(claim(like()));
  }
  reg.put(ipam_config_key(), IpamConfig{});
  EXPECT_TRUE(claim(like()));
}

TEST_F(ClaimAhead, TheLastBlocksAreForNodesWithoutOne) {
  for (int i = 0; i < 46; ++i) add(1, ("other-" + std::to_string(i)).c_str());
  add(9);
  EXPECT_TRUE(claim(like())) << "17 of 64 were left";
  add(9, "node-b");
  EXPECT_FALSE(claim(like("node-b"))) << "less than sixteen would be";
}

TEST_F(ClaimAhead, NeverMoreThanOneHoweverSmallTheBlocks) {
  PoolSpec spec{
      "tiny", prefix("10.9.0.0/24"), 30, GatewayChoice{GatewayChoice::Kind::none, {}}, std::chrono::seconds(0), {}};
  ASSERT_TRUE(reg.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); }));
  AssignRequest tiny = like();
  tiny.pools.v4 = {AskedPool("tiny")};
  tiny.owner = {"net", "t", "eth0"};
  ASSERT_TRUE(reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, tiny, clock.now()); }));
  EXPECT_TRUE(claim(tiny));
  EXPECT_FALSE(claim(tiny));
}

TEST_F(ClaimAhead, InAPoolOfFewBlocksNobodyDoes) {
  PoolSpec spec{"few", prefix("10.9.0.0/26"), 29, GatewayChoice{GatewayChoice::Kind::none, {}}, std::chrono::seconds(0),
                {}};
  ASSERT_TRUE(reg.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); }));
  AssignRequest few = like();
  few.pools.v4 = {AskedPool("few")};
  few.owner = {"net", "f", "eth0"};
  ASSERT_TRUE(reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, few, clock.now()); }));
  EXPECT_FALSE(claim(few));
}

}  // namespace

}  // namespace croft::core
