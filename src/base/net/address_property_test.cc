// Address::parse against the system's own reader, inet_pton of glibc. Both accept exactly the same texts, in both
// families: glibc, too, refuses leading zeros in octets, "::" for no group, and more than four digits in a group. Two
// differences lie outside the texts compared: inet_pton stops at a NUL byte, and it never takes a zone.

#include <arpa/inet.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/address.h"
#include "base/net/arbitrary.h"

namespace croft::net {
namespace {

U128 big_endian(const unsigned char* bytes, std::size_t size) {
  U128 value;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | U128{bytes[i]};
  return value;
}

std::optional<Address> system_parse(const std::string& text) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) return Address::from(Family::v4, big_endian(bytes, 4));
  if (inet_pton(AF_INET6, text.c_str(), bytes) == 1) return Address::from(Family::v6, big_endian(bytes, 16));
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
  unsigned char bytes[16];
  const std::size_t size = address.is_v4() ? 4 : 16;
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<unsigned char>((address.value() >> static_cast<int>(8 * (size - 1 - i))).lo & 0xffU);
  }
  char text[INET6_ADDRSTRLEN];
  RC_ASSERT(inet_ntop(address.is_v4() ? AF_INET : AF_INET6, bytes, text, sizeof text) != nullptr);
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

RC_GTEST_PROP(AddressProperty, OffsetsAddUpAndNeighboursAreInverse, (Address address, U128 offset)) {
  const auto moved = address.offset_by(offset);
  RC_ASSERT(moved.has_value() == (offset <= U128::low_bits(bit_length(address.family())) - address.value()));
  if (moved) {
    RC_ASSERT(moved->value() - address.value() == offset);
    RC_ASSERT(*moved >= address);
  }
  if (const auto next = address.next()) RC_ASSERT(next->previous() == address);
  if (const auto previous = address.previous()) RC_ASSERT(previous->next() == address);
}

}  // namespace
}  // namespace croft::net
