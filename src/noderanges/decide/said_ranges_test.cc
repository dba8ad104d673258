#include "noderanges/decide/said_ranges.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

namespace croft::core {

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

NodeRange of(const char* node, const char* cidr) { return {node, prefix(cidr)}; }

TEST(SaidRanges, WhatIsSaidAndRecordedAlikeIsNoFinding) {
  const std::vector<NodeRange> ranges{of("a", "10.0.0.0/24"), of("a", "fd00::/64"), of("b", "10.0.1.0/24")};
  const SaidComparison compared = compare_said(ranges, ranges, {});
  EXPECT_THAT(compared.overlaps, IsEmpty());
  EXPECT_THAT(compared.differing, IsEmpty());
  EXPECT_THAT(compared.unrecorded, IsEmpty());
  EXPECT_THAT(compare_said({}, ranges, {}).differing, IsEmpty()) << "who says nothing yet says nothing else";
  EXPECT_THAT(compare_said({of("a", "10.0.0.0/24")}, ranges, {}).differing, IsEmpty()) << "one family of two";
}

TEST(SaidRanges, TwoNodesThatSayOneRange) {
  const auto compared =
      compare_said({of("b", "10.0.0.128/25"), of("a", "10.0.0.0/24"), of("c", "10.0.0.0/24")}, {}, {});
  EXPECT_THAT(compared.overlaps, ElementsAre(SaidOverlap{of("a", "10.0.0.0/24"), of("c", "10.0.0.0/24"), false},
                                             SaidOverlap{of("a", "10.0.0.0/24"), of("b", "10.0.0.128/25"), false}));
  EXPECT_THAT(compared.unrecorded, testing::SizeIs(3));
}

/// One fault, though the node has the record of what it says.
TEST(SaidRanges, OneFaultIsToldOnce) {
  const auto a = of("a", "10.0.0.0/24"), b = of("b", "10.0.0.0/24");
  EXPECT_THAT(compare_said({a, b}, {b}, {}).overlaps, ElementsAre(SaidOverlap{a, b, false}));
  EXPECT_THAT(compare_said({a, b}, {a, b}, {}).overlaps, ElementsAre(SaidOverlap{a, b, false}));
}

TEST(SaidRanges, ANodeThatSaysWhatIsRecordedForAnother) {
  const auto said = of("a", "10.0.0.0/25"), recorded = of("b", "10.0.0.0/24");
  EXPECT_THAT(compare_said({said}, {recorded}, {}).overlaps, ElementsAre(SaidOverlap{said, recorded, true}));
  const auto wide = of("a", "10.0.0.0/16");
  EXPECT_THAT(compare_said({wide}, {recorded}, {}).overlaps, ElementsAre(SaidOverlap{wide, recorded, true}));
}

/// A kubelet registers its node with what it likes: what would leave nobody else a range is told, and keeps none.
TEST(SaidRanges, WhatCantBeOneNodesIsToldApart) {
  const std::vector<ClusterCidr> clusters{{prefix("10.0.0.0/16"), 24}, {prefix("10.9.0.0/24"), 24}};
  const std::vector<NodeRange> wide{of("a", "10.0.0.0/16"), of("b", "0.0.0.0/0"), of("c", "10.0.32.0/19"),
                                    of("d", "10.9.0.0/23")};
  const std::vector<NodeRange> others{of("e", "10.0.16.0/20"), of("f", "10.9.0.0/24"), of("g", "192.168.0.0/16"),
                                      of("h", "::/0")};
  std::vector<NodeRange> all = wide;
  all.insert(all.end(), others.begin(), others.end());
  const auto compared = compare_said(all, {of("i", "10.0.40.0/24")}, clusters);
  EXPECT_THAT(compared.too_wide, testing::ElementsAreArray(wide));
  EXPECT_THAT(compared.unrecorded, testing::UnorderedElementsAreArray(others));
  EXPECT_THAT(compared.overlaps, IsEmpty());
  EXPECT_THAT(said_by_one_node(all, clusters), testing::ElementsAreArray(others));
}

TEST(SaidRanges, RecordsThatCollideAreToldElsewhere) {
  EXPECT_THAT(compare_said({}, {of("a", "10.0.0.0/24"), of("b", "10.0.0.0/25")}, {}).overlaps, IsEmpty());
}

TEST(SaidRanges, ANodeThatSaysAnotherRangeThanItsRecord) {
  const auto compared = compare_said({of("a", "10.0.0.0/24")}, {of("a", "10.0.1.0/24")}, {});
  EXPECT_THAT(compared.differing, ElementsAre(DifferingCidrs{"a", {prefix("10.0.0.0/24")}, {prefix("10.0.1.0/24")}}));
  EXPECT_THAT(compared.overlaps, IsEmpty());
}

/// Of any claims that overlap, each two nodes are found out through the widest.
TEST(SaidRanges, NothingThatOverlapsIsLeftOut) {
  const std::vector<NodeRange> said{of("a", "10.0.0.0/16"), of("a", "10.0.1.0/24"), of("b", "10.0.1.0/25"),
                                    of("c", "10.0.2.0/24"), of("a", "10.0.2.0/25"), of("d", "10.1.0.0/24")};
  std::vector<std::string> nodes;
  for (const SaidOverlap& one : compare_said(said, {}, {}).overlaps) nodes.push_back(one.said.node + one.other.node);
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

}  // namespace

}  // namespace croft::core
