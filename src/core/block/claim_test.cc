#include "core/block/claim.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "core/block/assign.h"

namespace croft::core {
namespace {

const AffinityOwner kNode{AffinityOwner::Type::host, "node-a"};

class Claim : public testing::Test {
 protected:
  Claim() {
    PoolSpec spec;
    spec.name = "a";
    spec.cidr = net::Prefix::parse("10.1.0.0/26").value();
    spec.block_length = 29;
    pool_ = make_pool(spec).value();
    snapshot_.set_list({Kind::pool, ""}, {{pool_key("a"), pool_}});
    snapshot_.set_list({Kind::reservation, ""}, {});
    snapshot_.set(ipam_config_key(), std::nullopt);
    for (std::uint64_t i = 0; i < 8; ++i) {
      snapshot_.set(high_water_mark_key(at(i)), std::nullopt);
      snapshot_.set(affinity_key(kNode, at(i)), std::nullopt);
    }
    snapshot_.set(claim_cursor_key(kNode, "a"), ClaimCursor{at(7)});  // so that it starts at block 0
  }
  [[nodiscard]] net::Prefix at(std::uint64_t index) const { return pool_.cidr.subprefix(index, 29); }
  void exists(std::uint64_t index) {
    snapshot_.set(block_key(at(index)), new_block(at(index), kNode, clock_.now(), std::nullopt));
  }
  void absent(std::uint64_t index) { snapshot_.set(block_key(at(index)), std::nullopt); }
  void listed(std::uint64_t count) {
    std::vector<Key> keys;
    for (std::uint64_t i = 0; i < count; ++i) keys.push_back(block_key(at(i)));
    std::sort(keys.begin(), keys.end());  // as a store lists them
    snapshot_.set_keys({Kind::block, "ipv4/"}, std::move(keys));
  }
  /// The choice, or nothing when more must be read; `missing_` says what.
  std::optional<ClaimChoice> choose() {
    Reader reader(snapshot_);
    const PoolTable pools(reader);
    ClaimChoice choice = choose_block_to_claim(reader, pools, pool_, kNode);
    missing_ = reader.missing();
    if (!reader.complete()) return {};
    return choice;
  }

  ManualClock clock_;
  Pool pool_;
  Snapshot snapshot_;
  Missing missing_;
};

TEST(RotationStart, NodesWithNumberedNamesStartFarApart) {
  // Names of this kind are the rule, and such nodes often start at the same moment: each that finds another at its
  // place has to ask again, in the end for the list of all blocks.
  for (const std::string prefix : {"node-", "worker", "ip-10-0-0-"}) {
    std::set<std::uint64_t> sixteens;
    for (int i = 0; i < 256; ++i) {
      sixteens.insert(rotation_start({AffinityOwner::Type::host, prefix + std::to_string(i)}, 4096) / 16);
    }
    EXPECT_GE(sixteens.size(), 140U) << prefix << ": by chance it would be 162 of 256";
  }
}

TEST_F(Claim, GuessesBeforeItLists) {
  EXPECT_FALSE(choose());
  for (std::uint64_t i = 0; i < kClaimGuesses; ++i) EXPECT_TRUE(missing_.records.contains(block_key(at(i))));
  EXPECT_FALSE(missing_.records.contains(block_key(at(kClaimGuesses))));
  for (const std::uint64_t i : {0U, 1U, 3U}) exists(i);
  absent(2);
  EXPECT_EQ(choose()->block, at(2));
}

TEST_F(Claim, ABlockMadeAfterTheListWasReadIsNotClaimedAgain) {
  for (const std::uint64_t i : {0U, 1U, 2U, 3U}) exists(i);
  EXPECT_FALSE(choose());
  EXPECT_EQ(missing_.keys.size(), 1U);
  listed(4);
  EXPECT_FALSE(choose()) << "the candidate itself has not been read";
  EXPECT_TRUE(missing_.records.contains(block_key(at(4))));
  exists(4);  // another node was quicker
  EXPECT_FALSE(choose());
  absent(5);
  EXPECT_EQ(choose()->block, at(5));
}

TEST_F(Claim, AllMadeMeanwhileIsAFullPool) {
  for (std::uint64_t i = 0; i < 8; ++i) exists(i);
  listed(4);
  snapshot_.set_keys({Kind::affinity, owned_names_of(kNode, net::Family::v4)}, {});
  const auto choice = choose();
  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->block);
  EXPECT_EQ(choice->reason, "all 8 blocks are claimed: 0 by this node and without a free address, 8 by other nodes");
}

}  // namespace
}  // namespace croft::core
