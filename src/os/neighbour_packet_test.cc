#include "os/neighbour_packet.h"

#include <rapidcheck.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hex.h"

namespace croft::os {
namespace {

using namespace net::literals;
using Kind = NeighbourSign::Kind;

constexpr net::Mac kOwn{{0x52, 0x54, 0, 1, 2, 3}};
constexpr net::Mac kOther{{0x52, 0x54, 0, 0xa, 0xb, 0xc}};
constexpr ProbeNonce kNonce{1, 2, 3, 4, 5, 6};
constexpr net::Address kV4 = "10.9.0.7"_ip;
constexpr net::Address kV6 = "fd00::12:3456"_ip;

std::vector<std::uint8_t> bytes_of(const std::string& frame) { return {frame.begin(), frame.end()}; }
std::vector<NeighbourSign> all_signs(const std::vector<std::uint8_t>& frame) {
  std::vector<NeighbourSign> all;
  for (const auto& sign : signs_in(frame)) {
    if (sign) all.push_back(*sign);
  }
  return all;
}

// Byte by byte from RFC 826, RFC 4861 §4.3, §4.4, RFC 3971 §5.3.2; the checksums were computed apart.
TEST(NeighbourPacket, TheFramesByteByByte) {
  EXPECT_EQ(hex_of(probe_frame(kV4, kOwn, kNonce)),
            "ffffffffffff"
            "525400010203"
            "0806"
            "0001"
            "0800"
            "06"
            "04"
            "0001"
            "525400010203"
            "00000000"
            "000000000000"
            "0a090007");
  EXPECT_EQ(hex_of(announcement_frame(kV4, kOwn)),
            "ffffffffffff"
            "525400010203"
            "0806"
            "0001"
            "0800"
            "06"
            "04"
            "0001"
            "525400010203"
            "0a090007"
            "000000000000"
            "0a090007");
  EXPECT_EQ(hex_of(probe_frame(kV6, kOwn, kNonce)),
            "3333ff123456"
            "525400010203"
            "86dd"
            "60000000"
            "0020"
            "3a"
            "ff"
            "00000000000000000000000000000000"
            "ff0200000000000000000001ff123456"
            "87"
            "00"
            "fdc1"
            "00000000"
            "fd000000000000000000000000123456"
            "0e01"
            "010203040506");
  EXPECT_EQ(hex_of(announcement_frame(kV6, kOwn)),
            "333300000001"
            "525400010203"
            "86dd"
            "60000000"
            "0020"
            "3a"
            "ff"
            "fd000000000000000000000000123456"
            "ff020000000000000000000000000001"
            "88"
            "00"
            "9f75"
            "20000000"
            "fd000000000000000000000000123456"
            "0201"
            "525400010203");
}

TEST(NeighbourPacket, WhatIsSentIsUnderstood) {
  for (const net::Address& ip : {kV4, kV6}) {
    const auto asked = all_signs(bytes_of(probe_frame(ip, kOther, kNonce)));
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].kind, Kind::asks);
    EXPECT_EQ(asked[0].address, ip);
    EXPECT_EQ(asked[0].mac, kOther);
    EXPECT_EQ(asked[0].nonce, ip.is_v6() ? std::optional(kNonce) : std::nullopt);
    const auto said = all_signs(bytes_of(announcement_frame(ip, kOther)));
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].kind, Kind::has);
    EXPECT_EQ(said[0].address, ip);
    EXPECT_EQ(said[0].mac, kOther);
  }
}

TEST(NeighbourPacket, AnArpReplyAndAnOrdinaryRequestTellOfTheirSender) {
  auto frame = bytes_of(announcement_frame(kV4, kOther));
  frame[38] = 99;  // asks for another one
  ASSERT_EQ(all_signs(frame).size(), 1U);
  EXPECT_EQ(all_signs(frame)[0].address, kV4);
  frame[21] = 2;  // a reply
  ASSERT_EQ(all_signs(frame).size(), 1U);
  EXPECT_EQ(all_signs(frame)[0].kind, Kind::has);
  frame[21] = 3;  // reverse ARP
  EXPECT_TRUE(all_signs(frame).empty());
  // A reply to nobody, from nobody.
  auto probe = bytes_of(probe_frame(kV4, kOther, kNonce));
  probe[21] = 2;
  EXPECT_TRUE(all_signs(probe).empty());
}

TEST(NeighbourPacket, WhatIsMalformedSaysNothing) {
  const auto broken = [](std::vector<std::uint8_t> frame, std::size_t at, std::uint8_t value) {
    frame.at(at) = value;
    return all_signs(frame).empty();
  };
  const auto arp = bytes_of(announcement_frame(kV4, kOther));
  EXPECT_TRUE(broken(arp, 12, 0x81)) << "another protocol: a VLAN's tag begins so";
  EXPECT_TRUE(broken(arp, 15, 6)) << "hardware";
  EXPECT_TRUE(broken(arp, 16, 9)) << "protocol";
  EXPECT_TRUE(broken(arp, 18, 8)) << "length of a MAC";
  EXPECT_TRUE(broken(arp, 19, 16)) << "length of an address";
  EXPECT_TRUE(broken(arp, 22, 0x53)) << "a group's MAC";
  const auto nd = bytes_of(announcement_frame(kV6, kOther));
  EXPECT_TRUE(broken(nd, 14, 0x40)) << "version";
  EXPECT_TRUE(broken(nd, 20, 0)) << "an extension header";
  EXPECT_TRUE(broken(nd, 21, 254)) << "hop limit";
  EXPECT_TRUE(broken(nd, 19, 0x21)) << "longer than the frame";
  EXPECT_TRUE(broken(nd, 55, 1)) << "code";
  EXPECT_TRUE(broken(nd, 57, static_cast<std::uint8_t>(nd[57] ^ 1))) << "checksum";
  EXPECT_TRUE(broken(nd, 79, 0)) << "an option without length";
  for (const auto& whole : {arp, nd}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_TRUE(all_signs({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}).empty()) << size;
    }
  }
  // Ethernet's padding is no part of it.
  auto padded = arp;
  padded.resize(60);
  EXPECT_EQ(all_signs(padded).size(), 1U);
}

TEST(NeighbourPacket, AVlansTagInTheFrameIsPassedOver) {
  for (const net::Address& ip : {kV4, kV6}) {
    auto frame = bytes_of(announcement_frame(ip, kOther));
    const std::uint8_t tag[] = {0x81, 0x00, 0x00, 0x2a};
    frame.insert(frame.begin() + 12, std::begin(tag), std::end(tag));
    EXPECT_TRUE(all_signs(frame).empty());
  }
}

TEST(NeighbourPacket, AnyBytes) {
  EXPECT_TRUE(rc::check("random bytes say nothing that is nobody's", [](std::vector<std::uint8_t> frame) {
    for (const auto& sign : signs_in(frame)) RC_ASSERT((!sign || sign->mac != net::Mac()));
  }));
  EXPECT_TRUE(rc::check("a frame with changed bytes is understood, or says nothing", [] {
    const net::Address ip = *rc::gen::element(kV4, kV6);
    auto frame =
        bytes_of(*rc::gen::arbitrary<bool>() ? probe_frame(ip, kOther, kNonce) : announcement_frame(ip, kOther));
    for (int changes = *rc::gen::inRange(1, 4); changes > 0; --changes) {
      frame[*rc::gen::inRange<std::size_t>(0, frame.size())] = *rc::gen::arbitrary<std::uint8_t>();
    }
    frame.resize(*rc::gen::inRange<std::size_t>(0, frame.size() + 20));
    for (const auto& sign : signs_in(frame)) RC_ASSERT((!sign || (sign->mac.bytes[0] & 1) == 0));
  }));
  EXPECT_TRUE(
      rc::check("what is sent for any address is understood", [](std::array<std::uint8_t, 16> bytes, bool is_v6) {
        bytes[0] = is_v6 ? 0xfd : 10;
        const net::Address ip = *net::Address::of_bytes(std::span(bytes).first(is_v6 ? 16 : 4));
        for (const auto& frame : {probe_frame(ip, kOther, kNonce), announcement_frame(ip, kOther)}) {
          const auto found = all_signs(bytes_of(frame));
          RC_ASSERT(found.size() == 1U);
          RC_ASSERT(found[0].address == ip);
          RC_ASSERT(found[0].mac == kOther);
        }
      }));
}

}  // namespace
}  // namespace croft::os
