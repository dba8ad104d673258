#include "cli/croft/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::app {
namespace {

using testing::HasSubstr;

Table addresses() {
  Table table({"ADDRESS", "POD"});
  table.add({"10.0.0.10", "web-0"});
  table.add({"10.0.0.9", ""});
  table.add({"10.0.0.100", "a-long-name-of-a-pod-that-nobody-reads"});
  return table;
}

TEST(TableTest, RowsAloneWithoutHeadings) {
  Table table({"A", "B"});
  table.add({"1", "2"});
  EXPECT_EQ(table.to_string({false, 0}), "1   2\n");
}

TEST(TableTest, FitsByCuttingTheWidestCellButNotTheFirst) {
  for (const std::string& line : addresses().lines({true, 30})) EXPECT_LE(width_of(line), 30U) << line;
  EXPECT_THAT(addresses().to_string({true, 30}), HasSubstr("10.0.0.100   a-long-name-of-a…\n"));
  // Then closer together, then without the last columns.
  EXPECT_THAT(addresses().to_string({true, 19}), HasSubstr("10.0.0.100 a-long-…\n"));
  EXPECT_EQ(addresses().to_string({true, 5}), "ADDRESS\n10.0.0.10\n10.0.0.9\n10.0.0.100\n");
}

TEST(TableTest, SortsNumbersAsNumbersAndEmptyCellsLast) {
  Table table = addresses();
  ASSERT_TRUE(table.sort_by("address"));
  EXPECT_THAT(table.to_string({false, 0}), testing::MatchesRegex("10.0.0.9 .*\n10.0.0.10 .*\n10.0.0.100 .*\n"));
  ASSERT_TRUE(table.sort_by("POD"));
  EXPECT_THAT(table.to_string({false, 0}), testing::MatchesRegex("10.0.0.100 .*\n10.0.0.10 .*\n10.0.0.9 .*\n"));
}

TEST(TableTest, NamesTheColumnsThatThereAre) {
  Table table = addresses();
  const auto sorted = table.sort_by("pods");
  ASSERT_FALSE(sorted);
  EXPECT_EQ(sorted.error().message,
            "--sort-by: there is no column \"pods\"; did you mean \"pod\"?; the columns are ADDRESS, POD");
}

}  // namespace
}  // namespace croft::app
