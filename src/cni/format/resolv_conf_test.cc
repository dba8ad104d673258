#include "cni/format/resolv_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

cni::Dns parse(std::string_view text) { return parse_resolv_conf(text).value(); }

// docs/notes/host-local.md#cases-plugin, rows 15 to 17.
TEST(ResolvConf, ReadsWhatTheReferencesTestsRead) {
  EXPECT_THAT(parse("\n\t\tnameserver 192.0.2.0\n\t\tnameserver 192.0.2.1\n\t\t").nameservers,
              ElementsAre("192.0.2.0", "192.0.2.1"));
  EXPECT_THAT(parse("nameserver 192.0.2.0\n;nameserver 192.0.2.1\n").nameservers, ElementsAre("192.0.2.0"));
  const cni::Dns all = parse(
      "nameserver 192.0.2.0\nnameserver 192.0.2.2\ndomain example.com\n;nameserver c\n#nameserver c\n"
      "search example.net example.org\nsearch example.gov\noptions one two three\noptions four\n");
  EXPECT_THAT(all.nameservers, ElementsAre("192.0.2.0", "192.0.2.2"));
  EXPECT_EQ(all.domain, "example.com");
  EXPECT_THAT(all.search, ElementsAre("example.net", "example.org", "example.gov"));
  EXPECT_THAT(all.options, ElementsAre("one", "two", "three", "four"));
}

TEST(ResolvConf, TakesOneValueOfANameserverAndTheLastDomain) {
  const cni::Dns dns = parse("nameserver a b\ndomain one two\r\ndomain three # no comment");
  EXPECT_THAT(dns.nameservers, ElementsAre("a"));
  EXPECT_EQ(dns.domain, "three");
}

TEST(ResolvConf, OnlyALineThatBeginsWithACommentIsOne) {
  EXPECT_THAT(parse("search a # b ;c\n # search d\n\t;search e\n").search, ElementsAre("a", "#", "b", ";c"));
}

TEST(ResolvConf, PassesOverWhatItDoesNotKnow) {
  EXPECT_EQ(parse(""), cni::Dns());
  EXPECT_EQ(parse("\n\r\n \nnameserver\nsortlist 1\nNameserver a\nnameserver:b c\n"), cni::Dns());
}

TEST(ResolvConf, WhiteSpaceIsUnicodes) {
  EXPECT_THAT(parse("\xE3\x80\x80search\xC2\xA0"
                    "a\xE2\x80\x83"
                    "b\x85"
                    "c\n")
                  .search,
              ElementsAre("a",
                          "b\x85"
                          "c"));
}

TEST(ResolvConf, ALineIsShorterThan64KiB) {
  const std::string longest = "search " + std::string(65528, 'a');
  EXPECT_EQ(parse(longest + "\nsearch b").search.size(), 2U);
  for (const std::string& text : {longest + "a", longest + "a\nsearch b", "search b\n" + longest + "a\n"}) {
    const auto dns = parse_resolv_conf(text);
    ASSERT_FALSE(dns);
    EXPECT_EQ(dns.error(), (Error{ErrorCode::invalid_argument, "bufio.Scanner: token too long", ""}));
  }
  EXPECT_THAT(parse("#\n").search, IsEmpty());
}

}  // namespace
}  // namespace croft::wire
