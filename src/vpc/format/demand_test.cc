#include "vpc/format/demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time_text.h"

namespace croft::wire {
namespace {

using namespace std::chrono_literals;
using core::warm::DemandSample;
using testing::HasSubstr;

TEST(Demand, IsReadAsItWasWritten) {
  std::vector<DemandSample> samples(3);
  samples[0].at = parse_rfc3339("2026-01-15T10:00:00Z").value();
  samples[1] = {samples[0].at + 10s, 7, 5, 4321ms, 2500ms};
  samples[2].at = samples[1].at + 10s;
  const std::string bytes = encode_demand(samples);
  EXPECT_EQ(bytes,
            "{\"version\":1,\"samples\":[{\"at\":\"2026-01-15T10:00:00Z\"},{\"at\":\"2026-01-15T10:00:10Z\",\"adds\":7,"
            "\"peak\":5,\"refillMs\":4321,\"emptyMs\":2500},{\"at\":\"2026-01-15T10:00:20Z\"}]}\n");
  const auto read = decode_demand(bytes).value();
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(encode_demand(read), bytes);
  EXPECT_TRUE(decode_demand(encode_demand({})).value().empty());
}

TEST(Demand, WhatCannotBeIsNamed) {
  const auto why = [](const std::string& bytes) {
    const auto read = decode_demand(bytes);
    return read ? std::string("taken") : read.error().message;
  };
  EXPECT_THAT(why("{}"), HasSubstr("version: is missing"));
  EXPECT_THAT(why("x"), testing::Not(HasSubstr("taken")));
  EXPECT_EQ(decode_demand(R"({"version": 2, "samples": 7})").error().code, ErrorCode::newer_version);
  EXPECT_THAT(why(R"({"version": 1, "samples": [{"at": "soon"}]})"), HasSubstr("samples[0].at"));
  EXPECT_THAT(why(R"({"version": 1, "samples": [{"adds": 1}]})"), HasSubstr("samples[0]: it has no time"));
  EXPECT_THAT(why(R"({"version": 1, "samples": [{"at": "2026-01-15T10:00:00Z", "adds": -1}]})"),
              HasSubstr("samples[0].adds"));
  EXPECT_THAT(why(R"({"version": 1, "samples": [{"at": "2026-01-15T10:00:00Z", "emptyMs": 86400001}]})"),
              HasSubstr("samples[0].emptyMs"));
  EXPECT_THAT(why(R"({"version": 1, "samples": [{"at": "2026-01-15T10:00:00Z"}, {"at": "2026-01-15T10:00:00Z"}]})"),
              HasSubstr("samples[1].at: 2026-01-15T10:00:00Z is not later"));
  EXPECT_THAT(why(R"({"version": 1, "samples": [null]})"), HasSubstr("samples[0]: it is null"));
  EXPECT_EQ(decode_demand(std::string(kDemandBytesMax + 1, ' ')).error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace croft::wire
