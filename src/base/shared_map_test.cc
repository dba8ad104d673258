#include "base/shared_map.h"

#include <string>

#include <gtest/gtest.h>

namespace croft {
namespace {

using Texts = SharedMap<std::string, int>;

TEST(SharedMap, ACopySharesUntilOneIsChanged) {
  Texts a{{"x", 1}, {"y", 2}};
  Texts b = a;
  EXPECT_EQ(&a.get(), &b.get());
  b["x"] = 3;
  EXPECT_NE(&a.get(), &b.get());
  EXPECT_EQ(a.at("x"), 1);
  EXPECT_EQ(b.at("x"), 3);
  EXPECT_NE(a, b);
  EXPECT_EQ(b.erase("x"), 1U);
  EXPECT_EQ(a.size(), 2U);
  b.clear();
  EXPECT_TRUE(b.empty());
  EXPECT_TRUE(a.contains("y"));
}

TEST(SharedMap, WhoIsAloneChangesInPlace) {
  Texts a{{"x", 1}};
  const auto* before = &a.get();
  a["y"] = 2;
  EXPECT_EQ(&a.get(), before);
  EXPECT_EQ(a.erase("z"), 0U);
  EXPECT_EQ(a.find("z"), a.end());
}

TEST(SharedMap, EqualByContentAndEmptyByDefault) {
  EXPECT_EQ(Texts(), Texts(std::map<std::string, int>{}));
  Texts a;
  a["x"] = 1;
  EXPECT_EQ(a, (Texts{{"x", 1}}));
  a.erase("x");
  EXPECT_EQ(a, Texts());
}

}  // namespace
}  // namespace croft
