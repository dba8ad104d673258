#include "services/decide/service_addresses.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/test_messages.h"

// The names in brackets are the rows of docs/notes/service-ranges.md#cases.

namespace croft::core::service {
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

/// Takes `count` next ones and tells which.
std::set<Address> take_next(ServiceAddresses& range, Random& random, int count) {
  std::set<Address> taken;
  for (int i = 0; i < count; ++i) {
    const auto next = range.take_next(random);
    EXPECT_TRUE(next) << message_of(next);
    if (next) {
      EXPECT_TRUE(taken.insert(*next).second);
    }
  }
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
    EXPECT_EQ(service_address_count(row.prefix), row.size);
    EXPECT_EQ(service_band(row.prefix), row.band);
    ServiceAddresses range(ServiceCidr::make(row.prefix).value());
    EXPECT_EQ(range.free_count(), row.size);
    EXPECT_EQ(fill(range, random), "range is full");
    EXPECT_EQ(range.snapshot().data.size(), row.bytes);
  }
}

TEST(ServiceAddresses, TheBandFormulaBeyondWhatARangeMayBe_I15) {
  const std::pair<Prefix, std::uint32_t> rows[] = {
      {"10.0.0.1/32"_prefix, 0},
      {"10.0.0.0/30"_prefix, 0},
      {"10.0.0.0/28"_prefix, 0},
      {"10.0.0.0/27"_prefix, 16},
      {"10.0.0.0/22"_prefix, 64},
      {"10.0.0.0/8"_prefix, 256},
      {"fd00::1/128"_prefix, 0},
      {"fd00::/126"_prefix, 0},
      {"fd00::/124"_prefix, 0},
      {"fd00::/122"_prefix, 16},
      {"fd00::/118"_prefix, 64},
      {"fd00::/12"_prefix, 256},
      // Half a family and more has no size, in the reference too.
      {"0.0.0.0/1"_prefix, 0},
      {"0.0.0.0/0"_prefix, 0},
      {"::/1"_prefix, 0},
      {"::/0"_prefix, 0},
      {"0.0.0.0/2"_prefix, 256},
      {"::/2"_prefix, 256},
  };
  for (const auto& [prefix, band] : rows) EXPECT_EQ(service_band(prefix), band) << prefix.to_string();
  EXPECT_EQ(service_address_count("0.0.0.0/1"_prefix), 0U);
  EXPECT_EQ(service_address_count("0.0.0.0/2"_prefix), (1U << 30) - 2);
  EXPECT_EQ(service_address_count("::/1"_prefix), 0U);
  EXPECT_EQ(service_address_count("::/2"_prefix), 65535U);
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

TEST(ServiceAddresses, TheLastOfAnIpv6PrefixIsUsable_I5) {
  ServiceAddresses range = addresses("fd00:10:96::/112");
  EXPECT_TRUE(range.take("fd00:10:96::ffff"_ip));
  EXPECT_EQ(range.map().ordinal_of("fd00:10:96::ffff"_ip), Ordinal{65534});
  EXPECT_FALSE(range.take("fd00:10:96::"_ip));
}

TEST(ServiceAddresses, SizesOfOddPrefixes_I6_I7) {
  SeededRandom random(4);
  EXPECT_EQ(addresses("10.0.0.0/15").free_count(), 131070U);
  EXPECT_EQ(addresses("192.168.1.240/30").free_count(), 2U);
  ServiceAddresses one = addresses("192.168.1.1/32");
  EXPECT_EQ(one.free_count(), 0U);
  EXPECT_EQ(message_of(one.take_next(random)), "range is full");
  EXPECT_FALSE(one.take("192.168.1.1"_ip));
}

TEST(ServiceAddresses, TheDynamicBandFirst_I8) {
  ServiceAddresses range = addresses("192.168.1.0/25");
  SeededRandom random(5);
  const std::set<Address> dynamic = take_next(range, random, 110);
  EXPECT_EQ(*dynamic.begin(), "192.168.1.17"_ip);
  EXPECT_EQ(*dynamic.rbegin(), "192.168.1.126"_ip);
  const std::set<Address> rest = take_next(range, random, 16);
  EXPECT_EQ(*rest.begin(), "192.168.1.1"_ip);
  EXPECT_EQ(*rest.rbegin(), "192.168.1.16"_ip);
  EXPECT_EQ(message_of(range.take_next(random)), "range is full");
}

/// The broadcast address of a /24, and one far above: the reference counts both and shows fewer free ones.
TEST(ServiceAddresses, DamageIsCountedNotTaken) {
  std::string data(33, '\0');
  data[32 - 254 / 8] = static_cast<char>(1 << 254 % 8 | 1 << 253 % 8);
  data[0] = 1;
  const auto read = range_from<ServiceCidr>({"10.0.0.0/24", data});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->beyond, 2U);
  EXPECT_EQ(taken_of(read->range), std::vector<Address>{"10.0.0.254"_ip});
  EXPECT_EQ(read->range.free_count(), 253U);
}

TEST(ServiceAddresses, GivingBackWhatIsNotInTheRange_I11) {
  ServiceAddresses range = addresses("192.168.1.0/24");
  ASSERT_TRUE(range.take("192.168.1.1"_ip));
  EXPECT_FALSE(range.give_back("10.0.0.1"_ip));
  EXPECT_FALSE(range.give_back("192.168.1.0"_ip));
  EXPECT_FALSE(range.give_back(Address()));
  EXPECT_EQ(range.taken_count(), 1U);
}

TEST(ServiceAddresses, TheBytesOfTheExample_I16) {
  const std::string data = "\x08\x02\x01";
  const auto read = range_from<ServiceCidr>({"10.0.0.0/24", data});
  ASSERT_TRUE(read);
  EXPECT_EQ(taken_of(read->range), (std::vector<Address>{"10.0.0.1"_ip, "10.0.0.10"_ip, "10.0.0.20"_ip}));
  EXPECT_EQ(read->range.snapshot(), (RangeSnapshot{"10.0.0.0/24", data}));
}

TEST(ServiceCidr, WhatItRefuses) {
  EXPECT_EQ(message_of(ServiceCidr::parse("10.0.0.0/11")),
            "service address range 10.0.0.0/11 is too large for a bitmap; the mask must be >= 12, or the addresses be "
            "kept as "
            "objects (Kubernetes 1.33 and newer)");
  EXPECT_FALSE(ServiceCidr::parse("::ffff:10.0.0.0/120"));
  EXPECT_FALSE(ServiceCidr::parse(""));
  EXPECT_FALSE(ServiceCidr::parse("10.0.0.0"));
  EXPECT_FALSE(range_from<ServiceCidr>({"30000-32767", ""}));
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
