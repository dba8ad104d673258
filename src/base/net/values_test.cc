// The small values beside Address and Prefix: range, address with length, ordinal, MAC, and the echo in messages.

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/address_with_length.h"
#include "base/net/arbitrary.h"
#include "base/net/echo.h"
#include "base/net/mac.h"
#include "base/net/ordinal.h"
#include "base/net/range.h"

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

TEST(Echo, QuotesEscapesAndCuts) {
  EXPECT_EQ(echo(""), R"("")");
  EXPECT_EQ(echo(R"(a"b\c)"), R"("a\"b\\c")");
  EXPECT_EQ(echo("\t\x7f\x80"), R"("\x09\x7f\x80")");
  const std::string fits(kEchoBytesMax, 'a');
  EXPECT_EQ(echo(fits), '"' + fits + '"');
  EXPECT_EQ(echo(fits + 'a'), '"' + fits + "\"...");
  EXPECT_EQ(echo(std::string(kEchoBytesMax - 1, 'a') + '\n'), '"' + std::string(kEchoBytesMax - 1, 'a') + "\"...");
}

}  // namespace
}  // namespace croft::net
