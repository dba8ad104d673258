#include "services/decide/service_bitmap.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/clock.h"

// The names in brackets are the rows of docs/notes/service-ranges.md#cases.

namespace croft::core::service {
namespace {

/// "(success)" where there is no error.
template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "(success)" : result.error().message;
}

using space::DenseBitmap;

std::vector<std::uint32_t> taken_of(const DenseBitmap& range) {
  std::vector<std::uint32_t> taken;
  range.for_each_taken([&](Ordinal ordinal) { taken.push_back(ordinal.value); });
  return taken;
}

void take_all(DenseBitmap& range, std::initializer_list<std::uint32_t> ordinals) {
  for (const std::uint32_t ordinal : ordinals) ASSERT_TRUE(range.take(Ordinal{ordinal}));
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

// ---------------------------------------------------------------- the way to find the next

/// Gives the numbers of a list, then zeros.
class Script final : public Random {
 public:
  explicit Script(std::vector<std::uint64_t> numbers) : numbers_(std::move(numbers)) {}
  [[nodiscard]] std::uint64_t next() override { return at_ < numbers_.size() ? numbers_[at_++] : 0; }
  [[nodiscard]] std::size_t drawn() const { return at_; }

 private:
  std::vector<std::uint64_t> numbers_;
  std::size_t at_ = 0;
};

/// The number from which a start `start` of `count` comes: count must be a power of two.
std::uint64_t drawing(std::uint64_t start, std::uint64_t count) {
  return (start * ((std::uint64_t{1} << 32) / count)) << 32;
}

TEST(TakeNext, FirstFreeAtOrAfterTheStartAndRoundInsideTheBand) {
  // 64 in the dynamic band, 16 to 79; 16 in the static one.
  DenseBitmap range(80);
  Script random({drawing(63, 64), drawing(63, 64), drawing(62, 64), drawing(1, 64)});
  EXPECT_EQ(take_next(range, 16, random), Ordinal{79});
  EXPECT_EQ(take_next(range, 16, random), Ordinal{16}) << "round to the beginning of the dynamic band, not to 0";
  EXPECT_EQ(take_next(range, 16, random), Ordinal{78});
  EXPECT_EQ(take_next(range, 16, random), Ordinal{17});

  range.take_all(Ordinal{18}, Ordinal{77});
  Script later({drawing(5, 64), drawing(15, 16), drawing(5, 64), drawing(15, 16)});
  EXPECT_EQ(take_next(range, 16, later), Ordinal{15}) << "a start of its own";
  EXPECT_EQ(take_next(range, 16, later), Ordinal{0}) << "round inside the static band";
  EXPECT_EQ(later.drawn(), 4U);
}

TEST(TakeNext, ARangeOfNothing) {
  DenseBitmap range(0);
  SeededRandom random(7);
  EXPECT_EQ(take_next(range, 0, random), std::nullopt);
  EXPECT_EQ(bytes_of(range), "");
  EXPECT_EQ(read_bytes(bytes({5}), range), 2U);
}

/// "First free at or after a uniform start": an ordinal behind a run of taken ones comes up as often as the run is
/// long, and one more. Seeded, so the counts are the same each time.
TEST(TakeNext, HowOftenEachFreeOneComesUp) {
  constexpr int kTries = 200'000;
  DenseBitmap range(20);
  // Free: 0, 10, 11 and 15. Runs before them: 16-19 (4), 1-9 (9), none, 12-14 (3).
  take_all(range, {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 16, 17, 18, 19});
  std::array<int, 20> times{};
  SeededRandom random(8);
  for (int i = 0; i < kTries; ++i) {
    const auto next = take_next(range, 0, random);
    ASSERT_TRUE(next);
    ++times[next->value];
    ASSERT_TRUE(range.give_back(*next));
  }
  const auto expect_share = [&](std::size_t ordinal, int starts) {
    EXPECT_NEAR(times[ordinal], kTries * starts / 20.0, 1000) << ordinal;
  };
  expect_share(0, 5);
  expect_share(10, 10);
  expect_share(11, 1);
  expect_share(15, 4);
}

// ---------------------------------------------------------------- the bytes

TEST(RangeData, TheExamplesOfTheReference) {
  DenseBitmap services(1048574);
  take_all(services, {0, 9});
  EXPECT_EQ(bytes_of(services), bytes({0x02, 0x01}));
  take_all(services, {1048573});
  EXPECT_EQ(bytes_of(services).size(), 131072U);
  EXPECT_EQ(bytes_of(services).substr(0, 2), bytes({0x20, 0x00}));
  EXPECT_EQ(bytes_of(services).substr(131070), bytes({0x02, 0x01}));

  DenseBitmap ports(2768);
  take_all(ports, {80});
  EXPECT_EQ(bytes_of(ports), bytes({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  take_all(ports, {443, 2767});
  EXPECT_EQ(bytes_of(ports).size(), 346U);
  EXPECT_EQ(bytes_of(ports).substr(0, 1), bytes({0x80}));
}

TEST(RangeData, BitsOutsideAreCountedAndLeftOut) {
  // 130 ordinals: two words and two bits. Bits 129, 130 and 131, and 8 in a fourth word.
  DenseBitmap range(130);
  std::string data(32, '\0');
  data[32 - 1 - 129 / 8] = static_cast<char>(1 << 129 % 8 | 1 << 130 % 8 | 1 << 131 % 8);
  data[0] = static_cast<char>(0xff);
  EXPECT_EQ(read_bytes(data, range), 10U);
  EXPECT_EQ(taken_of(range), std::vector<std::uint32_t>{129});
  EXPECT_EQ(range.free_count(), 129U);
  EXPECT_EQ(bytes_of(range).size(), 17U);
  EXPECT_EQ(read_bytes(bytes_of(range), range), 0U);
}

/// The integer of the bytes, bit by bit, and its bytes again: slow, and plainly right.
std::string model_bytes(const std::set<std::uint32_t>& taken) {
  if (taken.empty()) return {};
  std::string data(*taken.rbegin() / 8 + 1, '\0');
  for (const std::uint32_t o : taken) {
    char& byte = data[data.size() - 1 - o / 8];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | 1U << o % 8);
  }
  return data;
}

RC_GTEST_PROP(TakeNextProperty, TakesAFreeOneOfTheDynamicBandWhileThereIsOne, ()) {
  const std::uint32_t size = *rc::gen::element<std::uint32_t>(1, 8, 63, 64, 65, 130, 1000, 4097);
  const std::uint32_t band = *rc::gen::element<std::uint32_t>(0, 1, 16, 64, 100);
  DenseBitmap range(size);
  const std::uint32_t border = std::min(band, size);
  std::set<std::uint32_t> taken;
  SeededRandom random(*rc::gen::arbitrary<std::uint64_t>());
  const int steps = *rc::gen::inRange(1, 80);
  for (int step = 0; step < steps; ++step) {
    const auto place = *rc::gen::inRange<std::uint32_t>(0, size);
    if (taken.erase(place) == 1) RC_ASSERT(range.give_back(Ordinal{place}));
    const int times = *rc::gen::element(1, 3, 70, 5000);
    for (int i = 0; i < times; ++i) {
      const bool dynamic_is_full =
          static_cast<std::uint32_t>(std::distance(taken.lower_bound(border), taken.end())) == size - border;
      const auto next = take_next(range, band, random);
      RC_ASSERT(next.has_value() == (taken.size() < size));
      if (!next) break;
      RC_ASSERT(next->value < size);
      RC_ASSERT(dynamic_is_full == (next->value < border));
      RC_ASSERT(taken.insert(next->value).second);
    }
  }
  RC_ASSERT(taken_of(range) == std::vector<std::uint32_t>(taken.begin(), taken.end()));
  RC_ASSERT(bytes_of(range) == model_bytes(taken));
}

RC_GTEST_PROP(RangeDataProperty, AnyBytesAreReadAsTheirNumber, (const std::string& data)) {
  const std::uint32_t size = *rc::gen::element<std::uint32_t>(0, 1, 63, 64, 65, 200, 5000);
  std::set<std::uint32_t> inside;
  std::uint64_t beyond = 0;
  for (std::uint32_t o = 0; o < data.size() * 8; ++o) {
    if ((static_cast<unsigned char>(data[data.size() - 1 - o / 8]) >> o % 8 & 1) == 0) continue;
    if (o < size) {
      inside.insert(o);
    } else {
      ++beyond;
    }
  }
  DenseBitmap range(size);
  RC_ASSERT(read_bytes(data, range) == beyond);
  RC_ASSERT(bytes_of(range) == model_bytes(inside));
  RC_ASSERT(size - range.free_count() == inside.size());
}

}  // namespace
}  // namespace croft::core::service

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

// The names in brackets are the rows of docs/notes/service-ranges.md#cases.

namespace {

using namespace net::literals;
using net::Address;
using net::Prefix;

ServiceCidr cidr(std::string_view text) { return ServiceCidr::parse(text).value(); }
ServiceAddresses addresses(std::string_view text) { return ServiceAddresses(cidr(text)); }

std::vector<Address> taken_of(const ServiceAddresses& range) {
  std::vector<Address> taken;
  range.for_each_taken([&](const Address& address) { taken.push_back(address); });
  return taken;
}

std::string fill(ServiceAddresses& range, Random& random) {
  while (true) {
    if (const auto next = range.take_next(random); !next) return next.error().message;
  }
}

TEST(ServiceAddresses, SizeAndBandOfEachLength) {
  struct Row {
    Prefix prefix;
    std::uint32_t size;
    std::uint32_t band;
    std::size_t bytes;  // of a full bitmap
  };
  const Row rows[] = {
      {"10.0.0.0/12"_prefix, 1048574, 256, 131072},
      {"10.0.0.0/14"_prefix, 262142, 256, 32768},
      {"10.0.0.0/16"_prefix, 65534, 256, 8192},
      {"10.0.0.0/18"_prefix, 16382, 256, 2048},
      {"10.0.0.0/20"_prefix, 4094, 256, 512},
      {"10.0.0.0/21"_prefix, 2046, 128, 256},
      {"10.0.0.0/22"_prefix, 1022, 64, 128},
      {"10.0.0.0/23"_prefix, 510, 32, 64},
      {"10.0.0.0/24"_prefix, 254, 16, 32},
      {"10.0.0.0/25"_prefix, 126, 16, 16},
      {"10.0.0.0/26"_prefix, 62, 16, 8},
      {"10.0.0.0/27"_prefix, 30, 16, 4},
      {"10.0.0.0/28"_prefix, 14, 0, 2},
      {"10.0.0.0/29"_prefix, 6, 0, 1},
      {"10.0.0.0/30"_prefix, 2, 0, 1},
      {"10.0.0.0/31"_prefix, 0, 0, 0},
      {"10.0.0.0/32"_prefix, 0, 0, 0},
      {"fd00::/12"_prefix, 65535, 256, 8192},
      {"fd00::/64"_prefix, 65535, 256, 8192},
      {"fd00::/65"_prefix, 65535, 256, 8192},
      {"fd00::/108"_prefix, 65535, 256, 8192},
      {"fd00::/112"_prefix, 65535, 256, 8192},
      {"fd00::/113"_prefix, 32767, 256, 4096},
      {"fd00::/116"_prefix, 4095, 256, 512},
      {"fd00::/118"_prefix, 1023, 64, 128},
      {"fd00::/120"_prefix, 255, 16, 32},
      {"fd00::/121"_prefix, 127, 16, 16},
      {"fd00::/122"_prefix, 63, 16, 8},
      {"fd00::/123"_prefix, 31, 16, 4},
      {"fd00::/124"_prefix, 15, 0, 2},
      {"fd00::/125"_prefix, 7, 0, 1},
      {"fd00::/126"_prefix, 3, 0, 1},
      {"fd00::/127"_prefix, 1, 0, 1},
      {"fd00::/128"_prefix, 0, 0, 0},
  };
  SeededRandom random(1);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.prefix.to_string());
    ServiceAddresses range(ServiceCidr::make(row.prefix).value());
    EXPECT_EQ(range.map().size(), row.size);
    EXPECT_EQ(range.map().band(), row.band);
    EXPECT_EQ(range.free_count(), row.size);
    EXPECT_EQ(fill(range, random), "range is full");
    EXPECT_EQ(range.snapshot().data.size(), row.bytes);
  }
}

TEST(ServiceAddresses, AllButNetworkAndBroadcast_I1) {
  ServiceAddresses range = addresses("192.168.1.0/24");
  EXPECT_EQ(range.free_count(), 254U);
  for (std::uint32_t i = 1; i <= 254; ++i) {
    const Address address = Address::v4(0xc0a80100 + i);
    EXPECT_TRUE(range.take(address)) << address.to_string();
    EXPECT_EQ(range.map().value_at(*range.map().ordinal_of(address)), address);
  }
  EXPECT_EQ(range.free_count(), 0U);
  EXPECT_EQ(taken_of(range).front(), "192.168.1.1"_ip);
  EXPECT_EQ(taken_of(range).back(), "192.168.1.254"_ip);
}

TEST(ServiceAddresses, NotInRange_I2) {
  ServiceAddresses range = addresses("192.168.1.0/24");
  for (const Address& outside : {"192.168.1.0"_ip, "192.168.1.255"_ip, "192.168.0.1"_ip, "192.168.2.2"_ip,
                                 "10.0.0.5"_ip, "fd00::1"_ip, "::"_ip}) {
    const auto refused = range.take(outside);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(refused.error().message, "the provided IP (" + outside.to_string() +
                                           ") is not in the valid range. The range of valid IPs is 192.168.1.0/24");
    EXPECT_FALSE(range.has(outside));
  }
  EXPECT_EQ(message_of(range.take(Address())),
            "the provided IP (<nil>) is not in the valid range. The range of valid IPs is 192.168.1.0/24");
  EXPECT_EQ(range.free_count(), 254U);
}

TEST(ServiceAddresses, AMappedAddressIsTheIpv4One) {
  ServiceAddresses range = addresses("192.168.1.0/24");
  EXPECT_TRUE(range.take("::ffff:192.168.1.7"_ip));
  EXPECT_EQ(taken_of(range), std::vector<Address>{"192.168.1.7"_ip});
  EXPECT_EQ(message_of(range.take("::ffff:10.0.0.5"_ip)),
            "the provided IP (10.0.0.5) is not in the valid range. The range of valid IPs is 192.168.1.0/24");
}

TEST(ServiceAddresses, OnlyTheFirst65535OfALargeIpv6Prefix_I4) {
  ServiceAddresses range = addresses("2001:db8:1::/48");
  EXPECT_EQ(range.free_count(), 65535U);
  for (const Address& outside : {"::"_ip, "2001:db8:1::"_ip, "2001:db8:1::1:0"_ip, "2001:db8:1:1::"_ip}) {
    const char* more = outside == "::"_ip ? "" : ", of which the first 65535 can be given";
    EXPECT_EQ(message_of(range.take(outside)), "the provided IP (" + outside.to_string() +
                                                   ") is not in the valid range. The range of valid IPs is "
                                                   "2001:db8:1::/48" +
                                                   more);
  }
  EXPECT_TRUE(range.take("2001:db8:1::ffff"_ip));
  EXPECT_TRUE(range.take("2001:db8:1::1"_ip));
}

TEST(ServiceAddresses, TheBytesOfTheExample_I16) {
  const std::string data = "\x08\x02\x01";
  const auto read = range_from<ServiceCidr>({"10.0.0.0/24", data, nullptr});
  ASSERT_TRUE(read);
  EXPECT_EQ(taken_of(read->range), (std::vector<Address>{"10.0.0.1"_ip, "10.0.0.10"_ip, "10.0.0.20"_ip}));
  EXPECT_EQ(read->range.snapshot(), (RangeAllocation{"10.0.0.0/24", data, nullptr}));
}

TEST(ServiceCidr, WhatItRefuses) {
  EXPECT_EQ(message_of(ServiceCidr::parse("10.0.0.0/11")),
            "service address range 10.0.0.0/11 is too large for a bitmap; the mask must be >= 12, or the addresses be "
            "kept as "
            "objects (Kubernetes 1.33 and newer)");
  EXPECT_FALSE(ServiceCidr::parse("::ffff:10.0.0.0/120"));
  EXPECT_FALSE(ServiceCidr::parse(""));
  EXPECT_FALSE(ServiceCidr::parse("10.0.0.0"));
  EXPECT_FALSE(range_from<ServiceCidr>({"30000-32767", "", nullptr}));
  EXPECT_EQ(cidr("10.1.2.3/24").text(), "10.1.2.0/24");
}

TEST(ServiceCidrs, Flag) {
  EXPECT_EQ(parse_service_cidrs(""), (ServiceCidrs{"10.0.0.0/24"_prefix, {}}));
  EXPECT_EQ(parse_service_cidrs("10.96.0.0/12"), (ServiceCidrs{"10.96.0.0/12"_prefix, {}}));
  EXPECT_EQ(parse_service_cidrs("10.96.7.1/16"), (ServiceCidrs{"10.96.0.0/16"_prefix, {}}));
  EXPECT_EQ(parse_service_cidrs("10.096.0.0/012"), (ServiceCidrs{"10.96.0.0/12"_prefix, {}})) << "as ParseCIDRSloppy";
  EXPECT_EQ(parse_service_cidrs("10.0.0.0/29"), (ServiceCidrs{"10.0.0.0/29"_prefix, {}}));
  EXPECT_EQ(parse_service_cidrs("fd00::/108,10.96.0.0/12"), (ServiceCidrs{"fd00::/108"_prefix, "10.96.0.0/12"_prefix}));
  EXPECT_EQ(parse_service_cidrs("10.0.0.0/24,fd00::/128"), (ServiceCidrs{"10.0.0.0/24"_prefix, "fd00::/128"_prefix}));
}

TEST(ServiceCidrs, ErrorsOfTheFlag) {
  const std::string too_small =
      "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 "
      "IP "
      "addresses";
  const std::pair<std::string_view, std::string> rows[] = {
      {"nonsense", "service-cluster-ip-range[0] is not a valid cidr"},
      {",", "service-cluster-ip-range[0] is not a valid cidr"},
      {"10.0.0.0", "service-cluster-ip-range[0] is not a valid cidr"},
      {" 10.0.0.0/24", "service-cluster-ip-range[0] is not a valid cidr"},
      {"::ffff:10.0.0.0/120", "service-cluster-ip-range[0] is not a valid cidr"},
      {"10.0.0.0/24,", "service-cluster-ip-range[1] is not an ip net"},
      {"10.0.0.0/24, fd00::/112", "service-cluster-ip-range[1] is not an ip net"},
      {"10.0.0.0/30", too_small},
      {"fd00::/126", too_small},
      {"0.0.0.0/0", too_small},
      {"::/1,10.0.0.0/8", too_small},
      {"10.0.0.0/24,10.1.0.0/24",
       "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"},
      {"10.0.0.0/24,fd00::/112,10.1.0.0/24", "--service-cluster-ip-range must not contain more than two entries"},
      {"10.0.0.0/24,fd00::/112,", "--service-cluster-ip-range must not contain more than two entries"},
  };
  for (const auto& [flag, text] : rows) {
    const auto refused = parse_service_cidrs(flag);
    EXPECT_EQ(message_of(refused), text) << flag;
    if (!refused) {
      EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    }
  }
}

/// kubernetes/kubernetes#138374: addresses that are objects have no bound at /108.
TEST(ServiceCidrs, NoRangeIsTooLargeToBeNamed) {
  for (const char* flag :
       {"fd22:ff0::/64", "fd00::/48", "10.0.0.0/8", "10.0.0.0/24,fd00::/64", "fd00::/107,10.0.0.0/11"}) {
    EXPECT_TRUE(parse_service_cidrs(flag)) << flag;
  }
}

}  // namespace

}  // namespace croft::core::service
