#include "app/croft/json_output.h"

#include <gtest/gtest.h>

namespace croft::app {
namespace {

TEST(YamlOutput, WhatYamlHasNoPlaceForIsEscaped) {
  EXPECT_EQ(yaml_of("[\"a\x7f\u0080\u0085\u009f\u00a0\"]"), "- \"a\\u007f\\u0080\\u0085\\u009f\u00a0\"\n");
  EXPECT_EQ(yaml_of("[\"\u2028\u2029\ufeff\ufffe\uffff\"]"), "- \"\\u2028\\u2029\\ufeff\\ufffe\\uffff\"\n");
  EXPECT_EQ(yaml_of("[\"\u00e4 \u20ac \U0001f600 \\u0001\"]"), "- \"\u00e4 \u20ac \U0001f600 \\u0001\"\n");
  EXPECT_EQ(yaml_of("{\"k\x7f\":{\"\u0085\":1}}"), "\"k\\u007f\":\n  \"\\u0085\": 1\n");
}

TEST(YamlOutput, KeysThatAreNoWords) {
  EXPECT_EQ(yaml_of(R"({"True":1,"FALSE":2,"nULL":3,"yes":4,"a/b":5,"":6,"port":7,"truer":8})"),
            "\"True\": 1\n\"FALSE\": 2\n\"nULL\": 3\n\"yes\": 4\n\"a/b\": 5\n\"\": 6\nport: 7\ntruer: 8\n");
}

}  // namespace
}  // namespace croft::app
