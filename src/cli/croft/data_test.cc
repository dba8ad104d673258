#include "cli/croft/data.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace croft::app {
namespace {

std::string yaml_of(const char* json) { return Data(nlohmann::ordered_json::parse(json)).yaml(); }

TEST(Data, YamlIsTheSameData) {
  EXPECT_EQ(yaml_of(R"([{"address":"a: \"b\"","list":[1,{"deep":null,"y":[]}],"none":{}},{"more":[[true]]}])"),
            "- address: \"a: \\\"b\\\"\"\n"
            "  list:\n"
            "    - 1\n"
            "    - deep: null\n"
            "      \"y\": []\n"
            "  none: {}\n"
            "- more:\n"
            "    - - true\n");
  EXPECT_EQ(yaml_of("[]\n"), "[]\n");
}

TEST(Data, WhatYamlHasNoPlaceForIsEscaped) {
  EXPECT_EQ(yaml_of("[\"a\x7f\u0080\u0085\u009f\u00a0\"]"), "- \"a\\u007f\\u0080\\u0085\\u009f\u00a0\"\n");
  EXPECT_EQ(yaml_of("[\"\u2028\u2029\ufeff\ufffe\uffff\"]"), "- \"\\u2028\\u2029\\ufeff\\ufffe\\uffff\"\n");
  EXPECT_EQ(yaml_of("[\"\u00e4 \u20ac \U0001f600 \\u0001\"]"), "- \"\u00e4 \u20ac \U0001f600 \\u0001\"\n");
  EXPECT_EQ(yaml_of("{\"k\x7f\":{\"\u0085\":1}}"), "\"k\\u007f\":\n  \"\\u0085\": 1\n");
}

TEST(Data, KeysThatAreNoWords) {
  EXPECT_EQ(yaml_of(R"({"True":1,"FALSE":2,"nULL":3,"yes":4,"a/b":5,"":6,"port":7,"truer":8})"),
            "\"True\": 1\n\"FALSE\": 2\n\"nULL\": 3\n\"yes\": 4\n\"a/b\": 5\n\"\": 6\nport: 7\ntruer: 8\n");
}

TEST(Data, BothFormsOfOneValue) {
  const Data data(nlohmann::ordered_json{{"b", {1, "x\xff"}}, {"a", nullptr}});
  EXPECT_EQ(data.json(), "{\n  \"b\": [\n    1,\n    \"x\ufffd\"\n  ],\n  \"a\": null\n}\n");
  EXPECT_EQ(data.yaml(), "\"b\":\n  - 1\n  - \"x\ufffd\"\n\"a\": null\n");
  EXPECT_EQ(Data().json() + Data().yaml(), "");
}

}  // namespace
}  // namespace croft::app
