#include "core/node_range/surplus.h"

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

}  // namespace
}  // namespace croft::core
