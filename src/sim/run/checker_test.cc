// Rules that no planted bug shows to fail first (docs/planted-bugs.md).

#include "sim/run/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "ipam/use/assign.h"
#include "ipam/use/pools.h"
#include "register/block.h"

namespace croft::sim {
namespace {

using testing::StartsWith;

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
  Server server_{schedule_, manners_of("etcd").value(), 1};
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
  core::Block after =
      core::release(before, core::held_by_handle(before, core::handle_of({"net", "c1", "eth0"})), {}, clock_.now());
  ASSERT_NE(before.allocations, after.allocations);
  checker_.committed({{key, before, after}});
  EXPECT_THAT(checker_.violation(), StartsWith("sequence number not raised: "));
}

}  // namespace
}  // namespace croft::sim
