#include "cni/format/result.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/net/test_values.h"
#include "cni/format/environment.h"

namespace croft::wire::cni {
namespace {

using net::Address;
using net::AddressWithLength;

AddressWithLength with_length(std::string_view text) { return AddressWithLength::parse(text).value(); }

const AssignedAddress kV4{with_length("10.1.2.2/24"), address("10.1.2.1")};
const AssignedAddress kV6{with_length("2001:db8::2/64"), address("2001:db8::1")};
const AssignedAddress kWithoutGateway{with_length("10.1.2.3/26"), std::nullopt};

Route route(std::string_view destination, std::optional<Address> gateway = {}) {
  Route made;
  made.destination = with_length(destination);
  made.gateway = gateway;
  return made;
}

/// Everything at once: three addresses, routes of both families, each special character in dns.
AddResult everything() {
  Route full = route("10.9.0.7/8", address("10.1.2.9"));
  full.mtu = 1400;
  full.advmss = 1360;
  full.priority = 5;
  full.table = 7;
  full.scope = 0;
  Dns dns;
  dns.nameservers = {"10.0.0.10", "<a>&b"};
  dns.domain = "x\xE2\x80\xA8y\"\\";
  dns.search = {"svc\b\f\n\x01\x7f"};
  dns.options = {"ndots:5"};
  return {{kV4, kV6, kWithoutGateway}, {route("0.0.0.0/0"), route("::/0", address("2001:db8::9")), full}, dns};
}

std::string golden(const std::string& name, std::string_view version) {
  std::ifstream file(std::string(CROFT_CNI_TESTDATA) + "/cni_result/" + name + "-" + std::string(version) + ".json",
                     std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name << version;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// One result and the golden files' name. The files are what the reference's library (cni v1.3.0) prints for it.
struct Case {
  std::string name;
  AddResult result;
};
class ResultGolden : public testing::TestWithParam<std::string_view> {};

TEST_P(ResultGolden, PrintsTheBytesOfTheReference) {
  const std::vector<Case> cases = {{"v4", {{kV4}, {}, {}}},
                                   {"v6", {{kV6}, {}, {}}},
                                   {"dual", everything()},
                                   {"bare", {{kWithoutGateway}, {route("::/0", address("2001:db8::9"))}, {}}}};
  for (const Case& one : cases) {
    const auto printed = print_result(one.result, GetParam());
    ASSERT_TRUE(printed) << one.name;
    EXPECT_EQ(*printed, golden(one.name, GetParam())) << one.name;
    EXPECT_TRUE(parse_json(*printed)) << one.name;
  }
}
INSTANTIATE_TEST_SUITE_P(EveryVersion, ResultGolden, testing::ValuesIn(kSupportedVersions), [](const auto& version) {
  std::string name(version.param);
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
});

// Row 116.
TEST(Result, OldVersionsDropRoutesOfAFamilyWithoutAddress) {
  const AddResult result{{kV4}, {route("::/0"), route("0.0.0.0/0")}, {}};
  const std::string printed = *print_result(result, "0.2.0");
  EXPECT_NE(printed.find("\"0.0.0.0/0\""), printed.npos);
  EXPECT_EQ(printed.find("\"::/0\""), printed.npos);
  EXPECT_EQ(printed.find("ip6"), printed.npos);
}

TEST(Result, RefusesWhatHasNoForm) {
  const auto no_address = print_result({}, "0.2.0");
  ASSERT_FALSE(no_address);
  EXPECT_EQ(no_address.error(), (Error{Code::internal, "cannot convert: no valid IP addresses", {}}));
  EXPECT_EQ(*print_result({}, "1.1.0"), "{\n    \"cniVersion\": \"1.1.0\"\n}");
  const auto unknown = print_result({{kV4}, {}, {}}, "0.3.2");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().msg, "cannot convert: no result form for version \"0.3.2\"");
}

TEST(Result, ARouteWithoutDestinationPrintsAsTheReferenceDoes) {
  const AddResult result{{kV4}, {Route{}}, {}};
  const std::string printed = *print_result(result, "1.0.0");
  EXPECT_NE(printed.find("\"dst\": \"\\u003cnil\\u003e\""), printed.npos) << printed;
}

TEST(Error, PrintsCodeMessageAndDetails) {
  EXPECT_EQ(print_error({Code::invalid_network_config, "missing network name", {}}),
            "{\n    \"code\": 7,\n    \"msg\": \"missing network name\"\n}");
  EXPECT_EQ(print_error({Code::internal, "a<b", "line\nline"}),
            "{\n    \"code\": 999,\n    \"msg\": \"a\\u003cb\",\n    \"details\": \"line\\nline\"\n}");
}

TEST(Error, LongTextsAreCut) {
  const std::string printed = print_error({Code::internal, std::string(kErrorTextBytesMax + 1, 'x'), {}});
  EXPECT_LT(printed.size(), kErrorTextBytesMax + 100);
  EXPECT_NE(printed.find("xxx...\""), printed.npos);
}

TEST(JsonWriter, AllKindsOfValues) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_array();
  out.unsigned_integer(UINT64_MAX);
  out.boolean(true);
  out.boolean(false);
  out.null();
  out.raw("{\"a\":1.50}");
  out.end_array();
  EXPECT_EQ(std::move(out).take(), "[18446744073709551615,true,false,null,{\"a\":1.50}]");
}

/// Text is passed on eight bytes at a time; alone a character takes another way.
TEST(JsonWriter, EveryByteIsEscapedAlikeAtEveryPlace) {
  const auto written = [](std::string_view text) {
    JsonWriter out(JsonWriter::Layout::compact);
    out.text(text);
    std::string json = std::move(out).take();
    return json.substr(1, json.size() - 2);
  };
  for (int first = 0; first < 256; ++first) {
    const std::string a(1, static_cast<char>(first));
    for (const char* b : {"", "x", "<", "\"", "\x01", " "}) {
      for (std::size_t before = 0; before < 17; ++before) {
        const std::string front(before, 'x');
        EXPECT_EQ(written(front + a + b + "yyyyyyyy"), front + written(a) + written(b) + "yyyyyyyy") << first << b;
      }
    }
  }
  EXPECT_EQ(written("<>&"), "\\u003c\\u003e\\u0026");
}

TEST(JsonWriter, EmptyContainersAndBadBytes) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_array();
  out.begin_object();
  out.end_object();
  out.begin_array();
  out.end_array();
  out.integer(-5);
  out.text("\xFF\xC3\xA4\xE2\x80\xA9\t");
  out.end_array();
  EXPECT_EQ(std::move(out).take(), "[{},[],-5,\"\\ufffd\xC3\xA4\\u2029\\t\"]");
}

}  // namespace
}  // namespace croft::wire::cni

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
