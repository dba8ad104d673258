#include "ipam/decide/claim.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
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

}  // namespace
}  // namespace croft::core
