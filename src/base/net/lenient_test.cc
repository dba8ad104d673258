#include "base/net/lenient.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/arbitrary.h"

namespace croft::net {
namespace {

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
