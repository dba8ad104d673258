#include "base/net/prefix.h"

#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/arbitrary.h"

namespace croft::net {
namespace {

using namespace literals;

static_assert(std::is_trivially_copyable_v<Prefix> && sizeof(Prefix) == 32);
static_assert(!Prefix{}.is_valid() && Prefix{} < "0.0.0.0/0"_prefix && "255.255.255.255/32"_prefix < "::/0"_prefix);
static_assert("10.0.0.0/8"_prefix < "10.0.0.0/9"_prefix && "10.0.0.0/9"_prefix < "10.0.1.0/24"_prefix);
static_assert("10.1.0.0/16"_prefix.first() == "10.1.0.0"_ip && "10.1.0.0/16"_prefix.last() == "10.1.255.255"_ip);
static_assert("::/0"_prefix.last_offset() == U128::max() && "10.0.0.1/32"_prefix.last_offset() == U128{});
static_assert("10.0.0.0/8"_prefix.contains("10.255.255.255"_ip) && !"10.0.0.0/8"_prefix.contains("11.0.0.0"_ip));
static_assert(!"::/0"_prefix.contains("10.0.0.0"_ip) && !"0.0.0.0/0"_prefix.contains("::ffff:10.0.0.0"_ip));
static_assert(Prefix::containing("10.1.2.3"_ip, 24) == "10.1.2.0/24"_prefix);
static_assert(!Prefix::from("10.1.2.3"_ip, 24) && Prefix::from("10.1.2.3"_ip, 32) && !Prefix::from("10.0.0.0"_ip, 33));
static_assert(!Prefix::from("10.0.0.0"_ip, -1) && !Prefix::from(Address{}, 0) && Prefix::from("::"_ip, 0));
static_assert(!Prefix{}.contains("10.0.0.0"_ip) && !Prefix{}.contains(Prefix{}) && !Prefix{}.overlaps(Prefix{}));
static_assert(!parse_prefix("10.0.0.0/+8") && !parse_prefix("10.0.0.1/8") && !parse_prefix("10.0.0.0"));
static_assert("10.0.0.0/8"_prefix.subprefix(65535, 24) == "10.255.255.0/24"_prefix);
static_assert("10.0.0.0/8"_prefix.subprefix_index("10.1.0.0/24"_prefix) == 256);

TEST(Prefix, ReadsAndPrints) {
  for (const char* text : {"0.0.0.0/0", "10.0.0.0/8", "10.1.2.3/32", "128.0.0.0/1", "::/0", "2001:db8::/32", "8000::/1",
                           "::1/128", "fd00:1:2:3::/64", "fd00::8000:0:0:0/65"}) {
    const auto prefix = Prefix::parse(text);
    ASSERT_TRUE(prefix) << prefix.error().message;
    EXPECT_EQ(prefix->to_string(), text);
    EXPECT_EQ(parse_prefix(text), *prefix);
  }
  EXPECT_EQ(Prefix::parse("::ffff:10.0.0.0/104").value().to_string(), "::ffff:a00:0/104");
  EXPECT_EQ(Prefix{}.to_string(), "invalid");
}

constexpr const char* kBadV4Length =
    "the length of an IPv4 prefix is a decimal number from 0 to 32 without leading zeros";
constexpr const char* kBadV6Length =
    "the length of an IPv6 prefix is a decimal number from 0 to 128 without leading zeros";

TEST(Prefix, RefusalsSayWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"10.1.2.3/24", "host bits are set; the network is 10.1.2.0/24"},
      {"2001:db8::1/32", "host bits are set; the network is 2001:db8::/32"},
      {"10.0.0.0", "no \"/<length>\" at the end"},
      {"", "no \"/<length>\" at the end"},
      {"/8", "the text is empty (at \"/8\")"},
      {"10.0.0/8", "an IPv4 address has four octets (at \"/8\")"},
      {"10.0.0.0/8/8", "unexpected character (at \"/8/8\")"},
      {"fe80::%eth0/64", "a zone is not allowed (at \"%eth0/64\")"},
      {"10.0.0.0/", kBadV4Length},
      {"10.0.0.0/33", kBadV4Length},
      {"10.0.0.0/08", kBadV4Length},
      {"10.0.0.0/+8", kBadV4Length},
      {"10.0.0.0/-8", kBadV4Length},
      {"10.0.0.0/8 ", kBadV4Length},
      {"10.0.0.0/ 8", kBadV4Length},
      {"10.0.0.0/0x8", kBadV4Length},
      {"10.0.0.0/255.0.0.0", kBadV4Length},
      {"10.0.0.0/4294967304", kBadV4Length},
      {"::/129", kBadV6Length},
      {"::/00", kBadV6Length},
  };
  for (const auto& [text, reason] : cases) {
    const auto prefix = Prefix::parse(text);
    ASSERT_FALSE(prefix) << text;
    EXPECT_EQ(prefix.error().code, ErrorCode::invalid_argument);
    const std::string expected = "invalid prefix \"" + std::string(text) + "\": " + reason;
    EXPECT_EQ(prefix.error().message.substr(0, expected.size()), expected);
    EXPECT_FALSE(parse_prefix(text)) << text;
  }
}

/// Every pair of lengths has a first and a last subprefix, and one in the middle, 2^64 and more of them or not.
TEST(Prefix, SubprefixesOfEveryPairOfLengths) {
  for (const Prefix& whole : {"0.0.0.0/0"_prefix, "::/0"_prefix}) {
    const int bits = bit_length(whole.family());
    for (int length = 0; length <= bits; ++length) {
      for (int sub_length = length; sub_length <= bits; ++sub_length) {
        const Prefix prefix = Prefix::containing(whole.last(), length);
        const U128 last = U128::low_bits(sub_length - length);
        for (const U128 index : {U128(0), last >> 1, last}) {
          const Prefix sub = prefix.subprefix(index, sub_length);
          EXPECT_TRUE(prefix.contains(sub)) << prefix.to_string() << " " << sub_length;
          EXPECT_EQ(prefix.subprefix_index(sub), index) << prefix.to_string() << " " << sub_length;
        }
        EXPECT_EQ(prefix.subprefix(0, sub_length).first(), prefix.first());
        EXPECT_EQ(prefix.subprefix(last, sub_length).last(), prefix.last());
      }
    }
  }
}

TEST(PrefixDeathTest, ProgrammerErrorsStopTheProcess) {
  EXPECT_DEATH(static_cast<void>(Prefix::containing("10.0.0.0"_ip, 33)), "bit_length");
  EXPECT_DEATH(static_cast<void>("10.0.0.0/24"_prefix.subprefix(4, 26)), "count_log2");
  EXPECT_DEATH(static_cast<void>("10.0.0.0/24"_prefix.subprefix(0, 23)), "length");
  EXPECT_DEATH(static_cast<void>("10.0.0.0/24"_prefix.subprefix_index("10.0.1.0/26"_prefix)), "contains");
}

/// Bit `index` of an address, counted from the top: the definition of a prefix, one bit at a time.
bool bit(Address a, int index) { return ((a.value() >> (bit_length(a.family()) - 1 - index)).lo & 1U) != 0; }

bool slow_contains(const Prefix& p, Address a) {
  if (p.family() != a.family()) return false;
  for (int i = 0; i < p.length(); ++i) {
    if (bit(p.address(), i) != bit(a, i)) return false;
  }
  return true;
}

/// An address that shares many bits with the prefix, so that both answers come up.
rc::Gen<Address> near(const Prefix& p) {
  return rc::gen::apply(
      [p](U128 noise, int kept) {
        const U128 mask = U128::low_bits(bit_length(p.family()) - kept);
        return Address::from(p.family(), (p.address().value() & ~mask) | (noise & mask));
      },
      any_u128(), rc::gen::inRange(0, bit_length(p.family()) + 1));
}

RC_GTEST_PROP(PrefixProperty, ContainsIsBitByBit, (Prefix prefix)) {
  const Address address = *rc::gen::oneOf(near(prefix), any_address());
  RC_TAG(prefix.contains(address));
  RC_ASSERT(prefix.contains(address) == slow_contains(prefix, address));
  RC_ASSERT(prefix.contains(address) == (prefix.first() <= address && address <= prefix.last()));
}

RC_GTEST_PROP(PrefixProperty, ContainmentAndOverlapFollowTheEnds, (Prefix a)) {
  const Address inside = *near(a);
  const Prefix b = Prefix::containing(inside, *rc::gen::inRange(0, bit_length(a.family()) + 1));
  RC_TAG(a.contains(b), a.overlaps(b));
  RC_ASSERT(a.contains(b) == (slow_contains(a, b.first()) && slow_contains(a, b.last())));
  RC_ASSERT(a.overlaps(b) == (a.first() <= b.last() && b.first() <= a.last()));
  RC_ASSERT(a.overlaps(b) == b.overlaps(a));
  RC_ASSERT((a == b) == (a.contains(b) && b.contains(a)));
}

RC_GTEST_PROP(PrefixProperty, MaskingKeepsTheBitsOfTheLength, (Address address)) {
  const int length = *rc::gen::inRange(0, bit_length(address.family()) + 1);
  const Prefix prefix = Prefix::containing(address, length);
  RC_ASSERT(slow_contains(prefix, address));
  for (int i = length; i < bit_length(address.family()); ++i)
    RC_ASSERT(!bit(prefix.first(), i) && bit(prefix.last(), i));
  RC_ASSERT(Prefix::from(address, length).has_value() == (prefix.first() == address));
  RC_ASSERT(prefix.first().value() + prefix.last_offset() == prefix.last().value());
}

RC_GTEST_PROP(PrefixProperty, ReadsWhatItPrints, (Prefix prefix)) {
  const auto read = Prefix::parse(prefix.to_string());
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == prefix);
  RC_ASSERT(std::hash<Prefix>{}(*read) == std::hash<Prefix>{}(prefix));
}

RC_GTEST_PROP(PrefixProperty, SubprefixesFollowEachOther, (Prefix prefix)) {
  const int length = *rc::gen::inRange(prefix.length(), bit_length(prefix.family()) + 1);
  const U128 last = U128::low_bits(prefix.subprefix_count_log2(length));
  const U128 index = U128(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()) & last;
  const Prefix sub = prefix.subprefix(index, length);
  RC_ASSERT(sub.length() == length && prefix.contains(sub));
  RC_ASSERT(Prefix::from(sub.address(), length) == sub);
  RC_ASSERT(prefix.subprefix_index(sub) == index);
  RC_ASSERT((sub.first() == prefix.first()) == (index == U128(0)));
  RC_ASSERT((sub.last() == prefix.last()) == (index == last));
  if (index > U128(0)) RC_ASSERT(prefix.subprefix(index - 1, length).last().next() == sub.first());
}

TEST(Prefix, IsFitForAHashedKey) {
  std::unordered_set<Prefix> set;
  for (std::uint64_t i = 0; i < 1024; ++i) set.insert("10.0.0.0/16"_prefix.subprefix(i, 26));
  for (std::uint64_t i = 0; i < 1024; ++i) set.insert("10.0.0.0/16"_prefix.subprefix(i, 26));
  EXPECT_EQ(set.size(), 1024U);
}

}  // namespace
}  // namespace croft::net
