#include "services/decide/node_ports.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/test_messages.h"

// The names in brackets are the rows of docs/notes/service-ranges.md#cases.

namespace croft::core::service {
namespace {

NodePortRange port_range(std::string_view text) { return NodePortRange::parse(text).value(); }
NodePorts ports(std::string_view text) { return NodePorts(port_range(text)); }

std::vector<int> taken_of(const NodePorts& range) {
  std::vector<int> taken;
  range.for_each_taken([&](int port) { taken.push_back(port); });
  return taken;
}

constexpr std::string_view kAllocated = "provided port is already allocated";

TEST(NodePorts, InAndOutside_P1) {
  NodePorts range = ports("10000-10200");
  EXPECT_EQ(range.free_count(), 201U);
  for (const int outside : {1, 9999, 10201, 20000, -2, 0}) {
    const auto refused = range.take(outside);
    EXPECT_EQ(message_of(refused), "provided port is not in the valid range. The range of valid ports is 10000-10200");
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(range.has(outside));
    EXPECT_FALSE(range.give_back(outside));
  }
  EXPECT_TRUE(range.take(10000));
  EXPECT_TRUE(range.take(10200));
  const auto twice = range.take(10200);
  EXPECT_EQ(message_of(twice), kAllocated);
  EXPECT_EQ(twice.error().code, ErrorCode::already_exists);
  EXPECT_EQ(taken_of(range), (std::vector<int>{10000, 10200}));
  EXPECT_EQ(range.free_count(), 199U);
}

TEST(NodePorts, BandOfEachSize_P3_P11) {
  EXPECT_EQ(port_range("30000-30128").band(), 16U);
  const std::pair<int, std::uint32_t> rows[] = {{1, 0},      {10, 0},     {16, 0},     {17, 16},   {128, 16},
                                                {512, 16},   {544, 17},   {1024, 32},  {2048, 64}, {2768, 86},
                                                {4096, 128}, {8192, 128}, {65536, 128}};
  for (const auto& [size, band] : rows) {
    const NodePortRange range = port_range("0-" + std::to_string(size - 1));
    EXPECT_EQ(range.size(), static_cast<std::uint32_t>(size));
    EXPECT_EQ(range.band(), band) << size;
  }
}

TEST(NodePorts, ASnapshotRestoredElsewhere_P4) {
  NodePorts range = ports("200-300");
  SeededRandom random(3);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(range.take_next(random));
  const auto same = range_from<NodePortRange>(range.snapshot());
  ASSERT_TRUE(same);
  EXPECT_EQ(same->range.free_count(), 51U);
  EXPECT_EQ(taken_of(same->range), taken_of(range));
}

TEST(NodePorts, TheBytesOfAnExample) {
  // docs/notes/service-ranges.md#example-b.
  const auto read = range_from<NodePortRange>({"30000-32767", std::string("\1\0\0\0\0\0\0\0\0\0\0", 11)});
  ASSERT_TRUE(read);
  EXPECT_EQ(taken_of(read->range), std::vector<int>{30080});
  EXPECT_EQ(range_from<NodePortRange>({"30000-30006", "\xff"})->beyond, 1U);
}

// ---------------------------------------------------------------- texts

TEST(NodePortRange, Forms_P10) {
  const std::tuple<std::string_view, int, std::uint32_t, std::string_view> rows[] = {
      {"30000-32767", 30000, 2768, "30000-32767"},
      {"30000", 30000, 1, "30000-30000"},
      {"30000+5", 30000, 6, "30000-30005"},
      {"30000+0", 30000, 1, "30000-30000"},
      {" \t30000-30001\n", 30000, 2, "30000-30001"},
      {"0-65535", 0, 65536, "0-65535"},
      {"0", 0, 1, "0-0"},
      {"", 0, 0, ""},
  };
  for (const auto& [text, first, size, printed] : rows) {
    const auto range = NodePortRange::parse(text);
    ASSERT_TRUE(range) << text << ": " << message_of(range);
    EXPECT_EQ(range->first(), first) << text;
    EXPECT_EQ(range->size(), size) << text;
    EXPECT_EQ(range->text(), printed) << text;
  }
}

TEST(NodePortRange, Errors_P10) {
  const std::pair<std::string, std::string> rows[] = {
      {"70000", "the port range cannot be greater than 65535: 70000"},
      {"65536", "the port range cannot be greater than 65535: 65536"},
      {"30000-65536", "the port range cannot be greater than 65535: 30000-65536"},
      {"30000+40000", "the port range cannot be greater than 65535: 30000+40000"},
      {"30000+9223372036854775807", "the port range cannot be greater than 65535: 30000+9223372036854775807"},
      {" 5-4 ", "end port cannot be less than start port: 5-4"},
      {"x", "unable to parse port range: x"},
      {"-5", "unable to parse port range: -5"},
      {"5-", "unable to parse port range: 5-"},
      {"5--4", "unable to parse port range: 5--4"},
      {"1-2+3", "unable to parse port range: 1-2+3"},
      {"30000 - 30001", "unable to parse port range: 30000 - 30001"},
      {"99999999999999999999", "the port range cannot be greater than 65535: 99999999999999999999"},
      // A text that would spoil a line of a log is not repeated as it came.
      {"1-\n2+", "unable to parse port range: \"1-\\x0a2+\""},
  };
  for (const auto& [text, message] : rows) {
    const auto refused = NodePortRange::parse(text);
    EXPECT_EQ(message_of(refused), message) << text;
    if (!refused) {
      EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    }
  }
  EXPECT_LT(message_of(NodePortRange::parse("+-" + std::string(10'000, '7'))).size(), 200U);
}

TEST(NodePortRange, TheFlagHasADefault) {
  EXPECT_EQ(parse_node_port_flag(""), port_range("30000-32767"));
  EXPECT_EQ(parse_node_port_flag(" "), port_range("30000-32767"));
  EXPECT_EQ(parse_node_port_flag("100+9"), port_range("100-109"));
  EXPECT_FALSE(parse_node_port_flag("x"));
}

TEST(NodePorts, ARangeWithoutPorts) {
  NodePorts none{NodePortRange()};
  SeededRandom random(7);
  EXPECT_EQ(message_of(none.take_next(random)), "range is full");
  EXPECT_FALSE(none.take(0));
}

}  // namespace
}  // namespace croft::core::service
