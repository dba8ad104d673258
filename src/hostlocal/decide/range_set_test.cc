#include "hostlocal/decide/range_set.h"

#include <gtest/gtest.h>

#include "hostlocal/decide/test_range_sets.h"

// Numbers in brackets are rows of docs/notes/host-local.md#cases.

namespace croft::core::host_local {
namespace {

using net::Address;

/// The text of the refusal; empty when there is none. All refusals are invalid_argument.
std::string refusal(const std::vector<RangeSpec>& specs) {
  const auto set = RangeSet::make(specs);
  if (set) return "";
  EXPECT_EQ(set.error().code, ErrorCode::invalid_argument);
  return set.error().message;
}

/// "<first>-<last> via <gateway> in <subnet>" of a set of one range.
std::string range_of(const RangeSpec& one) {
  const Range range = make_range(one).value();
  return range.addresses.to_string() + " via " + range.gateway.to_string() + " in " + range.subnet.to_string();
}

// [54, 55]
TEST(RangeSet, FillsInWhatWasNotGiven) {
  EXPECT_EQ(range_of(spec("192.0.2.0/24")), "192.0.2.1-192.0.2.254 via 192.0.2.1 in 192.0.2.0/24");
  EXPECT_EQ(range_of(spec("192.0.2.0/25")), "192.0.2.1-192.0.2.126 via 192.0.2.1 in 192.0.2.0/25");
  EXPECT_EQ(range_of(spec("2001:DB8:1::/64")),
            "2001:db8:1::1-2001:db8:1:0:ffff:ffff:ffff:ffff via 2001:db8:1::1 in 2001:db8:1::/64");
  EXPECT_EQ(range_of(spec("10.1.2.0/24", "10.1.2.9", "10.1.2.20", "10.1.2.30")),
            "10.1.2.9-10.1.2.20 via 10.1.2.30 in 10.1.2.0/24");
}

TEST(RangeSet, WhatIsNeverGiven) {
  const auto text = [](const char* subnet, const std::vector<Address>& gateways = {}) {
    std::string all;
    for (const Address& address : never_given(net::Prefix::parse(subnet).value(), gateways)) {
      all += (all.empty() ? "" : " ") + address.to_string();
    }
    return all;
  };
  const Address far = Address::parse("10.9.9.9").value();
  const Address own = Address::parse("10.1.2.254").value();
  const Address six = Address::parse("fd00::9").value();
  EXPECT_EQ(text("10.1.2.0/24"), "10.1.2.0 10.1.2.1 10.1.2.255");
  EXPECT_EQ(text("10.1.2.0/24", {far, six}), "10.1.2.0 10.1.2.1 10.1.2.255");
  EXPECT_EQ(text("10.1.2.0/24", {far, own}), "10.1.2.0 10.1.2.254 10.1.2.255");
  EXPECT_EQ(text("10.1.2.4/30"), "10.1.2.4 10.1.2.5 10.1.2.7");
  EXPECT_EQ(text("10.1.2.4/31"), "");
  EXPECT_EQ(text("fd00::/64"), "fd00:: fd00::1");
  EXPECT_EQ(text("fd00::/64", {six}), "fd00:: fd00::9");
}

// [92]
TEST(RangeSet, TheSmallestAndTheLargestSubnets) {
  EXPECT_EQ(range_of(spec("10.1.2.4/30")), "10.1.2.5-10.1.2.6 via 10.1.2.5 in 10.1.2.4/30");
  EXPECT_EQ(range_of(spec("2001:db8::4/126")), "2001:db8::5-2001:db8::7 via 2001:db8::5 in 2001:db8::4/126");
  EXPECT_EQ(range_of(spec("0.0.0.0/0")), "0.0.0.1-255.255.255.254 via 0.0.0.1 in 0.0.0.0/0");
  EXPECT_EQ(range_of(spec("::/0")), "::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff via ::1 in ::/0");
}

// docs/notes/host-local.md#h16: small IPv6 values stay IPv6.
TEST(RangeSet, SmallIpv6ValuesStayIpv6) {
  EXPECT_EQ(range_of(spec("::100:0/120")), "::100:1-::100:ff via ::100:1 in ::100:0/120");
}

// [94]
TEST(RangeSet, NetworkAndBroadcastAddressMayBeNamed) {
  EXPECT_EQ(range_of(spec("10.1.2.0/24", "10.1.2.0")), "10.1.2.0-10.1.2.254 via 10.1.2.1 in 10.1.2.0/24");
  EXPECT_EQ(range_of(spec("10.1.2.0/24", "10.1.2.255", "10.1.2.255")),
            "10.1.2.255-10.1.2.255 via 10.1.2.1 in 10.1.2.0/24");
}

// [96]
TEST(RangeSet, TheGatewayIsNotChecked) {
  EXPECT_EQ(range_of(spec("10.1.2.0/24", "", "", "192.168.0.1")), "10.1.2.1-10.1.2.254 via 192.168.0.1 in 10.1.2.0/24");
  EXPECT_EQ(range_of(spec("10.1.2.0/24", "", "", "2001:db8::1")), "10.1.2.1-10.1.2.254 via 2001:db8::1 in 10.1.2.0/24");
}

TEST(RangeSet, MappedAddressesAreUnmapped) {
  EXPECT_EQ(range_of(spec("10.1.2.0/24", "::ffff:10.1.2.9", "::ffff:10.1.2.20", "::ffff:10.1.2.30")),
            "10.1.2.9-10.1.2.20 via 10.1.2.30 in 10.1.2.0/24");
}

// [58, 92]
TEST(RangeSet, RefusesSubnetsThatAreTooSmall) {
  EXPECT_EQ(refusal({spec("192.0.2.0/31")}), "Network 192.0.2.0/31 too small to allocate from");
  EXPECT_EQ(refusal({spec("192.0.2.1/32")}), "Network 192.0.2.1/32 too small to allocate from");
  EXPECT_EQ(refusal({spec("2001:db8::/127")}), "Network 2001:db8::/127 too small to allocate from");
  EXPECT_EQ(refusal({spec("2001:db8::1/128")}), "Network 2001:db8::1/128 too small to allocate from");
  EXPECT_EQ(refusal({spec("::ffff:10.1.2.0/127")}), "Network 10.1.2.0/31 too small to allocate from");
}

// [93]
TEST(RangeSet, RefusesMappedSubnets) {
  EXPECT_EQ(refusal({spec("::ffff:10.1.2.0/120")}), "IPNet IP and Mask version mismatch");
  EXPECT_EQ(refusal({spec("::ffff:10.1.2.3/30")}), "IPNet IP and Mask version mismatch");
}

// [56, 57]
TEST(RangeSet, RefusesHostBits) {
  const std::string text = "Network has host bits set. For a subnet mask of length ";
  EXPECT_EQ(refusal({spec("192.0.2.12/24")}), text + "24 the network address is 192.0.2.0");
  EXPECT_EQ(refusal({spec("192.168.127.0/23")}), text + "23 the network address is 192.168.126.0");
  EXPECT_EQ(refusal({spec("2001:DB8:1::24:19ff:fee1:c44a/64")}), text + "64 the network address is 2001:db8:1::");
  EXPECT_EQ(refusal({spec("2001:DB8:24:19ff::/63")}), text + "63 the network address is 2001:db8:24:19fe::");
}

// [59, 60, 61]
TEST(RangeSet, RefusesEndsOutsideTheSubnet) {
  EXPECT_EQ(refusal({spec("192.0.2.0/24", "192.0.3.0")}), "RangeStart 192.0.3.0 not in network 192.0.2.0/24");
  EXPECT_EQ(refusal({spec("192.0.2.0/24", "", "192.0.4.0")}), "RangeEnd 192.0.4.0 not in network 192.0.2.0/24");
  EXPECT_EQ(refusal({spec("192.0.2.0/24", "192.0.2.50", "192.0.2.40")}),
            "RangeStart 192.0.2.50 not in network 192.0.2.0/24");
  EXPECT_EQ(refusal({spec("192.0.2.0/24", "", "192.0.2.0")}), "RangeEnd 192.0.2.0 not in network 192.0.2.0/24");
  EXPECT_EQ(refusal({spec("10.1.2.0/24", "10.1.2.5", "2001:db8::1")}),
            "RangeEnd 2001:db8::1 not in network 10.1.2.0/24");
  EXPECT_EQ(refusal({spec("2001:db8::/64", "2001:db8::5", "10.0.0.1")}),
            "RangeStart 2001:db8::5 not in network 2001:db8::/64");
  EXPECT_EQ(refusal({spec("::/64", "::5", "10.0.0.1")}), "RangeEnd 10.0.0.1 not in network ::/64");
}

// The reference takes it, and its second ADD hands out 10.1.3.0.
TEST(RangeSet, RefusesAStartBehindTheDefaultEnd) {
  EXPECT_EQ(refusal({spec("10.1.2.0/24", "10.1.2.255")}), "RangeStart 10.1.2.255 not in network 10.1.2.0/24");
}

// [90]
TEST(RangeSet, RefusesWhatIsNotThere) {
  EXPECT_EQ(refusal({}), "empty range set");
  EXPECT_EQ(refusal({RangeSpec()}), "IP <nil> not v4 nor v6");
}

// [50, 51, 68]
TEST(RangeSet, RangesOfASetAreOfOneFamilyAndApart) {
  EXPECT_EQ(refusal({spec("10.1.0.0/22"), spec("10.1.2.0/24")}),
            "subnets 10.1.0.1-10.1.3.254 and 10.1.2.1-10.1.2.254 overlap");
  EXPECT_EQ(refusal({spec("192.168.0.0/20"), spec("192.168.2.0/24")}),
            "subnets 192.168.0.1-192.168.15.254 and 192.168.2.1-192.168.2.254 overlap");
  EXPECT_EQ(refusal({spec("10.1.0.0/22"), spec("2001:db8:5::/64")}), "mixed address families");
  // Families are compared while the ranges are checked one by one.
  EXPECT_EQ(refusal({spec("10.1.0.0/22"), spec("2001:db8:5::/64"), spec("10.1.0.0/31")}), "mixed address families");
  EXPECT_EQ(refusal({spec("10.1.0.0/22"), spec("10.1.0.0/31"), spec("2001:db8:5::/64")}),
            "Network 10.1.0.0/31 too small to allocate from");
}

// [64, 65, 66]: in one set and between sets, both ways.
TEST(RangeSet, OverlapIsOfAddressesNotOfSubnets) {
  const auto overlap = [](const RangeSpec& a, const RangeSpec& b) {
    const RangeSet one = range_set({a});
    const RangeSet other = range_set({b});
    EXPECT_EQ(one.overlaps(other), other.overlaps(one));
    if (one.family() == other.family()) {
      EXPECT_EQ(one.overlaps(other), !RangeSet::make({a, b}));
    }
    return one.overlaps(other);
  };
  EXPECT_FALSE(overlap(spec("10.0.0.0/24"), spec("10.0.1.0/24")));
  EXPECT_FALSE(overlap(spec("0.0.0.0/24"), spec("::/24")));
  EXPECT_TRUE(overlap(spec("10.0.0.0/24"), spec("10.0.0.0/24")));
  EXPECT_TRUE(overlap(spec("10.0.0.0/20"), spec("10.0.1.0/24")));
  EXPECT_FALSE(overlap(spec("10.0.0.0/24", "", "10.0.0.127"), spec("10.0.0.0/24", "10.0.0.128")));
  EXPECT_TRUE(overlap(spec("10.0.0.0/24", "", "10.0.0.127"), spec("10.0.0.0/24", "10.0.0.127")));
}

// [62, 63]
TEST(RangeSet, ContainsWhatLiesBetweenTheEnds) {
  const RangeSet v4 = range_set({spec("192.0.2.0/24", "192.0.2.40", "192.0.2.50", "192.0.2.254")});
  const RangeSet v6 = range_set({spec("2001:DB8:1::/64", "2001:db8:1::40", "2001:db8:1::50")});
  const auto has = [](const RangeSet& set, std::string_view text) { return set.contains(address_or_none(text)); };
  EXPECT_FALSE(has(v4, "192.0.2.39"));
  EXPECT_TRUE(has(v4, "192.0.2.40"));
  EXPECT_TRUE(has(v4, "192.0.2.50"));
  EXPECT_FALSE(has(v4, "192.0.2.51"));
  EXPECT_FALSE(has(v4, "192.0.3.0"));
  EXPECT_FALSE(has(v4, "2001:db8:1::40"));
  EXPECT_FALSE(has(v6, "2001:db8:1::39"));
  EXPECT_TRUE(has(v6, "2001:db8:1::40"));
  EXPECT_TRUE(has(v6, "2001:db8:1::50"));
  EXPECT_FALSE(has(v6, "2001:db8:1::51"));
  EXPECT_FALSE(has(v6, "2001:db8:2::"));
  EXPECT_FALSE(v4.contains(Address()));
}

// [67]
TEST(RangeSet, PrintsItsRangesInOrder) {
  const RangeSet set = range_set({spec("192.168.0.0/24"), spec("172.16.1.0/24")});
  EXPECT_EQ(set.to_string(), "192.168.0.1-192.168.0.254,172.16.1.1-172.16.1.254");
  EXPECT_EQ(set.find(address_or_none("172.16.1.7")), 1U);
  EXPECT_EQ(set.find(address_or_none("192.168.99.99")), std::nullopt);
}

}  // namespace
}  // namespace croft::core::host_local
