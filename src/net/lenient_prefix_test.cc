#include "net/lenient_prefix.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "net/arbitrary.h"

namespace croft::net {
namespace {

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

RC_GTEST_PROP(LenientPrefixProperty, ReadsWhatPrefixPrints, (Prefix prefix)) {
  RC_PRE(!prefix.address().is_v4_mapped() || prefix.length() < 96);
  RC_ASSERT(parse_prefix_leniently(prefix.to_string()) == prefix);
}

}  // namespace
}  // namespace croft::net
