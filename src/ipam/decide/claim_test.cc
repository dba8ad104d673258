#include "ipam/decide/claim.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/crowded_pool.h"
#include "register/test_values.h"

namespace croft::core {
namespace {

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
  /// The choice, or nothing when more must be read; `missing_` says what. There are no blocks of other lengths.
  std::optional<ClaimChoice> choose() {
    for (;;) {
      Reader reader(snapshot_);
      const PoolTable pools(reader);
      auto choice = choose_block_to_claim(reader, pools, pool_, kNode);
      missing_ = reader.missing();
      if (choice) return *std::move(choice);
      if (!answer_of_other_lengths()) return {};
    }
  }
  bool answer_of_other_lengths() {
    bool any = false;
    for (const KeyWindow& window : missing_.windows) {
      if (!window.before.ends_with("/32")) continue;  // a look among the pool's own
      snapshot_.set_window(window, {});
      any = true;
    }
    for (const Key& key : missing_.records) {
      const auto cidr = key.kind == Kind::block ? block_cidr_of(key) : std::nullopt;
      if (!cidr || cidr->length() == pool_.block_length) continue;
      snapshot_.set(key, std::nullopt);
      any = true;
    }
    return any;
  }

  ManualClock clock_;
  Pool pool_;
  Snapshot snapshot_;
  Missing missing_;
};

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
  snapshot_.set_keys({Kind::affinity, owned_names_of(kNode, net::Family::v4)}, std::vector<Key>());
  const auto choice = choose();
  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->block);
  EXPECT_EQ(choice->reason, "all 8 blocks are claimed: 0 by this node and without a free address, 8 by other nodes");
}

/// A pool large enough for a search by counts: 256 blocks, 10.2.0.0/26 to 10.2.63.192/26, in a store that counts.
class WideClaim : public Claim {
 protected:
  WideClaim() {
    PoolSpec spec;
    spec.name = "a";
    spec.cidr = net::Prefix::parse("10.2.0.0/18").value();
    pool_ = make_pool(spec).value();
    snapshot_.set_list({Kind::pool, ""}, {{pool_key("a"), pool_}});
    snapshot_.set_cheap_counts(true);
    snapshot_.set(claim_cursor_key(kNode, "a"), ClaimCursor{nth(255)});  // so that it starts at block 0
  }
  static net::Prefix block(const std::string& text) { return net::Prefix::parse(text).value(); }
  [[nodiscard]] net::Prefix nth(std::uint64_t index) const { return pool_.cidr.subprefix(index, 26); }
  void knows(const net::Prefix& cidr, bool is_there) {
    snapshot_.set(block_key(cidr),
                  is_there ? std::optional<Value>(new_block(cidr, kNode, clock_.now(), std::nullopt)) : std::nullopt);
    snapshot_.set(high_water_mark_key(cidr), std::nullopt);
    snapshot_.set(affinity_key(kNode, cidr), std::nullopt);
  }
  /// Answers everything asked for but records, for a pool in which all blocks are there but the free ones.
  void answer(const std::vector<std::string>& free, std::size_t shown_max = kKeyWindowMax) {
    const auto keys_in = [&](const KeyWindow& window) {
      std::vector<Key> keys;
      for (std::uint64_t i = 0; i < 256; ++i) {
        const Key key = block_key(nth(i));
        const bool is_free = std::find(free.begin(), free.end(), nth(i).to_string()) != free.end();
        if (!is_free && key.name >= window.from && key.name < window.before) keys.push_back(key);
      }
      std::sort(keys.begin(), keys.end());
      return keys;
    };
    for (const KeyWindow& window : missing_.counts) snapshot_.set_count(window, keys_in(window).size());
    for (const KeyWindow& window : missing_.windows) {
      std::vector<Key> keys = keys_in(window);
      const bool more = keys.size() > shown_max;
      keys.resize(std::min(keys.size(), shown_max));
      snapshot_.set_window(window, {std::move(keys), more});
    }
  }
  /// What is asked for next: the names of blocks, "window" or "list".
  std::string next() {
    if (const auto choice = choose()) return choice->block ? "chosen " + choice->block->to_string() : choice->reason;
    if (!missing_.keys.empty()) return "list";
    if (!missing_.windows.empty()) return "window";
    std::string asked;
    for (const Key& key : missing_.records) asked += key.kind == Kind::block ? key.name : "";
    return asked;
  }
  /// Blocks of one part whose count has been asked for, in the order of addresses.
  std::vector<std::string> in_a_counted_part() {
    std::vector<std::string> found;
    for (std::uint64_t i = kClaimGuesses; i < 256; ++i) {
      const std::string name = block_key(nth(i)).name;
      const KeyWindow& window = *missing_.counts.begin();
      if (name >= window.from && name < window.before) found.push_back(nth(i).to_string());
    }
    return found;
  }
  void guesses_are_taken() {
    for (std::uint64_t i = 0; i < kClaimGuesses; ++i) knows(nth(i), true);
  }
};

TEST_F(WideClaim, CountsAndOnePartOfTheNamesSpareTheList) {
  EXPECT_FALSE(choose());
  const std::vector<std::string> free = in_a_counted_part();
  ASSERT_GE(free.size(), 2U);
  EXPECT_EQ(missing_.counts.size(), kCrowdParts - 1) << "asked for together with the guesses";
  EXPECT_TRUE(missing_.windows.empty() && missing_.keys.empty());
  guesses_are_taken();
  answer(free);
  EXPECT_EQ(next(), "window");
  EXPECT_EQ(missing_.windows.size(), 1U) << "one part, not several";
  answer(free);
  const std::string asked = next();
  ASSERT_TRUE(asked.starts_with("ipv4/"));
  EXPECT_THAT(free, testing::Contains(asked.substr(5)));
  knows(block(asked.substr(5)), false);
  EXPECT_EQ(next(), "chosen " + asked.substr(5));
}

TEST_F(WideClaim, ABlockMadeAfterThePartWasReadIsPassedOver) {
  EXPECT_FALSE(choose());
  const std::vector<std::string> free = in_a_counted_part();
  guesses_are_taken();
  answer(free);
  EXPECT_EQ(next(), "window");
  answer(free);
  std::set<std::string> asked;
  for (std::string gap = next(); gap != "list"; gap = next()) {
    ASSERT_TRUE(gap.starts_with("ipv4/") && asked.insert(gap).second) << gap;
    knows(block(gap.substr(5)), true);  // another node was quicker
  }
  EXPECT_GE(asked.size(), 2U);
}

TEST_F(WideClaim, CountsThatShowNoGapLeadToTheList) {
  EXPECT_FALSE(choose());
  guesses_are_taken();
  answer({});
  EXPECT_EQ(next(), "list");
}

TEST_F(WideClaim, WhatIsBehindTheNamesShownIsNotTakenForFree) {
  EXPECT_FALSE(choose());
  const std::vector<std::string> free{in_a_counted_part().front()};
  guesses_are_taken();
  answer(free);
  EXPECT_EQ(next(), "window");
  answer(free, 0);
  EXPECT_EQ(next(), "list");
}

// Whatever is free, a search that ends without the list has found a block that is.
TEST_F(WideClaim, EveryGapIsFoundOrLeftToTheList) {
  const Snapshot untouched = snapshot_;
  std::size_t found = 0;
  for (std::uint64_t i = kClaimGuesses; i < 256; i += 3) {
    snapshot_ = untouched;
    const std::vector<std::string> free{nth(i).to_string()};
    EXPECT_FALSE(choose());
    guesses_are_taken();
    answer(free);
    if (next() == "list") continue;
    answer(free);
    ASSERT_EQ(next(), "ipv4/" + free.front());
    ++found;
  }
  EXPECT_GE(found, 80U) << "only what lies behind the last end is in no part";
}

TEST_F(WideClaim, WhereCountsAreDearNothingIsCounted) {
  snapshot_.set_cheap_counts(false);
  EXPECT_FALSE(choose());
  EXPECT_TRUE(missing_.counts.empty());
  guesses_are_taken();
  EXPECT_EQ(next(), "list");
}

}  // namespace
}  // namespace croft::core
