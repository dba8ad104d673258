#include "core/node_range/node_range_changes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/register/records.h"
#include "core/register/test_register.h"
#include "net/test_values.h"

namespace croft::core {
namespace {

class NodeRangeChanges : public testing::Test {
 protected:
  Result<std::vector<NodeRangesAssigned>> assign(const std::vector<std::string>& nodes) {
    return register_.decide<std::vector<NodeRangesAssigned>>(
        [&](const Snapshot& snapshot) { return plan_assign_node_ranges(snapshot, nodes, NodeRecord::make); });
  }
  Result<NodeRangesSeen> look() {
    return register_.decide<NodeRangesSeen>([](const Snapshot& snapshot) { return look_at_node_ranges(snapshot); });
  }
  void store(std::vector<ClusterCidr> cluster_cidrs, std::vector<net::Prefix> excluded = {}) {
    register_.put(node_range_set_key(), NodeRangeSet{1, std::move(cluster_cidrs), std::move(excluded), {}});
  }

  TestRegister register_;
};

/// Never configured so; each of the two would give out the same range.
TEST_F(NodeRangeChanges, StoredClusterCidrsThatOverlapAreDamage) {
  store({{prefix("10.0.0.0/16"), 24}, {prefix("10.0.0.0/15"), 24}});
  const auto done = assign({"a", "b"});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::corrupt);
  EXPECT_NE(done.error().message.find("10.0.0.0/15 overlaps cluster CIDR 10.0.0.0/16"), std::string::npos)
      << done.error().message;
}

/// Each takes 2 MiB to look through.
TEST_F(NodeRangeChanges, MoreStoredClusterCidrsThanAllowedAreDamage) {
  std::vector<ClusterCidr> clusters;
  for (std::uint32_t i = 0; i <= kClusterCidrsMax; ++i) clusters.push_back({prefix("10.0.0.0/8").subprefix(i, 24), 32});
  store(clusters);
  ASSERT_FALSE(look());
  EXPECT_EQ(look().error().code, ErrorCode::corrupt);
  clusters.pop_back();
  store(clusters);
  EXPECT_TRUE(look());
}

TEST_F(NodeRangeChanges, StoredLengthsThatCannotBeAreDamage) {
  for (const int length : {-1, 0, 7, 33, 128, 1 << 30}) {
    store({{prefix("10.0.0.0/8"), length}});
    ASSERT_FALSE(look()) << length;
    EXPECT_EQ(look().error().code, ErrorCode::corrupt) << length;
  }
  store({{prefix("::/0"), 128}});
  ASSERT_FALSE(look());
  EXPECT_EQ(look().error().code, ErrorCode::corrupt);
}

TEST_F(NodeRangeChanges, ANodeThatIsNamedTwiceGetsItsRangesOnce) {
  store({{prefix("10.0.0.0/16"), 24}, {prefix("fd00::/48"), 64}});
  const auto done = assign({"a", "b", "a"});
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(done->size(), 3U);
  EXPECT_EQ(done->at(0).added.size(), 2U);
  EXPECT_EQ(done->at(2).cidrs, done->at(0).cidrs);
  EXPECT_TRUE(done->at(2).added.empty());
  EXPECT_EQ(look()->ranges.size(), 4U);
}

/// 2^24 node ranges, and prefixes that cover all of them again and again.
TEST_F(NodeRangeChanges, WideRangesOverManyNarrowOnesAreCountedOnce) {
  std::vector<net::Prefix> excluded;
  for (int length = 1; length < 24; ++length)
    excluded.push_back(prefix("10.128.0.0/9").subprefix(0, std::max(9, length)));
  store({{prefix("10.0.0.0/8"), 32}}, excluded);
  for (int length = 0; length <= 8; ++length) {
    const net::Prefix wide = net::Prefix::containing(prefix("10.0.0.0/8").first(), length);
    register_.put(node_range_key(wide), NodeRange{"n", wide});
  }
  const auto seen = look();
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(seen->use.size(), 1U);
  EXPECT_EQ(seen->use[0].taken, std::uint32_t{1} << 24);
  EXPECT_EQ(seen->use[0].excluded, std::uint32_t{1} << 23);
  const auto done = assign({"a"});
  ASSERT_TRUE(done);
  ASSERT_TRUE(done->front().refusal);
  EXPECT_EQ(done->front().refusal->code, ErrorCode::exhausted);
}

}  // namespace
}  // namespace croft::core
