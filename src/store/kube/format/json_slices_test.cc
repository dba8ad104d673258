#include "store/kube/format/json_slices.h"

#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire::kube {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts_in(std::string_view text) {
  std::vector<std::string> found;
  const std::size_t length = each_slice(text, [&](std::string_view name, std::string_view value) {
    const std::size_t whole = length_of_value(value);
    found.push_back((name.empty() ? "" : std::string(name) + "=") + std::string(value.substr(0, whole)));
    return whole;
  });
  if (length == text.npos) found.emplace_back("broken");
  return found;
}

TEST(JsonSlices, AnObjectAndAListAreCutIntoTheirValues) {
  EXPECT_THAT(texts_in(R"({"a": 1, "b":{"c":"}"} ,"d":[1,[2]]} )"), ElementsAre("a=1", R"(b={"c":"}"})", "d=[1,[2]]"));
  EXPECT_THAT(texts_in(R"([null, "a\"]", -1.5e3])"), ElementsAre("null", R"("a\"]")", "-1.5e3"));
  EXPECT_THAT(texts_in(R"(["\\","x"])"), ElementsAre(R"("\\")", R"("x")")) << "an escaped backslash ends nothing";
  EXPECT_THAT(texts_in("{}"), ElementsAre());
}

TEST(JsonSlices, WhatIsCutOffOrNoneHasNoEnd) {
  const std::string whole = R"({"a":[1,{"b":"c"}],"d":"e"})";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(texts_in(whole.substr(0, size)), testing::Contains("broken")) << size;
  }
  for (const char* none : {"", "7", "x", "[1 2]", "{1:2}", R"({"a" 1})", "[,]"}) {
    EXPECT_THAT(texts_in(none), testing::Contains("broken")) << none;
  }
}

TEST(JsonSlices, WhatIsInsideIsGoneThroughOnce) {
  const std::string_view text = R"({"items":[1,2],"z":3} x)";
  int count = 0;
  std::string last;
  const std::size_t length = each_slice(text, [&](std::string_view name, std::string_view value) {
    last = name;
    if (name != "items") return length_of_value(value);
    return each_slice(value, [&](std::string_view, std::string_view one) {
      ++count;
      return length_of_value(one);
    });
  });
  EXPECT_EQ(count, 2);
  EXPECT_EQ(last, "z");
  EXPECT_EQ(text.substr(length), " x");
}

TEST(JsonSlices, OnlyWhatIsKeptIsCopied) {
  static constexpr std::array kState = {Kept{"running"}};
  static constexpr std::array kContainer = {Kept{"state", kState}};
  static constexpr std::array kKept = {Kept{"name"}, Kept{"containers", kContainer}};
  EXPECT_EQ(
      with_only(R"({"x":{"name":1},"name":"a","containers":[{"image":"i","state":{"running":{"at":1},"w":2}},{}]})",
                kKept),
      R"({"name":"a","containers":[{"state":{"running":{"at":1}}},{}]})");
  EXPECT_EQ(with_only(R"({"containers":null,"name":{"b":1}})", kKept), R"({"containers":null,"name":{"b":1}})");
  EXPECT_EQ(with_only(R"({"x":1})", kKept), "{}");
  EXPECT_EQ(with_only(R"({"x":1)", kKept), R"({"x":1)") << "for the reader to say what is wrong";
}

}  // namespace
}  // namespace croft::wire::kube
