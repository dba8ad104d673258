#include "history/door/flow_log.h"

#include <string>

#include <gtest/gtest.h>

namespace croft::edge {
namespace {

using namespace std::chrono_literals;
using core::history::Moment;

Result<std::string> holder_of(const net::Address& address, const Moment& when) {
  if (address.to_string() == "10.1.0.9") return std::string("a,b");
  return address.to_string() + "@" +
         std::to_string(std::chrono::duration_cast<std::chrono::seconds>(when.after.time_since_epoch()).count());
}

TEST(FlowLog, AddsHoldersBehindTheColumns) {
  auto log = FlowLog::begin("time,src_ip,dst_ip,bytes", {});
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ(log->headings(), "time,src_ip,dst_ip,bytes,src_ip_holder,dst_ip_holder");
  EXPECT_EQ(log->join("1970-01-01T00:01:00Z,10.1.0.7,fd00::1,5", holder_of).value(),
            "1970-01-01T00:01:00Z,10.1.0.7,fd00::1,5,10.1.0.7@60,fd00::1@60");
  EXPECT_EQ(log->join("60,\"10.1.0.9\",none,\"1,5\"\r", holder_of).value(), "60,\"10.1.0.9\",none,\"1,5\",\"a,b\",?");
  EXPECT_EQ(log->join("", holder_of).value(), ",,");
}

TEST(FlowLog, ReadsWhatAwsWrites) {
  auto log = FlowLog::begin("version srcaddr dstaddr start end", {});
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ(log->join("2 10.1.0.7 - 60 70", holder_of).value(), "2 10.1.0.7 - 60 70 10.1.0.7@60 -");
}

TEST(FlowLog, WhatCannotBeReadIsNotNobody) {
  auto log = FlowLog::begin("time,src,bytes", {});
  ASSERT_TRUE(log) << log.error().message;
  const auto joined = [&](const std::string& line) { return log->join(line, holder_of).value().substr(line.size()); };
  EXPECT_EQ(joined("60,10.1.0.7,5"), ",10.1.0.7@60");
  EXPECT_EQ(joined("1970-01-01 00:01:00, 10.1.0.7 ,5"), ",10.1.0.7@60");
  EXPECT_EQ(joined("60,::ffff:10.1.0.7,5"), ",10.1.0.7@60");
  EXPECT_EQ(joined("60,,5"), ",");
  EXPECT_EQ(joined("soon,,5"), ",") << "nothing is asked of it";
  EXPECT_EQ(log->trouble(), "");
  EXPECT_EQ(joined("01/Jan/1970 00:01,10.1.0.7,5"), ",?");
  EXPECT_EQ(log->trouble(), "1 of 6 lines has a time or an address that cannot be read: the first is line 7");
  EXPECT_EQ(joined("60,10.1.0.7:443,5"), ",?");
  EXPECT_EQ(log->trouble(), "2 of 7 lines have a time or an address that cannot be read: the first is line 7");
}

TEST(FlowLog, ACellIsNoFormula) {
  for (const char* const text : {"=1+1", "+1", "-1", "@a", "\tx"}) {
    EXPECT_EQ(csv_cell(text), std::string("'") + text);
  }
  EXPECT_EQ(csv_cell("=a,b"), "\"'=a,b\"");
  EXPECT_EQ(csv_cell("web-0"), "web-0");
}

TEST(FlowLog, AColumnThatIsNotThereIsNamed) {
  EXPECT_NE(FlowLog::begin("time,peer", {}).error().message.find("--address"), std::string::npos);
  EXPECT_NE(FlowLog::begin("when,src", {}).error().message.find("--time"), std::string::npos);
  const auto log = FlowLog::begin("time,src", {"at", {}});
  EXPECT_NE(log.error().message.find("time, src"), std::string::npos) << log.error().message;
  EXPECT_TRUE(FlowLog::begin("when,peer", {"when", {"peer"}}));
}

TEST(FlowLog, TimesAreOfManyKinds) {
  const auto of = [](std::chrono::nanoseconds since_1970, std::chrono::nanoseconds unit) {
    return Moment{WallTime{since_1970}, WallTime{since_1970 + unit - 1ns}};
  };
  EXPECT_EQ(flow_time("60"), of(60s, 1s));
  EXPECT_EQ(flow_time("60.25"), of(60250ms, 10ms));
  EXPECT_EQ(flow_time("60.1234567891"), of(60123456789ns, 1ns));
  EXPECT_EQ(flow_time("1970-01-01T01:01:00+01:00"), of(60s, 1s));
  EXPECT_EQ(flow_time("1970-01-01T00:01:00.250Z"), of(60250ms, 1ms));
  EXPECT_EQ(flow_time("1970-01-01 00:01:00"), of(60s, 1s));
  EXPECT_EQ(flow_time("1970-01-01 00:01:00.250"), of(60250ms, 1ms));
  EXPECT_EQ(flow_time("1970-01-01 01:01:00+01:00"), of(60s, 1s));
  EXPECT_EQ(flow_time("1768471200000"), of(1768471200s, 1ms));
  EXPECT_EQ(flow_time("1768471200000.5"), of(1768471200s + 500us, 100us));
  EXPECT_TRUE(flow_time("9214646399.9"));
  for (const char* const text : {"", "-1", "soon", "1970-01-01", "1970-01-01 00:01", "60.x", "60.-1", "9214646400",
                                 "99999999999", "9214646400000", "99999999999999999999"}) {
    EXPECT_FALSE(flow_time(text)) << text;
  }
}

}  // namespace
}  // namespace croft::edge
