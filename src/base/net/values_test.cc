// The small values beside Address and Prefix: range, address with length, ordinal and MAC.

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/arbitrary.h"
#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/net/ranges.h"
#include "base/net/u128.h"

namespace croft::net {

namespace {

using namespace literals;

static_assert(AddressRange::of("10.0.0.0/30"_prefix).last() == "10.0.0.3"_ip);
static_assert(!AddressRange{}.is_valid() && !AddressRange{}.contains(Address{}) &&
              !AddressRange{}.overlaps(AddressRange{}));
static_assert(AddressWithLength{"10.1.2.3"_ip, 24}.network() == "10.1.2.0/24"_prefix);
static_assert(ordinal_of("10.0.0.0/26"_prefix, "10.0.0.63"_ip) == Ordinal{63});
static_assert(address_at("10.0.0.64/26"_prefix, Ordinal{1}) == "10.0.0.65"_ip);

TEST(AddressRange, MakeRefusesWhatIsNoRange) {
  EXPECT_EQ(AddressRange::make("10.0.0.9"_ip, "10.0.0.2"_ip).error().message,
            "invalid address range 10.0.0.9-10.0.0.2: the first address is above the last");
  EXPECT_EQ(AddressRange::make("10.0.0.9"_ip, "::"_ip).error().message,
            "invalid address range 10.0.0.9-::: the ends are of different families");
  EXPECT_EQ(AddressRange::make("10.0.0.9"_ip, Address{}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(AddressRange::make("10.0.0.2"_ip, "10.0.0.2"_ip).value().to_string(), "10.0.0.2-10.0.0.2");
  EXPECT_EQ(AddressRange{}.to_string(), "invalid");
}

TEST(AddressRange, IsTheFewestPrefixesThatHaveAllOfIt) {
  const auto texts = [](const char* first, const char* last) {
    std::string all;
    const auto range = AddressRange::make(Address::parse(first).value(), Address::parse(last).value()).value();
    for (const Prefix& prefix : prefixes_of(range)) all += (all.empty() ? "" : " ") + prefix.to_string();
    return all;
  };
  EXPECT_EQ(texts("10.0.0.2", "10.0.0.9"), "10.0.0.2/31 10.0.0.4/30 10.0.0.8/31");
  EXPECT_EQ(texts("10.0.0.7", "10.0.0.7"), "10.0.0.7/32");
  EXPECT_EQ(texts("10.0.0.0", "10.0.0.255"), "10.0.0.0/24");
  EXPECT_EQ(texts("0.0.0.0", "255.255.255.255"), "0.0.0.0/0");
  EXPECT_EQ(texts("2001:db8::ffff", "2001:db8::1:1"), "2001:db8::ffff/128 2001:db8::1:0/127");
}

TEST(AddressRange, BothEndsAreInside) {
  const auto range = AddressRange::make("10.0.0.2"_ip, "10.0.0.5"_ip).value();
  EXPECT_TRUE(range.contains("10.0.0.2"_ip));
  EXPECT_TRUE(range.contains("10.0.0.5"_ip));
  EXPECT_FALSE(range.contains("10.0.0.1"_ip));
  EXPECT_FALSE(range.contains("10.0.0.6"_ip));
  EXPECT_FALSE(range.contains("::a00:3"_ip));
  EXPECT_EQ(range.last_offset(), U128{3});
  EXPECT_TRUE(range.overlaps(AddressRange::make("10.0.0.5"_ip, "10.0.0.9"_ip).value()));
  EXPECT_FALSE(range.overlaps(AddressRange::make("10.0.0.6"_ip, "10.0.0.9"_ip).value()));
  EXPECT_TRUE(AddressRange::of("10.0.0.0/29"_prefix).contains(range));
  EXPECT_FALSE(AddressRange::of("::/0"_prefix).overlaps(range));
}

RC_GTEST_PROP(AddressRangeProperty, OfAPrefixAnswersAsThePrefix, (Prefix a, Prefix b, Address address)) {
  RC_ASSERT(AddressRange::of(a).contains(address) == a.contains(address));
  RC_ASSERT(AddressRange::of(a).contains(AddressRange::of(b)) == a.contains(b));
  RC_ASSERT(AddressRange::of(a).overlaps(AddressRange::of(b)) == a.overlaps(b));
  RC_ASSERT(AddressRange::of(a).last_offset() == a.last_offset());
}

TEST(AddressWithLength, KeepsHostBits) {
  const auto value = AddressWithLength::parse("10.1.2.3/24").value();
  EXPECT_EQ(value, (AddressWithLength{"10.1.2.3"_ip, 24}));
  EXPECT_EQ(value.to_string(), "10.1.2.3/24");
  EXPECT_EQ(value.network(), "10.1.2.0/24"_prefix);
  EXPECT_EQ(AddressWithLength{}.to_string(), "invalid");
  EXPECT_EQ(AddressWithLength::parse("10.1.2.3").error().message,
            "invalid address with length \"10.1.2.3\": no \"/<length>\" at the end");
  EXPECT_EQ(AddressWithLength::parse("10.1.2.3/33").error().code, ErrorCode::invalid_argument);
}

RC_GTEST_PROP(AddressWithLengthProperty, ReadsWhatItPrints, (Address address)) {
  const AddressWithLength value{address, *rc::gen::inRange(0, bit_length(address.family()) + 1)};
  const auto read = AddressWithLength::parse(value.to_string());
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == value);
}

TEST(Ordinal, CountsFromTheNetworkAddress) {
  EXPECT_EQ(ordinal_of("10.0.0.0/26"_prefix, "10.0.0.0"_ip), Ordinal{0});
  EXPECT_EQ(ordinal_of("10.0.0.0/26"_prefix, "10.0.0.64"_ip), std::nullopt);
  EXPECT_EQ(ordinal_of("10.0.0.0/26"_prefix, "::1"_ip), std::nullopt);
  EXPECT_EQ(ordinal_of("0.0.0.0/0"_prefix, "255.255.255.255"_ip), Ordinal{0xffffffffU});
  EXPECT_EQ(ordinal_of("fd00::/64"_prefix, "fd00::ffff:ffff"_ip), Ordinal{0xffffffffU});
  EXPECT_EQ(ordinal_of("fd00::/64"_prefix, "fd00::1:0:0"_ip), std::nullopt);
  EXPECT_EQ(address_at("fd00::/64"_prefix, Ordinal{0xffffffffU}), "fd00::ffff:ffff"_ip);
  EXPECT_DEATH(static_cast<void>(address_at("10.0.0.0/26"_prefix, Ordinal{64})), "last_offset");
}

RC_GTEST_PROP(OrdinalProperty, IsTheInverseOfAddressAt, (Prefix prefix, std::uint32_t place)) {
  const Ordinal ordinal{prefix.last_offset() < U128{place} ? 0 : place};
  RC_ASSERT(ordinal_of(prefix, address_at(prefix, ordinal)) == ordinal);
}

TEST(Mac, ReadsEitherCaseAndPrintsLower) {
  EXPECT_EQ(Mac::parse("02:00:5E:10:00:Ff").value().to_string(), "02:00:5e:10:00:ff");
  EXPECT_EQ(Mac{}.to_string(), "00:00:00:00:00:00");
  for (const char* text : {"", "02:00:5e:10:00", "02:00:5e:10:00:ff:00", "02-00-5e-10-00-ff", "2:00:5e:10:00:ff:",
                           "02:00:5e:10:00:fg", "0200.5e10.00ff", " 2:00:5e:10:00:ff", "02:00:5e:10:00:ff "}) {
    EXPECT_FALSE(Mac::parse(text)) << text;
  }
  EXPECT_EQ(Mac::parse("x\n").error().message,
            R"(invalid MAC address "x\x0a": six pairs of hexadecimal digits between colons are wanted)");
}

RC_GTEST_PROP(MacProperty, ReadsWhatItPrints, (std::array<std::uint8_t, 6> bytes)) {
  const Mac mac{bytes};
  RC_ASSERT(Mac::parse(mac.to_string()).value() == mac);
}

static_assert(Count::of("10.0.0.0/26"_prefix) == Count(64) && Count::of("::1/128"_prefix) == Count(1));
static_assert(Count::power_of_two(0) == Count(1) && Count(3) - 5 == Count() && Count(5) - 3 == Count(2));
static_assert(Count::of("::/0"_prefix) > Count::of("::/1"_prefix) && !Count::of("fd00::/64"_prefix).fits_64());
static_assert(Count::of("::/1"_prefix) + Count::of("8000::/1"_prefix) == Count::of("::/0"_prefix));
static_assert(Count::of("::/0"_prefix) - Count::of("::/1"_prefix) == Count::of("::/1"_prefix));
static_assert(Count::of("::/0"_prefix) + 1 == Count::of("::/0"_prefix) && Count::of("::/0"_prefix) - 0 > Count());

TEST(Count, PrintsAllDigits) {
  EXPECT_EQ(Count().to_string(), "0");
  EXPECT_EQ(Count(1'000'000'000).to_string(), "1000000000");
  EXPECT_EQ((Count::of("fd00::/64"_prefix) - 1).to_string(), "18446744073709551615");
  EXPECT_EQ(Count::of("fd00::/64"_prefix).to_string(), "18446744073709551616");
  EXPECT_EQ(Count::of("fd00::/48"_prefix).to_string(), "1208925819614629174706176");
  EXPECT_EQ((Count::of("::/0"_prefix) - 1).to_string(), "340282366920938463463374607431768211455");
  EXPECT_EQ(Count::of("::/0"_prefix).to_string(), "340282366920938463463374607431768211456");
  EXPECT_EQ(Count::of("::/0"_prefix).as_double(), 0x1p128);
  EXPECT_EQ(Count::of("fd00::/64"_prefix).as_double(), 0x1p64);
}

/// Each power of two is twice the one before, digit by digit.
TEST(Count, EveryPowerOfTwoIsExact) {
  std::string digits = "1";
  for (int log2 = 0; log2 <= 128; ++log2) {
    EXPECT_EQ(Count::power_of_two(log2).to_string(), digits) << log2;
    int carry = 0;
    for (auto it = digits.rbegin(); it != digits.rend(); ++it) {
      const int twice = 2 * (*it - '0') + carry;
      *it = static_cast<char>('0' + twice % 10);
      carry = twice / 10;
    }
    if (carry != 0) digits.insert(0, 1, '1');
  }
}

RC_GTEST_PROP(CountProperty, WhatIsAddedCanBeTakenAway, (Prefix a, Prefix b)) {
  const Count sum = Count::of(a) + Count::of(b);
  RC_ASSERT(sum >= Count::of(a) && sum >= Count::of(b));
  if (sum < Count::power_of_two(128)) RC_ASSERT(sum - Count::of(b) == Count::of(a));
  RC_ASSERT(Count::of(a) - Count::of(a) == Count());
}

TEST(Intervals, NeighboursAndOverlapsBecomeOne) {
  const Intervals set({"10.0.0.128/25"_prefix, "10.0.0.0/25"_prefix, "10.0.0.7/32"_prefix, "10.0.2.0/24"_prefix,
                       "::/0"_prefix, Prefix{}, "255.255.255.255/32"_prefix});
  EXPECT_EQ(set.size(), 4U);
  EXPECT_TRUE(set.covers("10.0.0.0/24"_prefix));
  EXPECT_FALSE(set.covers("10.0.0.0/23"_prefix));
  EXPECT_TRUE(set.overlaps("10.0.0.0/23"_prefix));
  EXPECT_FALSE(set.overlaps("10.0.1.0/24"_prefix));
  EXPECT_EQ(set.count_in("10.0.0.0/22"_prefix), Count(512));
  EXPECT_EQ(set.count_in("::/0"_prefix), Count::power_of_two(128));
  EXPECT_EQ(set.last_from("10.0.0.3"_ip), "10.0.0.255"_ip);
  EXPECT_FALSE(set.last_from("10.0.1.3"_ip));
  EXPECT_FALSE(Intervals().contains("10.0.0.1"_ip));
  EXPECT_TRUE(Intervals().empty());
}

/// Against the definition, on prefixes close enough to each other to touch.
RC_GTEST_PROP(IntervalsProperty, SayWhatThePrefixesSay, (std::vector<std::pair<std::uint8_t, std::uint8_t>> shapes)) {
  const auto near = [](std::uint8_t value, int length) {
    return Prefix::containing(Address::v6({0xfd00'0000'0000'0000, value}), 120 + length % 9);
  };
  std::vector<Prefix> prefixes;
  for (const auto& [value, length] : shapes) prefixes.push_back(near(value, length));
  const Intervals set(prefixes);
  const auto is_in = [&](const Address& address) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const Prefix& p) { return p.contains(address); });
  };
  const Prefix asked = near(*rc::gen::arbitrary<std::uint8_t>(), *rc::gen::inRange(0, 9));
  std::uint64_t inside = 0;
  for (std::optional<Address> a = asked.first(); a && asked.contains(*a); a = a->next()) {
    RC_ASSERT(set.contains(*a) == is_in(*a));
    if (!is_in(*a)) continue;
    ++inside;
    const Address last = set.last_from(*a).value();
    RC_ASSERT(is_in(last));
    RC_ASSERT(!is_in(last.next().value()));
  }
  RC_ASSERT(set.count_in(asked) == Count(inside));
  RC_ASSERT(set.overlaps(asked) == (inside > 0));
  RC_ASSERT(set.covers(asked) == (Count(inside) == Count::of(asked)));
}

constexpr std::uint64_t kOnes = std::numeric_limits<std::uint64_t>::max();

static_assert(std::is_trivially_copyable_v<U128> && sizeof(U128) == 16);
static_assert(U128{1, 0} > U128{0, kOnes}, "the high half decides");
static_assert(U128{0, kOnes} + 1 == U128{1, 0}, "the carry goes up");
static_assert(U128{1, 0} - 1 == U128{0, kOnes}, "the borrow comes down");
static_assert(U128::max() + 1 == U128{} && U128{} - 1 == U128::max(), "both ends wrap");
static_assert((U128{1} << 64) == U128{1, 0} && (U128{1, 0} >> 64) == U128{1});
static_assert((U128{1} << 127) == U128{std::uint64_t{1} << 63, 0} && (U128{1} << 128) == U128{});
static_assert((U128::max() >> 128) == U128{} && (U128::max() >> 0) == U128::max());
static_assert(U128::low_bits(0) == U128{} && U128::low_bits(64) == U128{kOnes} && U128::low_bits(128) == U128::max());
static_assert(U128{}.bit_width() == 0 && U128{1, 0}.bit_width() == 65 && U128::max().bit_width() == 128);

/// Schoolbook arithmetic on single bits, lowest first: slow, and plainly right.
using Bits = std::array<bool, 128>;

Bits bits_of(U128 v) {
  Bits bits{};
  for (std::size_t i = 0; i < 128; ++i) bits[i] = ((i < 64 ? v.lo >> i : v.hi >> (i - 64)) & 1U) != 0;
  return bits;
}

Bits sum(const Bits& a, const Bits& b) {
  Bits out{};
  bool carry = false;
  for (std::size_t i = 0; i < 128; ++i) {
    const int ones = int{a[i]} + int{b[i]} + int{carry};
    out[i] = ones % 2 == 1;
    carry = ones >= 2;
  }
  return out;
}

Bits moved_up(const Bits& a, std::size_t count) {
  Bits out{};
  for (std::size_t i = count; i < 128; ++i) out[i] = a[i - count];
  return out;
}

Bits moved_down(const Bits& a, std::size_t count) {
  Bits out{};
  for (std::size_t i = 0; i + count < 128; ++i) out[i] = a[i + count];
  return out;
}

RC_GTEST_PROP(U128Property, SumIsTheSchoolbookSum, (U128 a, U128 b)) {
  RC_ASSERT(bits_of(a + b) == sum(bits_of(a), bits_of(b)));
}

RC_GTEST_PROP(U128Property, DifferenceUndoesTheSum, (U128 a, U128 b)) {
  RC_ASSERT((a + b) - b == a);
  RC_ASSERT((a - b) + b == a);
  RC_ASSERT((a < b) == !(a >= b));
}

RC_GTEST_PROP(U128Property, ShiftsMoveBits, (U128 a)) {
  const auto count = *rc::gen::inRange(0, 128);
  RC_ASSERT(bits_of(a << count) == moved_up(bits_of(a), static_cast<std::size_t>(count)));
  RC_ASSERT(bits_of(a >> count) == moved_down(bits_of(a), static_cast<std::size_t>(count)));
}

RC_GTEST_PROP(U128Property, BitwiseOperatorsFollowDeMorgan, (U128 a, U128 b)) {
  RC_ASSERT(~(a & b) == (~a | ~b));
  RC_ASSERT((a & b) + (a | b) == a + b);
}

RC_GTEST_PROP(U128Property, OrderIsThatOfTheHighestDifferentBit, (U128 a, U128 b)) {
  const Bits x = bits_of(a);
  const Bits y = bits_of(b);
  RC_ASSERT((a < b) == std::lexicographical_compare(x.rbegin(), x.rend(), y.rbegin(), y.rend()));
}

TEST(U128, LowBitsHasThatWidth) {
  for (int count = 0; count <= 128; ++count) EXPECT_EQ(U128::low_bits(count).bit_width(), count);
}

/// As net.ParseIP of Go 1.16.
TEST(LenientAddress, IsReadAsKubernetesReadsIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"10.96.11.12", "10.96.11.12"},
      {"10.96.011.012", "10.96.11.12"},
      {"010.096.0000011.012", "10.96.11.12"},
      {"00.00.00.00", "0.0.0.0"},
      {"::ffff:10.96.0.1", "10.96.0.1"},
      {"::FFFF:010.096.0.01", "10.96.0.1"},
      {"0:0:0:0:0:ffff:0a60:0001", "10.96.0.1"},
      {"FD00:0010:0096:0000:0000:0000:0000:000A", "fd00:10:96::a"},
      {"fd00::00001", "fd00::1"},
  };
  for (const auto& [text, read] : cases) {
    const auto address = parse_address_leniently(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->to_string(), read) << text;
  }
  for (const std::string& text :
       {std::string(""), std::string("None"), std::string("10.96.11.12 "), std::string(" 10.96.11.12"),
        std::string("10.96.11.12/32"), std::string("10.96.11"), std::string("10.96.11.0256"),
        std::string("0x0a.96.11.12"), std::string("10.96..12"), std::string("fe80::1%eth0"),
        std::string("fd00::00000g"), std::string(300, '0') + ".0.0.0"}) {
    EXPECT_FALSE(parse_address_leniently(text)) << text;
  }
}

/// As net.ParseCIDR of Go 1.16, with which Kubernetes reads what it admitted once.
TEST(LenientPrefix, IsReadAsKubernetesReadsIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"10.0.1.0/24", "10.0.1.0/24"},
      {"10.0.1.5/24", "10.0.1.0/24"},
      {"010.001.000.009/024", "10.1.0.0/24"},
      {"0000010.0.0.0/8", "10.0.0.0/8"},
      {"0.0.0.0/0", "0.0.0.0/0"},
      {"00.00.00.00/00", "0.0.0.0/0"},
      {"fd00::1/64", "fd00::/64"},
      {"FD00:0:00:0000::/064", "fd00::/64"},
      {"00fd00::/8", "fd00::/8"},
      {"0:0:0:0:0:0:0:0/0", "::/0"},
      {"::ffff:10.1.2.3/120", "10.1.2.0/24"},
      {"::ffff:010.1.2.3/0128", "10.1.2.3/32"},
      {"::ffff:0:0/95", "::fffe:0:0/95"},
  };
  for (const auto& [text, read] : cases) {
    const auto prefix = parse_prefix_leniently(text);
    ASSERT_TRUE(prefix) << text;
    EXPECT_EQ(prefix->to_string(), read) << text;
  }
  const std::string zeros(300, '0');
  for (const std::string& text :
       {std::string(""), std::string("ten"), std::string("10.0.0.0"), std::string("10.0.0/8"),
        std::string("10.0.0.0/33"), std::string("10.0.0.0/-1"), std::string("10.0.0.0/8 "), std::string("0x10.0.0.0/8"),
        std::string("10.0.0.256/8"), std::string("10.0.0.0/a"), std::string("fd00::%1/64"), std::string("10.0.0.0/8/8"),
        zeros + "/0", zeros + ".0.0.0/8"}) {
    EXPECT_FALSE(parse_prefix_leniently(text)) << text;
  }
}

/// As net.ParseCIDR of Go 1.26 reads each of these.
TEST(PrefixAsGo, IsReadAsGoReadsIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"10.0.0.0/24", "10.0.0.0/24"},       {"10.0.0.5/24", "10.0.0.0/24"},
      {"10.0.0.0/024", "10.0.0.0/24"},      {"::ffff:10.0.0.0/120", "10.0.0.0/24"},
      {"::FFFF:a00:0/120", "10.0.0.0/24"},  {"0:0:0:0:0:ffff:10.0.0.0/120", "10.0.0.0/24"},
      {"::ffff:10.0.0.0/96", "0.0.0.0/0"},  {"::ffff:10.0.0.0/95", "::fffe:0:0/95"},
      {"::ffff:10.0.0.0/24", "::/24"},      {"FD00:0:0::/64", "fd00::/64"},
      {"fd00:0000::0001/064", "fd00::/64"}, {"fd00::10.0.0.0/120", "fd00::a00:0/120"},
  };
  for (const auto& [text, read] : cases) {
    const auto prefix = parse_prefix_as_go(text);
    ASSERT_TRUE(prefix) << text;
    EXPECT_EQ(prefix->to_string(), read) << text;
  }
  for (const char* text :
       {"010.0.0.0/24", "fd00::010.0.0.0/120", "fd00::00001/64", " 10.0.0.0/24", "10.0.0.0/24 ", "10.0.0.0",
        "fd00::%eth0/64", "10.0.0.0/+24", "10.0.0.0/33", "10.0/16", "fd00::/64/64", ""}) {
    EXPECT_FALSE(parse_prefix_as_go(text)) << text;
  }
}

RC_GTEST_PROP(LenientPrefixProperty, ReadsWhatPrefixPrints, (Prefix prefix)) {
  RC_PRE(!prefix.address().is_v4_mapped() || prefix.length() < 96);
  RC_ASSERT(parse_prefix_as_go(prefix.to_string()) == prefix);
  RC_ASSERT(parse_prefix_leniently(prefix.to_string()) == prefix);
}

}  // namespace

}  // namespace croft::net
