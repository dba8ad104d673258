#include "sim/run/script.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "ipam/use/assign.h"
#include "ipam/use/pools.h"
#include "register/block.h"
#include "sim/run/checker.h"

namespace croft::sim {

namespace {

TEST(SimScript, TheTextOfAScriptIsTheScript) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::string text = to_text(script_of(seed));
    const auto parsed = parse_script(text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(to_text(*parsed), text);
  }
}

TEST(SimScript, AMistakeIsNamedWithItsLine) {
  const std::string store = "store etcd seed=1 nodes=2 agents collect=20s grace=60s\n";
  for (const char* wrong :
       {"-5ms create p1 n1", "5ms cut n1 for=-1s", "99999999s create p1 n1", "pool a 10.0.0.0/26 block=24",
        "pool a 10.0.0.0/26 cooldown=-1s", "5ms fly p1 n1", "5 create p1 n1", "5ms create p1", "5ms create p1 m1",
        "5ms create p1 n0", "5ms kill-agent n1", "5ms kill-agent n1 for=x", "5ms delete p1 n1", "pool a 10.0.0.0/33",
        "pool a 10.0.0.0/24 block=x", "store etcd"}) {
    const auto parsed = parse_script("# a comment\n" + store + wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_THAT(parsed.error().message, testing::StartsWith("line 3: ")) << wrong;
  }
}

TEST(SimScript, TheStoreComesFirstAndOnce) {
  EXPECT_THAT(parse_script("store disk").error().message, testing::StartsWith("line 1: "));
  EXPECT_THAT(parse_script("store etcd nodes=0").error().message, testing::StartsWith("line 1: "));
  EXPECT_THAT(parse_script("5ms create p1 n1\nstore etcd").error().message, testing::StartsWith("line 1: "));
  EXPECT_FALSE(parse_script(""));
  EXPECT_FALSE(parse_script("# nothing\n"));
}

TEST(SimScript, APoolIsMadeOnceAndOverlapsNone) {
  const std::string begin = "store etcd\npool a 10.0.0.0/26\n";
  EXPECT_EQ(parse_script(begin + "pool a 10.1.0.0/26").error().message, "line 3: a second pool a");
  EXPECT_EQ(parse_script(begin + "pool b 10.0.0.32/27").error().message, "line 3: pool b overlaps pool a");
  EXPECT_TRUE(parse_script(begin + "pool a 10.0.0.0/26 block=30 later"));
}

TEST(SimScript, OneScriptIsOneRun) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Script script = script_of(seed);
    const Outcome once = run(script);
    const auto told = parse_script(to_text(script));
    ASSERT_TRUE(told);
    const Outcome again = run(*told);
    EXPECT_EQ(once.trace, again.trace) << seed;
    EXPECT_EQ(once.events, again.events) << seed;
    EXPECT_EQ(once.violation, "") << seed;
  }
  EXPECT_NE(run(script_of(1)).trace, run(script_of(2)).trace);
}

TEST(SimScript, APodGetsAnAddressAndGivesItBack) {
  const auto script = parse_script(
      "store etcd seed=1 nodes=1 agents collect=20s grace=60s\npool a 10.0.0.0/28 block=28 cooldown=5s\n"
      "1s create p1 n1\n5s delete p1\n");
  ASSERT_TRUE(script);
  const Outcome outcome = run(*script);
  EXPECT_EQ(outcome.violation, "");
  EXPECT_GE(outcome.counts.adds, 1U);
  EXPECT_GE(outcome.counts.dels, 1U);
  EXPECT_EQ(outcome.counts.failed, 0U);
}

}  // namespace

namespace {

using testing::StartsWith;

// Rules that no planted bug shows to fail first (docs/planted-bugs.md).
class CheckerTest : public testing::Test {
 protected:
  CheckerTest() {
    server_.on_commit([this](const std::vector<Changed>& changes) { checker_.committed(changes); });
    EXPECT_TRUE(engine::create_pool(
        context_, {"a", net::Prefix::parse("10.0.0.0/26").value(), 28, {}, std::chrono::seconds{0}, {}}));
    checker_.put_back(server_);
  }
  /// What the owner got, as an answer that nobody was told of yet.
  net::Address assign(const std::string& container) {
    core::AssignRequest request;
    request.owner = {"net", container, "eth0"};
    request.node = {core::AffinityOwner::Type::host, "n1"};
    const auto answer = engine::assign(context_, request);
    checker_.put_back(server_);
    return std::get<core::Assigned>(answer.value()).addresses.front().address;
  }

  Schedule schedule_;
  TroubledServer server_{schedule_, manners_of("etcd").value(), 1};
  Checker checker_{schedule_};
  ManualClock clock_;
  SeededRandom random_{1};
  const engine::Context context_{server_.records(), clock_, random_};
};

TEST_F(CheckerTest, AnAddressOfOneIsNotGivenToAnother) {
  const net::Address address = assign("c1");
  checker_.given(server_, {"net", "c1", "eth0"}, {address}, "", kUninformed);
  EXPECT_EQ(checker_.violation(), "");
  checker_.given(server_, {"net", "c2", "eth0"}, {address}, "", kUninformed);
  EXPECT_THAT(checker_.violation(), StartsWith("two holders: "));
}

TEST_F(CheckerTest, WhatNobodyLivesWithIsLeaked) {
  assign("c1");
  checker_.expect_clean();
  EXPECT_THAT(checker_.violation(), StartsWith("leaked for ever: "));
}

TEST_F(CheckerTest, ABlockIsWrittenUnderANewNumber) {
  const net::Address address = assign("c1");
  const core::Key key = core::block_key(net::Prefix::containing(address, 28));
  const core::Block before = std::get<core::Block>(*server_.records().get(key, {}).value()->value);
  core::Block after = core::release(before, core::held_by(before, {"net", "c1", "eth0"}), {}, clock_.now());
  ASSERT_NE(before.allocations, after.allocations);
  checker_.committed({{key, before, after}});
  EXPECT_THAT(checker_.violation(), StartsWith("sequence number not raised: "));
}

}  // namespace

}  // namespace croft::sim
