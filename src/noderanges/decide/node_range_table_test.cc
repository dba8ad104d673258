#include "noderanges/decide/node_range_table.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

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
