#include "noderanges/decide/node_range_changes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "noderanges/decide/node_range_overview.h"
#include "register/records.h"
#include "register/test_register.h"

// Names in brackets are rows of docs/notes/node-ranges.md#cases.

namespace croft::core::node_range {
namespace {

using namespace net::literals;
using testing::Optional;
using Indices = std::pair<std::uint32_t, std::uint32_t>;

CidrSet set_of(const char* cluster, int node_length, std::uint64_t cursor = 0) {
  return CidrSet::make({net::Prefix::parse(cluster).value(), node_length}, cursor).value();
}

std::string next(CidrSet& set) {
  const auto found = set.take_next();
  return found ? found->cidr.to_string() : "none";
}

TEST(CidrSet, OneNodeRangeAsLongAsTheClusterCidr) {  // [C1]
  CidrSet set = set_of("127.123.234.0/30", 30);
  EXPECT_EQ(next(set), "127.123.234.0/30");
  EXPECT_EQ(next(set), "none");
  EXPECT_TRUE(set.is_full());
}

TEST(CidrSet, NumbersToPrefixes) {  // [C2] [C3] [C4]
  struct Row {
    const char* cluster;
    int node_length;
    std::uint32_t index;
    const char* cidr;
  };
  for (const Row& row : {
           Row{"127.123.0.0/16", 24, 15, "127.123.15.0/24"},
           Row{"2001:db8:1234::/48", 64, 15, "2001:db8:1234:f::/64"},
           Row{"192.168.5.208/28", 32, 5, "192.168.5.213/32"},
           Row{"2001:db8:85a3::/50", 63, 6425, "2001:db8:85a3:3232::/63"},
           Row{"2001:db8::/32", 48, 6425, "2001:db8:1919::/48"},
           Row{"2001:db8:1234:ff00::/56", 72, 6425, "2001:db8:1234:ff19:1900::/72"},
           Row{"2001:db8:1234:ff00::/80", 96, 6425, "2001:db8:1234:ff00:0:1919::/96"},
       }) {
    const CidrSet set = set_of(row.cluster, row.node_length);
    EXPECT_EQ(set.at(row.index).to_string(), row.cidr);
    EXPECT_EQ(set.indices_of(prefix(row.cidr)).value(), Indices(row.index, row.index));
  }
}

TEST(CidrSet, PrefixesOfEverySizeRelation) {  // [C7] [C8] [C9]
  struct Row {
    const char* cluster;
    int node_length;
    const char* cidr;
    Indices indices;
  };
  for (const Row& row : {
           Row{"127.0.0.0/8", 16, "127.0.0.0/8", {0, 255}},
           Row{"127.0.0.0/8", 16, "64.0.0.0/2", {0, 255}},
           Row{"126.0.0.0/7", 16, "127.0.0.0/15", {256, 257}},
           Row{"126.0.0.0/7", 15, "127.0.0.0/15", {128, 128}},
           Row{"126.0.0.0/7", 18, "127.0.0.0/15", {1024, 1031}},
           Row{"127.0.0.0/8", 32, "127.0.0.0/16", {0, 65535}},
           Row{"10.0.0.0/16", 24, "10.0.7.64/26", {7, 7}},
           Row{"fd00:10::/48", 64, "fd00:10:0:8000::/49", {32768, 65535}},
       }) {
    CidrSet set = set_of(row.cluster, row.node_length);
    EXPECT_EQ(set.indices_of(prefix(row.cidr)).value(), row.indices) << row.cidr;
    const std::uint32_t count = row.indices.second - row.indices.first + 1;
    EXPECT_EQ(set.occupy(prefix(row.cidr)).value(), count);
    EXPECT_EQ(set.taken(), count);
  }
}

TEST(CidrSet, ElsewhereIsAnError) {
  CidrSet set = set_of("10.10.0.0/16", 24);
  EXPECT_EQ(set.occupy("172.10.0.0/24"_prefix).error().message,
            "cidr 172.10.0.0/24 is out the range of cluster cidr 10.10.0.0/16");
  EXPECT_EQ(set.occupy("fd00::/64"_prefix).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(set.taken(), 0U);
}

TEST(CidrSet, Limits) {  // [C10]
  EXPECT_THAT(CidrSet::make({"beef:1234::/32"_prefix, 49}).error().message,
              testing::StartsWith("New CIDR set failed; the node CIDR size is too big"));
  EXPECT_TRUE(CidrSet::make({"beef:1234::/32"_prefix, 48}));
  // IPv4 has no limit in the reference; here one that keeps the bits in 2 MiB.
  EXPECT_EQ(set_of("10.0.0.0/8", 30).size(), 1U << 22);
  EXPECT_EQ(set_of("10.0.0.0/8", 32).size(), 1U << 24);
  EXPECT_EQ(CidrSet::make({"10.0.0.0/7"_prefix, 32}).error().message,
            "New CIDR set failed; the node CIDR size is too big: 10.0.0.0/7 cut into /32 makes 2^25 node ranges, and "
            "2^24 is the most");
  EXPECT_EQ(CidrSet::make({"10.0.0.0/24"_prefix, 23}).error().message,
            "node ranges of cluster CIDR 10.0.0.0/24 must be of length 24 to 32, not 23");
  EXPECT_FALSE(CidrSet::make({"10.0.0.0/24"_prefix, 33}));
  EXPECT_TRUE(CidrSet::make({"10.0.0.0/24"_prefix, 24}));
}

TEST(CidrSet, TriesCountRoundTheEnd) {
  CidrSet set = set_of("10.0.0.0/28", 32, 14);
  ASSERT_TRUE(set.occupy("10.0.0.14/31"_prefix));
  ASSERT_TRUE(set.occupy("10.0.0.0/32"_prefix));
  EXPECT_THAT(set.take_next(), Optional(CidrSet::Found{"10.0.0.1/32"_prefix, 3}));
  EXPECT_EQ(set.cursor(), 2U);
}

TEST(CidrSet, ASetMadeAnewGoesOnAtItsCursor) {  // [C13]
  CidrSet set = set_of("10.0.0.0/16", 24);
  for (int i = 0; i < 5; ++i) ASSERT_NE(next(set), "none");
  EXPECT_EQ(next(set), "10.0.5.0/24");
  // One past the end is taken modulo the size.
  EXPECT_EQ(set.cursor(), 6U);
  CidrSet again = set_of("10.0.0.0/16", 24, set.cursor());
  EXPECT_EQ(next(again), "10.0.6.0/24");
  EXPECT_EQ(set_of("10.0.0.0/16", 24, 258).cursor(), 2U);
}

TEST(CidrSet, WhatIsExcludedStaysTaken) {  // [N2], #excluded
  CidrSet set = set_of("127.123.234.0/24", 30);
  set.exclude("127.123.234.0/26"_prefix);
  set.exclude("127.123.234.32/27"_prefix);  // within
  set.exclude("127.123.234.62/31"_prefix);  // a part of a node range takes all of it
  set.exclude("127.123.234.128/32"_prefix);
  set.exclude("10.96.0.0/12"_prefix);  // elsewhere
  EXPECT_EQ(set.taken(), 17U);
  EXPECT_EQ(set.excluded_count(), 17U);
  EXPECT_EQ(next(set), "127.123.234.64/30");
}

}  // namespace
}  // namespace croft::core::node_range

namespace croft::core {

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

NodeRange of(const char* node, const char* cidr) { return {node, prefix(cidr)}; }

TEST(SaidRanges, WhatIsSaidAndRecordedAlikeIsNoFinding) {
  const std::vector<NodeRange> ranges{of("a", "10.0.0.0/24"), of("a", "fd00::/64"), of("b", "10.0.1.0/24")};
  const SaidComparison compared = compare_said(ranges, ranges);
  EXPECT_THAT(compared.overlaps, IsEmpty());
  EXPECT_THAT(compared.differing, IsEmpty());
  EXPECT_THAT(compared.unrecorded, IsEmpty());
  EXPECT_THAT(compare_said({}, ranges).differing, IsEmpty()) << "who says nothing yet says nothing else";
  EXPECT_THAT(compare_said({of("a", "10.0.0.0/24")}, ranges).differing, IsEmpty()) << "one family of two";
}

TEST(SaidRanges, TwoNodesThatSayOneRange) {
  const auto compared = compare_said({of("b", "10.0.0.128/25"), of("a", "10.0.0.0/24"), of("c", "10.0.0.0/24")}, {});
  EXPECT_THAT(compared.overlaps, ElementsAre(SaidOverlap{of("a", "10.0.0.0/24"), of("c", "10.0.0.0/24"), false},
                                             SaidOverlap{of("a", "10.0.0.0/24"), of("b", "10.0.0.128/25"), false}));
  EXPECT_THAT(compared.unrecorded, testing::SizeIs(3));
}

/// One fault, though the node has the record of what it says.
TEST(SaidRanges, OneFaultIsToldOnce) {
  const auto a = of("a", "10.0.0.0/24"), b = of("b", "10.0.0.0/24");
  EXPECT_THAT(compare_said({a, b}, {b}).overlaps, ElementsAre(SaidOverlap{a, b, false}));
  EXPECT_THAT(compare_said({a, b}, {a, b}).overlaps, ElementsAre(SaidOverlap{a, b, false}));
}

TEST(SaidRanges, ANodeThatSaysWhatIsRecordedForAnother) {
  const auto said = of("a", "10.0.0.0/25"), recorded = of("b", "10.0.0.0/24");
  EXPECT_THAT(compare_said({said}, {recorded}).overlaps, ElementsAre(SaidOverlap{said, recorded, true}));
  const auto wide = of("a", "10.0.0.0/16");
  EXPECT_THAT(compare_said({wide}, {recorded}).overlaps, ElementsAre(SaidOverlap{wide, recorded, true}));
}

TEST(SaidRanges, RecordsThatCollideAreToldElsewhere) {
  EXPECT_THAT(compare_said({}, {of("a", "10.0.0.0/24"), of("b", "10.0.0.0/25")}).overlaps, IsEmpty());
}

TEST(SaidRanges, ANodeThatSaysAnotherRangeThanItsRecord) {
  const auto compared = compare_said({of("a", "10.0.0.0/24")}, {of("a", "10.0.1.0/24")});
  EXPECT_THAT(compared.differing, ElementsAre(DifferingCidrs{"a", {prefix("10.0.0.0/24")}, {prefix("10.0.1.0/24")}}));
  EXPECT_THAT(compared.overlaps, IsEmpty());
}

/// Of any claims that overlap, each two nodes are found out through the widest.
TEST(SaidRanges, NothingThatOverlapsIsLeftOut) {
  const std::vector<NodeRange> said{of("a", "10.0.0.0/16"), of("a", "10.0.1.0/24"), of("b", "10.0.1.0/25"),
                                    of("c", "10.0.2.0/24"), of("a", "10.0.2.0/25"), of("d", "10.1.0.0/24")};
  std::vector<std::string> nodes;
  for (const SaidOverlap& one : compare_said(said, {}).overlaps) nodes.push_back(one.said.node + one.other.node);
  EXPECT_THAT(nodes, ElementsAre("ab", "ac"));
}

NodeRange range(const char* node, const char* cidr) { return {node, net::Prefix::parse(cidr).value()}; }

std::vector<std::string> text_of(const std::vector<SurplusRange>& surplus) {
  std::vector<std::string> lines;
  for (const SurplusRange& one : surplus) {
    lines.push_back(one.range.node + " " + one.range.cidr.to_string() + " for " + one.kept.to_string());
  }
  return lines;
}

TEST(SurplusRanges, TheFirstOfAFamilyIsKeptUnlessTheObjectSaysAnother) {
  const std::vector<RecordedRange> recorded{{range("a", "10.0.1.0/24"), 9}, {range("a", "10.0.2.0/24"), 7},
                                            {range("a", "fd00::/64"), 8},   {range("b", "10.0.3.0/24"), 3},
                                            {range("a", "10.0.4.0/24"), 8}, {range("c", "10.0.5.0/24"), 1}};
  EXPECT_THAT(text_of(surplus_ranges(recorded, {})),
              testing::ElementsAre("a 10.0.4.0/24 for 10.0.2.0/24", "a 10.0.1.0/24 for 10.0.2.0/24"));
  EXPECT_THAT(text_of(surplus_ranges(recorded, {range("a", "10.0.1.0/24"), range("b", "10.0.2.0/24")})),
              testing::ElementsAre("a 10.0.2.0/24 for 10.0.1.0/24", "a 10.0.4.0/24 for 10.0.1.0/24"));
  EXPECT_THAT(text_of(surplus_ranges(recorded, {range("a", "10.0.1.0/24"), range("a", "10.0.2.0/24")})),
              testing::ElementsAre("a 10.0.4.0/24 for 10.0.2.0/24"))
      << "what is said is never given back";
}

TEST(SurplusRanges, OfTwoNodesThatOverlapTheFirstIsKeptUnlessTheOtherIsSaid) {
  const std::vector<RecordedRange> recorded{{range("a", "10.0.0.0/24"), 5},
                                            {range("b", "10.0.0.32/27"), 4},
                                            {range("c", "10.0.1.0/24"), 2},
                                            {range("d", "10.0.1.64/27"), 3},
                                            {range("e", "10.0.2.0/24"), 1}};
  EXPECT_THAT(text_of(surplus_ranges(recorded, {})),
              testing::ElementsAre("a 10.0.0.0/24 for 10.0.0.32/27", "d 10.0.1.64/27 for 10.0.1.0/24"));
  EXPECT_THAT(text_of(surplus_ranges(recorded, {range("a", "10.0.0.0/24"), range("d", "10.0.1.64/27")})),
              testing::ElementsAre("b 10.0.0.32/27 for 10.0.0.0/24", "c 10.0.1.0/24 for 10.0.1.64/27"));
  EXPECT_THAT(text_of(surplus_ranges(recorded, {range("a", "10.0.0.0/24"), range("b", "10.0.0.32/27")})),
              testing::ElementsAre("d 10.0.1.64/27 for 10.0.1.0/24"))
      << "what is said is never given back";
  const std::vector<RecordedRange> chain{
      {range("a", "10.0.0.0/27"), 1}, {range("b", "10.0.0.0/24"), 2}, {range("c", "10.0.0.64/27"), 3}};
  EXPECT_THAT(text_of(surplus_ranges(chain, {})),
              testing::ElementsAre("b 10.0.0.0/24 for 10.0.0.0/27", "c 10.0.0.64/27 for 10.0.0.0/24"))
      << "b may be there yet when a is gone";
  // A node beside two others: it goes once.
  const std::vector<RecordedRange> wide{
      {range("a", "10.0.0.0/24"), 9}, {range("b", "10.0.0.0/27"), 1}, {range("c", "10.0.0.32/27"), 2}};
  EXPECT_THAT(text_of(surplus_ranges(wide, {})), testing::ElementsAre("a 10.0.0.0/24 for 10.0.0.0/27"));
}

class NodeRangeChanges : public testing::Test {
 protected:
  Result<std::vector<NodeRangesAssigned>> assign(const std::vector<std::string>& nodes) {
    return register_.decide<std::vector<NodeRangesAssigned>>(
        [&](const Snapshot& snapshot) { return plan_assign_node_ranges(snapshot, nodes, NodeRecord::make); });
  }
  Result<NodeRangeOverview> look() {
    return register_.decide<NodeRangeOverview>(
        [](const Snapshot& snapshot) { return read_node_range_overview(snapshot); });
  }
  void store(std::vector<ClusterCidr> cluster_cidrs, std::vector<net::Prefix> excluded = {}) {
    register_.put(node_range_set_key(), NodeRangeSet{1, std::move(cluster_cidrs), std::move(excluded), {}});
  }

  TestRegister register_;
};

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

/// "ok", or the error's code.
template <class T>
std::string said(const Result<T>& result) {
  return result ? "ok" : std::string(name_of(result.error().code));
}

std::vector<std::string> texts(const std::vector<net::Prefix>& cidrs) {
  std::vector<std::string> result;
  for (const net::Prefix& cidr : cidrs) result.push_back(cidr.to_string());
  return result;
}

TEST_F(NodeRangeChanges, WhatRangesAreCutFromIsCheckedBeforeItIsWritten) {
  struct Row {
    const char* what;
    std::vector<ClusterCidr> cluster_cidrs;
    std::vector<net::Prefix> excluded;
    const char* said;
    bool changed;
  };
  const Row rows[] = {
      {"none", {}, {}, "invalid_argument", false},
      {"as it is", {{prefix("10.0.0.0/16"), 24}}, {}, "ok", false},
      {"another length", {{prefix("10.0.0.0/16"), 25}}, {}, "ok", true},
      {"one more", {{prefix("10.0.0.0/16"), 24}, {prefix("10.1.0.0/16"), 24}}, {}, "ok", true},
      {"two that overlap",
       {{prefix("10.0.0.0/16"), 24}, {prefix("10.0.0.0/15"), 24}},
       {},
       "refused_by_configuration",
       false},
      {"on a pool", {{prefix("10.9.0.0/16"), 24}}, {}, "refused_by_configuration", false},
      {"excluded whole", {{prefix("10.0.0.0/16"), 24}}, {prefix("10.0.0.0/15")}, "refused_by_configuration", false},
      {"excluded in part", {{prefix("10.0.0.0/16"), 24}}, {prefix("10.0.0.0/20")}, "ok", true},
      {"too long", {{prefix("10.0.0.0/16"), 15}}, {}, "invalid_argument", false},
  };
  for (const Row& row : rows) {
    register_ = TestRegister();
    Pool pool;
    pool.name = "p";
    pool.cidr = prefix("10.9.0.0/24");
    register_.put(pool_key("p"), pool);
    store({{prefix("10.0.0.0/16"), 24}});
    register_.put(node_range_key(prefix("10.0.7.0/24")), NodeRange{"a", prefix("10.0.7.0/24")});
    const auto plan = register_.plan<NodeRangesConfigured>([&](const Snapshot& s) {
      return plan_configure_node_ranges(s, {row.cluster_cidrs, row.excluded});
    });
    EXPECT_EQ(said(plan), row.said) << row.what;
    if (!plan) continue;
    EXPECT_EQ(plan->answer.changed, row.changed) << row.what;
    // The set of pools with it: a pool that is made meanwhile must conflict.
    EXPECT_EQ(plan->writes.size(), row.changed ? 2U : 0U) << row.what;
    EXPECT_TRUE(plan->answer.outside.empty()) << row.what;
  }
}

TEST_F(NodeRangeChanges, ANodeGetsARangeOfEachFamilyItLacks) {
  struct Row {
    const char* what;
    bool configured;
    NodeRecord record;
    bool recorded;
    const char* has;
    const char* said;  ///< of the whole, or of the node's refusal
    std::vector<std::string> cidrs;
    std::size_t writes;  ///< ranges, the set, a node's record
  };
  const Row rows[] = {
      {"no cluster CIDR", false, NodeRecord::make, true, nullptr, "refused_by_configuration", {}, 0},
      {"new", true, NodeRecord::make, false, nullptr, "ok", {"10.0.0.0/24", "fd00::/64"}, 4},
      {"recorded", true, NodeRecord::demand, true, nullptr, "ok", {"10.0.0.0/24", "fd00::/64"}, 3},
      {"unknown", true, NodeRecord::demand, false, nullptr, "not_found", {}, 0},
      {"one of two", true, NodeRecord::demand, true, "10.0.9.0/24", "ok", {"10.0.9.0/24", "fd00::/64"}, 2},
  };
  for (const Row& row : rows) {
    register_ = TestRegister();
    if (row.configured) store({{prefix("10.0.0.0/16"), 24}, {prefix("fd00::/48"), 64}});
    if (row.recorded) register_.put(node_key("a"), Node{"a", {}, {}, {}});
    if (row.has != nullptr) register_.put(node_range_key(prefix(row.has)), NodeRange{"a", prefix(row.has)});
    const auto plan = register_.plan<std::vector<NodeRangesAssigned>>(
        [&](const Snapshot& s) { return plan_assign_node_ranges(s, {"a"}, row.record); });
    if (!plan) {
      EXPECT_EQ(said(plan), row.said) << row.what;
      continue;
    }
    ASSERT_EQ(plan->answer.size(), 1U) << row.what;
    const NodeRangesAssigned& answer = plan->answer.front();
    EXPECT_EQ(answer.refusal ? name_of(answer.refusal->code) : "ok", row.said) << row.what;
    EXPECT_EQ(texts(answer.cidrs), row.cidrs) << row.what;
    EXPECT_EQ(plan->writes.size(), row.writes) << row.what;
    register_.apply(plan->writes);
    const auto again = register_.plan<std::vector<NodeRangesAssigned>>(
        [&](const Snapshot& s) { return plan_assign_node_ranges(s, {"a"}, row.record); });
    ASSERT_TRUE(again) << row.what;
    EXPECT_TRUE(again->writes.empty()) << row.what;
  }
}

/// spec.podCIDRs is immutable once it is set: a cluster that becomes dual stack.
TEST_F(NodeRangeChanges, ANodeWhoseObjectSaysARangeGetsNoOther) {
  store({{prefix("10.0.0.0/16"), 24}, {prefix("fd00::/48"), 64}});
  for (const char* name : {"a", "b"}) register_.put(node_key(name), Node{name, {}, {}, {}});
  register_.put(node_range_key(prefix("10.0.3.0/24")), NodeRange{"a", prefix("10.0.3.0/24")});
  const std::vector<NodeRange> objects{{"a", prefix("10.0.3.0/24")}, {"b", prefix("10.0.4.0/24")}};
  const auto plan = register_.plan<std::vector<NodeRangesAssigned>>([&](const Snapshot& s) {
    return plan_assign_node_ranges(s, {"a", "b"}, NodeRecord::demand, objects);
  });
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->writes.empty());
  EXPECT_EQ(plan->answer[0].cidrs, (std::vector{prefix("10.0.3.0/24")}));
  EXPECT_FALSE(plan->answer[0].refusal);
  ASSERT_TRUE(plan->answer[1].refusal);
  EXPECT_NE(plan->answer[1].refusal->message.find("croft node range assign b --cidr 10.0.4.0/24"), std::string::npos);
}

/// Overlap, not equality: longer, shorter, elsewhere.
TEST_F(NodeRangeChanges, WhatIsSaidOutsideTheRegisterIsNobodys) {
  struct Row {
    const char* said;
    const char* given;
    const char* cluster = "10.0.0.0/22";
  };
  const Row rows[] = {
      {"10.0.0.0/24", "10.0.1.0/24"}, {"10.0.0.128/25", "10.0.1.0/24"},
      {"10.0.0.0/23", "10.0.2.0/24"}, {"10.0.0.7/32", "10.0.1.0/24"},
      {"10.0.3.0/24", "10.0.0.0/24"}, {"192.168.0.0/16", "10.0.0.0/24"},
      {"fd00::/16", "10.0.0.0/24"},   {"10.0.0.0/24", "exhausted", "10.0.0.0/24"},
      {"10.0.0.0/8", "exhausted"},    {"10.0.0.0/20", "10.0.16.0/24", "10.0.0.0/16"},
  };
  for (const Row& row : rows) {
    register_ = TestRegister();
    store({{prefix(row.cluster), 24}});
    const std::vector<NodeRange> said{{"elsewhere", prefix(row.said)}};
    const auto done = register_.decide<std::vector<NodeRangesAssigned>>(
        [&](const Snapshot& s) { return plan_assign_node_ranges(s, {"a"}, NodeRecord::make, said); });
    ASSERT_TRUE(done) << row.said;
    const NodeRangesAssigned& one = done->front();
    const std::string given = one.refusal ? std::string(name_of(one.refusal->code)) : one.cidrs.front().to_string();
    EXPECT_EQ(given, row.given) << row.said;
    if (!one.refusal) continue;
    EXPECT_NE(one.refusal->message.find("beside 1 that nodes' objects say"), std::string::npos) << one.refusal->message;
  }
}

TEST_F(NodeRangeChanges, RangesAreGivenBackByWhomNothingSaysThatItLives) {
  using Cidrs = std::vector<net::Prefix>;
  const net::Prefix v4 = prefix("10.0.3.0/24"), v6 = prefix("fd00:0:0:3::/64");
  struct Row {
    const char* what;
    bool recorded;
    OnlyIfGone only_if_gone;
    IfRecorded if_recorded;
    std::optional<Cidrs> only_these;
    const char* said;
    Cidrs given_back;
  };
  const Row rows[] = {
      {"gone", false, {}, IfRecorded::refuse, {}, "ok", {v4, v6}},
      {"recorded", true, {}, IfRecorded::refuse, {}, "refused_for_safety", {}},
      {"recorded, no matter", true, {}, IfRecorded::release, {}, "ok", {v4, v6}},
      {"one of them", false, {}, IfRecorded::refuse, Cidrs{v6}, "ok", {v6}},
      {"none of them", true, {}, IfRecorded::refuse, Cidrs{}, "ok", {}},
      {"as it was seen", false, Cidrs{v6, v4}, IfRecorded::refuse, {}, "ok", {v4, v6}},
      {"not as it was seen", false, Cidrs{v4}, IfRecorded::refuse, {}, "ok", {}},
      {"back meanwhile", true, Cidrs{v4, v6}, IfRecorded::refuse, {}, "ok", {}},
  };
  for (const Row& row : rows) {
    register_ = TestRegister();
    store({{prefix("10.0.0.0/16"), 24}, {prefix("fd00::/48"), 64}});
    for (const net::Prefix& cidr : {v4, v6}) register_.put(node_range_key(cidr), NodeRange{"a", cidr});
    if (row.recorded) register_.put(node_key("a"), Node{"a", {}, {}, {}});
    const auto done = register_.decide<NodeRangesReleased>([&](const Snapshot& s) {
      return plan_release_node_ranges(s, "a", row.only_if_gone, row.if_recorded, row.only_these);
    });
    EXPECT_EQ(said(done), row.said) << row.what;
    if (done) {
      EXPECT_EQ(done->cidrs, row.given_back) << row.what;
    }
    for (const net::Prefix& cidr : {v4, v6}) {
      const bool given_back = std::ranges::find(row.given_back, cidr) != row.given_back.end();
      EXPECT_EQ(register_.get(node_range_key(cidr)) == nullptr, given_back) << row.what;
    }
  }
}

}  // namespace
}  // namespace croft::core
