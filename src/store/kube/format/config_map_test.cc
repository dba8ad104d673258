#include "store/kube/format/config_map.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/kube/format/api.h"

namespace croft::wire::kube {
namespace {

using testing::HasSubstr;

std::string config_map_with(const std::string& members) {
  return R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m","namespace":"n","uid":"u","resourceVersion":"7"})" +
         (members.empty() ? "" : "," + members) + "}";
}
std::string why_not(const std::string& json) {
  const auto text = text_in_config_map(json, "n", "m", "K");
  return text ? "it was taken" : text.error().message;
}

TEST(ConfigMap, HasTextsByKey) {
  EXPECT_EQ(text_in_config_map(config_map_with(R"("data":{"J":"no","K":"a\nb"})"), "n", "m", "K").value(), "a\nb");
  for (const char* members : {"", R"("data":null)", R"("data":{})", R"("data":{"J":"no"})", R"("data":{"K":null})"}) {
    EXPECT_EQ(text_in_config_map(config_map_with(members), "n", "m", "K").value(), "") << members;
  }
  EXPECT_THAT(why_not(config_map_with(R"("data":{"K":7})")), HasSubstr("data.K"));
  EXPECT_THAT(why_not(config_map_with(R"("data":[])")), HasSubstr("data"));
}

/// It is JSON: what stands beside a text of YAML may be what YAML does not take.
TEST(ConfigMap, WhatYamlDoesNotTakeMayStandInIt) {
  for (const char* odd : {"\x7f", "\xc2\x80", "\xef\xbf\xbe"}) {
    const std::string json =
        config_map_with(fmt::format(R"("binaryData":{{"a":"{}"}},"data":{{"other":"{}","K":"v"}})", odd, odd));
    EXPECT_EQ(text_in_config_map(json, "n", "m", "K").value(), "v");
  }
}

/// A cache or proxy that mixes answers up gives another one, and of that nothing follows.
TEST(ConfigMap, AnotherObjectIsNone) {
  for (const char* other :
       {"[]", "{}",
        R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"o","namespace":"n","resourceVersion":"7"}})",
        R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":"m","namespace":"n","resourceVersion":"7"}})"}) {
    EXPECT_THAT(why_not(other), testing::Not("it was taken")) << other;
  }
}

TEST(ConfigMap, IsBounded) {
  EXPECT_THAT(why_not(config_map_with(R"("data":)" + std::string(kApiAnswerBytesMax, '['))), HasSubstr("16777216"));
  EXPECT_THAT(why_not(config_map_with(R"("data":)" + std::string(1'000'000, '['))), testing::Not("it was taken"));
}

}  // namespace
}  // namespace croft::wire::kube
