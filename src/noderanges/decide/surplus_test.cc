#include "noderanges/decide/surplus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::core {
namespace {

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
