#include "base/net/address.h"

#include <arpa/inet.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/arbitrary.h"

namespace croft::net {

namespace {

using namespace literals;

static_assert(std::is_trivially_copyable_v<Address> && sizeof(Address) == 24);
static_assert(!Address{}.is_valid() && Address{} != "0.0.0.0"_ip && Address{} != "::"_ip);
static_assert(Address{} < "0.0.0.0"_ip && "255.255.255.255"_ip < "::"_ip, "invalid, then IPv4, then IPv6");
static_assert("10.0.0.1"_ip == Address::v4(0x0a000001) && "10.0.0.1"_ip.family() == Family::v4);
static_assert("2001:db8::1"_ip == Address::v6(U128{0x20010db800000000, 1}) && "::"_ip.is_v6());
static_assert("::ffff:10.0.0.1"_ip.is_v4_mapped() && "::ffff:10.0.0.1"_ip != "10.0.0.1"_ip);
static_assert("::ffff:10.0.0.1"_ip.unmapped() == "10.0.0.1"_ip && "::10.0.0.1"_ip.unmapped() == "::a00:1"_ip);
static_assert(!parse_address("10.0.0") && !parse_address("::1%lo"));
static_assert("0.0.0.255"_ip.next() == "0.0.1.0"_ip && "::1:0:0:0:0"_ip.previous() == "::ffff:ffff:ffff:ffff"_ip);
static_assert(bit_length(Family::v4) == 32 && bit_length(Family::v6) == 128 && name_of(Family::v6) == "IPv6");

TEST(Address, PrintsTheOneFormOfEachAddress) {
  const std::pair<const char*, const char*> cases[] = {
      {"0.0.0.0", "0.0.0.0"},
      {"255.255.255.255", "255.255.255.255"},
      {"10.0.20.3", "10.0.20.3"},
      {"::", "::"},
      {"0:0:0:0:0:0:0:0", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"2001:DB8::0001", "2001:db8::1"},
      {"0001:0002:0003:0004:0005:0006:0007:0008", "1:2:3:4:5:6:7:8"},
      // RFC 5952 §4.2.2: one zero group is not shortened.
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
      {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
      {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
      {"1:2:3::5:6:7:8", "1:2:3:0:5:6:7:8"},
      // §4.2.3: the longest run, and the first of equals.
      {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
      {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
      {"0:0:1:0:0:1:0:0", "::1:0:0:1:0:0"},
      {"1:0:0:2:3:0:0:0", "1:0:0:2:3::"},
      {"0:0:0:1:0:0:0:0", "0:0:0:1::"},
      // A dotted quad is read and never printed.
      {"2001:db8::1.2.3.4", "2001:db8::102:304"},
      {"::ffff:10.1.2.3", "::ffff:a01:203"},
      {"::10.1.2.3", "::a01:203"},
      {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
      {"1:2:3:4:5:6:0.0.0.0", "1:2:3:4:5:6::"},
      {"1:2:3:4:5::1.2.3.4", "1:2:3:4:5:0:102:304"},
      {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
  };
  for (const auto& [text, printed] : cases) {
    const auto address = Address::parse(text);
    ASSERT_TRUE(address) << text << ": " << address.error().message;
    EXPECT_EQ(address->to_string(), printed) << text;
  }
  EXPECT_EQ(Address{}.to_string(), "invalid");
}

TEST(Address, RefusalsSayWhyAndWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"", R"(the text is empty)"},
      {" ", R"(neither an IPv4 nor an IPv6 address (at " "))"},
      {"localhost", R"(neither an IPv4 nor an IPv6 address (at "localhost"))"},
      {"1", R"(neither an IPv4 nor an IPv6 address (at "1"))"},
      {"eth0%1", R"(a zone is not allowed (at "%1"))"},
      {"1.2.3", R"(an IPv4 address has four octets)"},
      {"1.2.3.4.5", R"(an IPv4 address has four octets (at ".5"))"},
      {"1.2.3.", R"(an octet of an IPv4 address has no digits)"},
      {"1.2.3.4.", R"(an IPv4 address has four octets (at "."))"},
      {".1.2.3", R"(an octet of an IPv4 address has no digits (at ".1.2.3"))"},
      {"1..2.3", R"(an octet of an IPv4 address has no digits (at ".2.3"))"},
      {"10.0.0.256", R"(an octet of an IPv4 address is above 255 (at "6"))"},
      {"10.0.0.1000", R"(an octet of an IPv4 address is above 255 (at "0"))"},
      {"10.00.0.1", R"(an octet of an IPv4 address has a leading zero (at "0.0.1"))"},
      {"010.0.0.1", R"(an octet of an IPv4 address has a leading zero (at "10.0.0.1"))"},
      {"10.0.0.1 ", R"(unexpected character (at " "))"},
      {" 10.0.0.1", R"(an octet of an IPv4 address has no digits (at " 10.0.0.1"))"},
      {"10.0.0.1/24", R"(unexpected character (at "/24"))"},
      {"10.0.0.1%eth0", R"(unexpected character (at "%eth0"))"},
      {"10.-1.0.1", R"(an octet of an IPv4 address has no digits (at "-1.0.1"))"},
      {"0x10.0.0.1", R"(unexpected character (at "x10.0.0.1"))"},
      {":", R"(a group of an IPv6 address has no digits (at ":"))"},
      {":1", R"(a group of an IPv6 address has no digits (at ":1"))"},
      {":::", R"(a group of an IPv6 address has no digits (at ":"))"},
      {"1:", R"(a single colon ends the IPv6 address (at ":"))"},
      {"1:2:3:4:5:6:7:", R"(a single colon ends the IPv6 address (at ":"))"},
      {"1:2:3:4:5:6:7", R"(an IPv6 address without "::" has eight groups)"},
      {"1:2:3:4:5:6:7:8:9", R"(an IPv6 address has at most eight groups (at "9"))"},
      {"1:2:3:4:5:6:7:8:", R"(a single colon ends the IPv6 address (at ":"))"},
      {"1:2:3:4:5:6:7:8::", R"("::" must stand for at least one group)"},
      {"::1:2:3:4:5:6:7:8", R"("::" must stand for at least one group)"},
      {"1::2::3", R"(an IPv6 address has at most one "::" (at ":3"))"},
      {"fe80::12345", R"(a group of an IPv6 address has more than four digits (at "5"))"},
      {"fe80::g", R"(unexpected character (at "g"))"},
      {"fe80::1%eth0", R"(a zone is not allowed (at "%eth0"))"},
      {"[::1]", R"(unexpected character (at "[::1]"))"},
      {"::1 ", R"(unexpected character (at " "))"},
      {"::1.2.3", R"(an IPv4 address has four octets)"},
      {"::01.2.3.4", R"(an octet of an IPv4 address has a leading zero (at "1.2.3.4"))"},
      {"::a.2.3.4", R"(an octet of an IPv4 address has no digits (at "a.2.3.4"))"},
      {"::1.2.3.4:5", R"(unexpected character (at ":5"))"},
      {"1:2:3:4:5:1.2.3.4", R"(an embedded IPv4 address must stand for the last two of eight groups (at "1.2.3.4"))"},
      {"1:2:3:4:5:6:7:1.2.3.4",
       R"(an embedded IPv4 address must stand for the last two of eight groups (at "1.2.3.4"))"},
      {"1:2:3:4:5:6::1.2.3.4", R"("::" must stand for at least one group)"},
  };
  for (const auto& [text, expected] : cases) {
    const auto address = Address::parse(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(address.error().message, "invalid IP address \"" + std::string(text) + "\": " + expected);
  }
}

TEST(Address, AHostileTextIsEscapedAndCutInTheMessage) {
  const auto control = Address::parse(std::string_view("1.2.3.4\0\n\x1b[31m\xc3\xa9", 16));
  ASSERT_FALSE(control);
  EXPECT_EQ(
      control.error().message,
      R"(invalid IP address "1.2.3.4\x00\x0a\x1b[31m\xc3\xa9": unexpected character (at "\x00\x0a\x1b[31m\xc3\xa9"))");

  const auto long_text = Address::parse("::" + std::string(1000000, 'x'));
  ASSERT_FALSE(long_text);
  EXPECT_LT(long_text.error().message.size(), 250U);
}

TEST(Address, NeighboursEndWithTheFamily) {
  EXPECT_EQ("255.255.255.255"_ip.next(), std::nullopt);
  EXPECT_EQ("0.0.0.0"_ip.previous(), std::nullopt);
  EXPECT_EQ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"_ip.next(), std::nullopt);
  EXPECT_EQ("::"_ip.previous(), std::nullopt);
  EXPECT_EQ("::ffff:ffff"_ip.next(), "::1:0:0"_ip);
}

TEST(Address, TheHashTellsFamiliesApart) {
  const std::unordered_set<Address> set{Address{}, "0.0.0.0"_ip, "::"_ip, "0.0.0.1"_ip, "::1"_ip, "::1"_ip};
  EXPECT_EQ(set.size(), 5U);
  EXPECT_NE(std::hash<Address>{}("0.0.0.1"_ip), std::hash<Address>{}("::1"_ip));
}

TEST(AddressDeathTest, AnInvalidAddressHasNoFamily) {
  EXPECT_DEATH(static_cast<void>(Address{}.family()), "is_valid");
  EXPECT_DEATH(static_cast<void>(Address::from(Family::v4, U128{0x100000000U})), "low_bits");
}

// Address::parse against the system's own reader, inet_pton of glibc. Both accept exactly the same texts, in both
// families: glibc, too, refuses leading zeros in octets, "::" for no group, and more than four digits in a group. Two
// differences lie outside the texts compared: inet_pton stops at a NUL byte, and it never takes a zone.

std::optional<Address> system_parse(const std::string& text) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) return Address::of_bytes(std::span(bytes).first(4));
  if (inet_pton(AF_INET6, text.c_str(), bytes) == 1) return Address::of_bytes(bytes);
  return std::nullopt;
}

std::optional<Address> croft_parse(const std::string& text) {
  const auto address = Address::parse(text);
  return address ? std::optional(*address) : std::nullopt;
}

std::string both(const std::string& text) {
  const auto show = [](const std::optional<Address>& a) { return a ? a->to_string() : "refused"; };
  return fmt::format("{}: croft {}, system {}", text, show(croft_parse(text)), show(system_parse(text)));
}

void expect_same(const std::string& text) { EXPECT_EQ(croft_parse(text), system_parse(text)) << both(text); }

TEST(AddressAgainstSystem, AgreesOnEveryShortTextOfTheseCharacters) {
  constexpr std::string_view kCharacters = "012:.f";
  constexpr std::size_t kSizeMax = 7;
  std::vector<std::string> texts{""};
  for (std::size_t begin = 0, size = 0; size < kSizeMax; ++size) {
    const std::size_t end = texts.size();
    for (; begin < end; ++begin) {
      for (const char c : kCharacters) texts.push_back(texts[begin] + c);
    }
  }
  for (const std::string& text : texts) {
    if (croft_parse(text) != system_parse(text)) ADD_FAILURE() << both(text);
  }
}

/// An IPv6 text of `groups` groups with `::` in front of group `gap` (no gap when negative) and, at the end, `tail`.
std::string v6_shape(int groups, int gap, const std::string& group, const std::string& tail) {
  std::string text;
  for (int i = 0; i <= groups; ++i) {
    const bool at_end = i == groups;
    if (i == gap) {
      text += "::";
    } else if (i > 0 && (!at_end || !tail.empty())) {
      text += ":";
    }
    text += at_end ? tail : group;
  }
  return text;
}

TEST(AddressAgainstSystem, AgreesOnEveryShapeOfIpv6) {
  for (int groups = 0; groups <= 10; ++groups) {
    for (int gap = -1; gap <= groups; ++gap) {
      for (const char* group : {"0", "1", "ffff", "0001", "00001", "1:", ":", "1.2.3.4"}) {
        for (const char* tail :
             {"", "1.2.3.4", "1.2.3", "1.2.3.256", "01.2.3.4", "1.2.3.4.5", ":", "::", "g", "abcd."}) {
          expect_same(v6_shape(groups, gap, group, tail));
        }
      }
    }
  }
}

TEST(AddressAgainstSystem, AgreesOnEveryOctet) {
  for (int octet = 0; octet <= 1100; ++octet) {
    for (const char* front : {"", "0", "00", "+", "-", " "}) {
      const std::string text = fmt::format("{}{}", front, octet);
      expect_same(fmt::format("10.{}.0.1", text));
      expect_same(fmt::format("10.2.0.{}", text));
      expect_same(fmt::format("::{}.0.0.1", text));
    }
  }
}

/// A readable text with a few characters dropped, doubled or replaced.
rc::Gen<std::string> almost_an_address() {
  return rc::gen::exec([] {
    std::string text = (*any_address()).to_string();
    const int edits = *rc::gen::inRange(0, 4);
    for (int i = 0; i < edits; ++i) {
      const auto at = static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(text.size()) + 1));
      const auto drop = static_cast<std::size_t>(*rc::gen::inRange(0, 3));
      const char c = *rc::gen::elementOf(std::string("0123456789abcdefABCDEFgx:::...%/ -+"));
      text.erase(at, drop);
      if (*rc::gen::element(true, true, false)) text.insert(at, 1, c);
    }
    return text;
  });
}

RC_GTEST_PROP(AddressAgainstSystemProperty, AgreesOnAlmostAddresses, ()) {
  const std::string text = *almost_an_address();
  RC_TAG(croft_parse(text).has_value());
  RC_ASSERT(croft_parse(text) == system_parse(text));
}

RC_GTEST_PROP(AddressAgainstSystemProperty, ReadsWhatTheSystemPrints, (Address address)) {
  char text[INET6_ADDRSTRLEN];
  RC_ASSERT(inet_ntop(address.is_v4() ? AF_INET : AF_INET6, address.bytes().data(), text, sizeof text) != nullptr);
  RC_ASSERT(croft_parse(text) == address);
  // inet_ntop prints a dotted quad inside ::/96 and ::ffff:0:0/96; elsewhere both write RFC 5952.
  if (std::strchr(text, '.') == nullptr || address.is_v4()) RC_ASSERT(address.to_string() == text);
}

RC_GTEST_PROP(AddressProperty, ReadsWhatItPrints, (Address address)) {
  const std::string text = address.to_string();
  RC_ASSERT(croft_parse(text) == address);
  RC_ASSERT(address.is_v4() || text.find('.') == text.npos);
}

RC_GTEST_PROP(AddressProperty, ReadsUpperCaseAndLeadingZeros, (U128 value)) {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += fmt::format("{}{:04X}", i > 0 ? ":" : "", (value >> (16 * (7 - i))).lo & 0xffffU);
  }
  RC_ASSERT(croft_parse(text) == Address::v6(value));
}

RC_GTEST_PROP(AddressProperty, ATextWithANulByteIsRefused, (Address address)) {
  std::string text = address.to_string();
  const auto at = static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(text.size()) + 1));
  text.insert(at, 1, '\0');
  RC_ASSERT(!croft_parse(text));
}

RC_GTEST_PROP(AddressProperty, NeighboursAreInverse, (Address address)) {
  if (const auto next = address.next()) RC_ASSERT(next->previous() == address);
  if (const auto previous = address.previous()) RC_ASSERT(previous->next() == address);
}

}  // namespace

}  // namespace croft::net
