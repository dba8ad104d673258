#include "hostlocal/format/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "cni/format/network.h"

// Numbers in brackets are rows of docs/notes/host-local.md#cases.

namespace croft::wire::host_local {
namespace {

using net::Address;

// [1, 9, 111]
TEST(HostLocalFiles, AReservationIsContainerAndInterface) {
  EXPECT_EQ(print_holder({"dummy", "eth0"}), "dummy\r\neth0");
  EXPECT_EQ(print_holder({"   dummy\n ", "eth0"}), "dummy\r\neth0");
  EXPECT_EQ(print_holder({"dummy", ""}), "dummy");
  const std::pair<const char*, std::optional<Holder>> rows[] = {
      {"dummy\r\neth0", Holder{"dummy", "eth0"}},
      {"dummy", Holder{"dummy", ""}},
      {"", std::nullopt},
      // White space at the ends does not count.
      {" dummy\r\neth0 \n", Holder{"dummy", "eth0"}},
      {"dummy\r\n", Holder{"dummy", ""}},
      {"\xE2\x80\x83\t dummy\r\neth0\v\f\xC2\x85", Holder{"dummy", "eth0"}},
      // Whatever else it says is the container.
      {"dummy\neth0", Holder{"dummy\neth0", ""}},
      {"dummy \r\neth0", Holder{"dummy ", "eth0"}},
      {"dummy\r\neth0\r\neth1", Holder{"dummy", "eth0\r\neth1"}},
      {" \n", Holder{"", ""}},
  };
  for (const auto& [content, holder] : rows) EXPECT_EQ(parse_holder(content), holder) << content;
  EXPECT_EQ(holder_key(" dummy\r\neth0 \n"), "dummy\r\neth0");
  EXPECT_EQ(holder_key(" \r\n\xC2\xA0"), "");
  // A lone byte of UTF-8 is no white space, even if Latin-1 has some there.
  EXPECT_EQ(holder_key("\x85 dummy\xA0"), "\x85 dummy\xA0");
  EXPECT_EQ(holder_key("dummy\xE2\x80"), "dummy\xE2\x80");
}

// [114]
TEST(HostLocalFiles, FilesAreNamedByTheCanonicalText) {
  EXPECT_EQ(file_name(address("10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(file_name(address("2001:0DB8::00ff")), "2001:db8::ff");
  EXPECT_EQ(file_name(address("2001:db8::1.2.3.4")), "2001:db8::102:304");
  EXPECT_EQ(file_name(address("::1.2.3.4")), "::102:304");
  EXPECT_EQ(file_name(address("::ffff:10.1.2.3")), "10.1.2.3");
}

TEST(HostLocalFiles, ANameThatIsAnAddressIsAReservation) {
  EXPECT_EQ(address_of_file("10.1.2.3"), address("10.1.2.3"));
  EXPECT_EQ(address_of_file("2001:DB8::1"), address("2001:db8::1"));
  EXPECT_EQ(address_of_file("::ffff:10.1.2.3"), address("10.1.2.3"));
  for (const char* name : {"", "lock", "last_reserved_ip.0", "10.1.2.3.tmp", " 10.1.2.3", "010.1.2.3", "fe80::1%eth0",
                           "10.1.2.3\n", "2001_db8__1", ".", ".."}) {
    EXPECT_EQ(address_of_file(name), std::nullopt) << name;
  }
}

TEST(HostLocalFiles, ACursorFileIsNamedByTheNumberOfItsSet) {
  EXPECT_EQ(cursor_file_name(0), "last_reserved_ip.0");
  EXPECT_EQ(cursor_file_name(12), "last_reserved_ip.12");
  EXPECT_EQ(set_of_cursor_file("last_reserved_ip.0"), 0U);
  EXPECT_EQ(set_of_cursor_file("last_reserved_ip.18446744073709551615"), 18446744073709551615U);
  for (const char* name :
       {"last_reserved_ip.", "last_reserved_ip", "last_reserved_ip.00", "last_reserved_ip.01", "last_reserved_ip.-1",
        "last_reserved_ip.+1", "last_reserved_ip.1 ", "last_reserved_ip.18446744073709551616", "Last_reserved_ip.1"}) {
    EXPECT_EQ(set_of_cursor_file(name), std::nullopt) << name;
  }
}

// [108]
TEST(HostLocalFiles, ACursorIsExactlyAnAddress) {
  EXPECT_EQ(parse_cursor("10.1.2.7"), address("10.1.2.7"));
  EXPECT_EQ(parse_cursor("2001:db8::7"), address("2001:db8::7"));
  EXPECT_EQ(parse_cursor("::ffff:10.1.2.7"), address("10.1.2.7"));
  for (const char* content : {"garbage", "10.1.2.7\n", "", " 10.1.2.7", "10.1.2.7/24"}) {
    EXPECT_EQ(parse_cursor(content), std::nullopt) << content;
  }
}

}  // namespace
}  // namespace croft::wire::host_local

// Numbers in brackets are rows of docs/notes/host-local.md#cases.

namespace croft::wire::cni {

namespace {

using net::Address;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

net::AddressWithLength cidr(std::string_view text) { return net::AddressWithLength::parse(text).value(); }

/// A configuration with these members in `ipam` and these behind it.
std::string with(std::string_view ipam, std::string_view behind = "", std::string_view version = "1.0.0") {
  return R"({"cniVersion":")" + std::string(version) + R"(","name":"mynet","ipam":{)" + std::string(ipam) + "}" +
         std::string(behind) + "}";
}
std::string with_range(std::string_view range) { return with(R"("ranges":[[{)" + std::string(range) + "}]]"); }

/// `[["a","b"],["c"]]` as range sets.
std::string sets(const std::vector<std::vector<std::string>>& subnets) {
  std::string text;
  for (const auto& set : subnets) {
    text += text.empty() ? "[" : ",[";
    for (const auto& subnet : set)
      text += std::string(text.back() == '[' ? "" : ",") + R"({"subnet":")" + subnet + "\"}";
    text += "]";
  }
  return "[" + text + "]";
}
std::string with_sets(const std::vector<std::vector<std::string>>& subnets, std::string_view behind = "",
                      std::string_view version = "1.0.0") {
  return with(R"("ranges":)" + sets(subnets), behind, version);
}

Checked<HostLocalConfig> decode(std::string_view text, Command command = Command::add, const std::string& args = {}) {
  auto network = read_network(*parse_network_config(text));
  if (!network) return network.error();
  return decode_host_local_config(*network, args, command);
}

/// The message of the refusal, its code in front unless it is 999; empty when there is none.
std::string refusal(std::string_view text, Command command = Command::add, const std::string& args = {}) {
  const auto config = decode(text, command, args);
  if (config) return "";
  const bool internal = config.error().code == Code::internal;
  if (internal) {
    EXPECT_EQ(config.error().details, "");
  }
  return (internal ? "" : std::to_string(static_cast<int>(config.error().code)) + " ") + config.error().msg;
}

std::vector<std::string> texts(const std::vector<core::host_local::RangeSet>& sets) {
  std::vector<std::string> all;
  for (const auto& set : sets) all.push_back(set.to_string());
  return all;
}

std::vector<std::string> texts(const std::vector<Address>& addresses) {
  std::vector<std::string> all;
  for (const auto& one : addresses) all.push_back(one.to_string());
  return all;
}

const std::string kPlain = R"("ranges":[[{"subnet":"10.1.2.0/24"}]])";

// ---- ranges

// docs/notes/node-ranges.md#delegate
TEST(HostLocalConfig, ReadsWhatFlannelWrites) {
  const HostLocalConfig config = *decode(
      R"({"cniVersion":"0.3.1","hairpinMode":true,"ipMasq":false,"ipam":{"ranges":[[{"subnet":"10.244.0.0/24"}]],)"
      R"("routes":[{"dst":"10.244.0.0/16"}],"type":"host-local"},"isDefaultGateway":true,"isGateway":true,"mtu":1450,)"
      R"("name":"cbr0","type":"bridge"})");
  EXPECT_EQ(config.name, "cbr0");
  EXPECT_EQ(config.data_dir, "/var/lib/cni/networks");
  EXPECT_EQ(config.resolv_conf, "");
  EXPECT_THAT(texts(config.sets), ElementsAre("10.244.0.1-10.244.0.254"));
  EXPECT_EQ(config.set_count, 1U);
  EXPECT_THAT(config.routes, ElementsAre(Route{cidr("10.244.0.0/16"), {}, 0, 0, 0, {}, {}}));
  EXPECT_THAT(config.requested_addresses, IsEmpty());
}

// docs/notes/host-local.md#worked-example
TEST(HostLocalConfig, ReadsTheWorkedExample) {
  const HostLocalConfig config = *decode(with(
      R"("type":"host-local","ranges":[[{"subnet":"10.10.0.0/16","rangeStart":"10.10.1.20","rangeEnd":"10.10.3.50",)"
      R"("gateway":"10.10.0.254"},{"subnet":"172.16.5.0/24"}],[{"subnet":"3ffe:ffff:0:01ff::/64",)"
      R"("rangeStart":"3ffe:ffff:0:01ff::0010","rangeEnd":"3ffe:ffff:0:01ff::0020"}]],"routes":[{"dst":"0.0.0.0/0"},)"
      R"({"dst":"192.168.0.0/16","gw":"10.10.5.1"},{"dst":"3ffe:ffff:0:01ff::1/64"}],"dataDir":"/run/my-ipam-path")"));
  EXPECT_THAT(texts(config.sets),
              ElementsAre("10.10.1.20-10.10.3.50,172.16.5.1-172.16.5.254", "3ffe:ffff:0:1ff::10-3ffe:ffff:0:1ff::20"));
  EXPECT_EQ(config.sets[0].ranges()[0].gateway, address("10.10.0.254"));
  EXPECT_EQ(config.data_dir, "/run/my-ipam-path");
  EXPECT_THAT(config.routes, SizeIs(3));
  EXPECT_EQ(config.routes[1].gateway, address("10.10.5.1"));
  EXPECT_EQ(config.routes[2].destination.to_string(), "3ffe:ffff:0:1ff::1/64");
}

// [43, 44, 45, 98]
TEST(HostLocalConfig, SetsComeFromTheRuntimeTheLegacyRangeAndRanges) {
  const std::string legacy =
      R"("subnet":"10.1.2.0/24","rangeStart":"10.1.2.9","rangeEnd":"10.1.2.20","gateway":"10.1.2.30")";
  const HostLocalConfig one = *decode(with(legacy));
  EXPECT_THAT(texts(one.sets), ElementsAre("10.1.2.9-10.1.2.20"));
  EXPECT_EQ(one.sets[0].ranges()[0].gateway, address("10.1.2.30"));
  const HostLocalConfig all =
      *decode(with(legacy + R"(,"ranges":[[{"subnet":"11.1.2.0/24"}],[{"subnet":"11.1.3.0/24"}]])",
                   R"(,"runtimeConfig":{"irrelevant":"a","ipRanges":[[{"subnet":"12.1.3.0/24"}]]})"));
  EXPECT_THAT(texts(all.sets),
              ElementsAre("12.1.3.1-12.1.3.254", "10.1.2.9-10.1.2.20", "11.1.2.1-11.1.2.254", "11.1.3.1-11.1.3.254"));
  const HostLocalConfig no_subnet = *decode(with(R"("gateway":"10.1.2.77","rangeStart":"1.1.1.1",)" + kPlain));
  EXPECT_THAT(texts(no_subnet.sets), ElementsAre("10.1.2.1-10.1.2.254"));
  EXPECT_EQ(no_subnet.sets[0].ranges()[0].gateway, address("10.1.2.1"));
}

// [90]
TEST(HostLocalConfig, WhatIsMissing) {
  EXPECT_EQ(refusal(R"({"name":"mynet"})"), "IPAM config missing 'ipam' key");
  EXPECT_EQ(refusal(R"({"name":"mynet","ipam":null})"), "IPAM config missing 'ipam' key");
  EXPECT_EQ(refusal(R"({"name":"mynet","ipam":{"subnet":"10.1.2.0/24"},"ipam":null})"),
            "IPAM config missing 'ipam' key");
  EXPECT_EQ(refusal(with("")), "no IP ranges specified");
  EXPECT_EQ(refusal(with(R"("ranges":[])")), "no IP ranges specified");
  EXPECT_EQ(refusal(with(R"("ranges":null)")), "no IP ranges specified");
  EXPECT_EQ(refusal(with(R"("ranges":[[]])")), "invalid range set 0: empty range set");
  EXPECT_EQ(refusal(with(R"("ranges":[null])")), "invalid range set 0: empty range set");
  EXPECT_EQ(refusal(with(R"("ranges":[[{}]])")), "invalid range set 0: IP <nil> not v4 nor v6");
  EXPECT_EQ(refusal(with(R"("ranges":[[null]])")), "invalid range set 0: IP <nil> not v4 nor v6");
}

// [49, 50, 51]
TEST(HostLocalConfig, SetsAreCheckedInOrderThenTheirOverlap) {
  EXPECT_EQ(refusal(with_sets(
                {{"10.1.2.0/24", "10.2.2.0/24"}, {"10.1.4.0/24", "10.1.6.0/24", "10.1.8.0/24", "10.1.2.0/24"}})),
            "range set 0 overlaps with 1");
  EXPECT_EQ(refusal(with_sets({{"10.1.0.0/24"}, {"10.2.0.0/24"}, {"10.3.0.0/24"}, {"10.2.0.0/24"}})),
            "range set 1 overlaps with 3");
  EXPECT_EQ(refusal(with_sets({{"10.1.0.0/22", "10.1.2.0/24"}})),
            "invalid range set 0: subnets 10.1.0.1-10.1.3.254 and 10.1.2.1-10.1.2.254 overlap");
  EXPECT_EQ(refusal(with_sets({{"10.1.0.0/22", "2001:db8:5::/64"}})), "invalid range set 0: mixed address families");
  EXPECT_EQ(refusal(with_sets({{"10.1.2.0/24"}, {"10.1.2.0/24"}, {"10.1.2.0/31"}})),
            "invalid range set 2: Network 10.1.2.0/31 too small to allocate from");
}

// [12, 52, 53]; docs/notes/host-local.md#load-order, step 5
TEST(HostLocalConfig, OldVersionsHaveOneSetAFamily) {
  const std::vector<std::vector<std::string>> two = {{"10.1.2.0/24"}, {"11.1.2.0/24"}};
  EXPECT_EQ(refusal(with_sets(two, "", "0.2.0")), "CNI version 0.2.0 does not support more than 1 address per family");
  EXPECT_EQ(refusal(with_sets(two, "", "0.1.0")), "CNI version 0.1.0 does not support more than 1 address per family");
  EXPECT_EQ(refusal(with_sets(two, "", "")), "CNI version  does not support more than 1 address per family");
  EXPECT_EQ(refusal(with_sets(two, "", "x")), "CNI version x does not support more than 1 address per family");
  EXPECT_EQ(refusal(R"({"name":"mynet","ipam":{"ranges":)" + sets({{"::/64"}, {"1::/64"}}) + "}}"),
            "CNI version  does not support more than 1 address per family");
  EXPECT_EQ(refusal(with_sets(two, "", "0.3.0")), "");
  EXPECT_EQ(refusal(with_sets({{"10.1.2.0/24"}, {"2001:db8:1::/48"}}, "", "0.2.0")), "");
  // Before the overlap of sets is looked for.
  EXPECT_EQ(refusal(with_sets({{"10.1.2.0/24"}, {"10.1.2.0/24"}}, "", "0.2.0")),
            "CNI version 0.2.0 does not support more than 1 address per family");
}

// [91]
TEST(HostLocalConfig, SubnetsAreCidrs) {
  for (const std::string text : {"10.1.2.0", "10.1.2.0/33", "", " 10.1.2.0/24", "10.1.2.0/24 ", "10.1.02.0/24",
                                 "10.1.2.0/", "10.1.2.0/+24", "10.1.2.0/24/24", "::1%eth0/64", "::/129", "/24"}) {
    EXPECT_EQ(refusal(with_range(R"("subnet":")" + text + "\"")), "invalid CIDR address: " + text);
    EXPECT_EQ(refusal(with(R"("subnet":")" + text + "\"")), "invalid CIDR address: " + text);
  }
  EXPECT_EQ(refusal(with_range(R"("subnet":null)")), "invalid CIDR address: ");
  EXPECT_EQ(refusal(with_range(R"("subnet":"10.1.2.0/24","subnet":null)")), "invalid CIDR address: ");
  // Go takes zeros in front of a length.
  EXPECT_THAT(texts(decode(with_range(R"("subnet":"10.1.2.0/024")"))->sets), ElementsAre("10.1.2.1-10.1.2.254"));
  EXPECT_THAT(texts(decode(with_range(R"("subnet":"0.0.0.0/00")"))->sets), ElementsAre("0.0.0.1-255.255.255.254"));
}

// docs/notes/cni.md#json-rules
TEST(HostLocalConfig, EndsAndGatewaysAreAddresses) {
  for (const char* member : {"rangeStart", "rangeEnd", "gateway"}) {
    for (const std::string text : {"foo", "10.1.2.010", " 10.1.2.9", "10.1.2.9/24", "fe80::1%eth0"}) {
      EXPECT_EQ(refusal(with_range(R"("subnet":"10.1.2.0/24",")" + std::string(member) + R"(":")" + text + "\"")),
                "invalid IP address: " + text);
      EXPECT_EQ(refusal(with(kPlain + ",\"" + member + R"(":")" + text + "\"")), "invalid IP address: " + text);
    }
    for (const char* unset : {"\"\"", "null"}) {
      const std::string twice = fmt::format(R"("subnet":"10.1.2.0/24","{}":"10.1.2.9","{}":{})", member, member, unset);
      EXPECT_EQ(decode(with_range(twice))->sets, decode(with(kPlain))->sets);
    }
  }
}

// ---- requested addresses

// [46, 47, 48, 101]
TEST(HostLocalConfig, RequestedAddressesComeFromThreePlaces) {
  const auto requested = [](std::string_view behind, const std::string& args) {
    return texts(decode(with(kPlain, behind), Command::add, args)->requested_addresses);
  };
  EXPECT_THAT(requested("", "IP=10.1.2.10"), ElementsAre("10.1.2.10"));
  EXPECT_THAT(requested("", "IP=10.1.2.11/24"), ElementsAre("10.1.2.11"));
  EXPECT_THAT(requested("", "IP="), IsEmpty());
  EXPECT_THAT(requested(R"(,"runtimeConfig":{"ips":["10.1.2.10/24","2001:db8:1::11/64"]})",
                        "IP=10.1.2.10/24,2001:db8:1::11/64"),
              ElementsAre("10.1.2.10", "2001:db8:1::11"));
  EXPECT_THAT(requested(R"(,"args":{"cni":{"ips":["10.1.2.11","11.11.11.11/8","2001:db8:1::11/64"]}})", "IP=10.1.2.10"),
              ElementsAre("10.1.2.10", "10.1.2.11", "11.11.11.11", "2001:db8:1::11"));
  EXPECT_THAT(requested(R"(,"runtimeConfig":{"ips":["192.168.0.1","192.168.0.5/24","2001:db8::1/64"]})", ""),
              ElementsAre("192.168.0.1", "192.168.0.5", "2001:db8::1"));
  EXPECT_THAT(requested(R"(,"runtimeConfig":{"ips":["10.0.0.3","10.0.0.1"]},"args":{"cni":{"ips":["10.0.0.2"]}})",
                        "IP=10.0.0.1"),
              ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"));
  EXPECT_THAT(requested(R"(,"args":{"cni":{"ips":["::ffff:10.1.2.9","10.1.2.88","10.1.2.88/16","10.1.2.9/016"]}})", ""),
              ElementsAre("10.1.2.9", "10.1.2.88"));
  EXPECT_THAT(requested(R"(,"args":{"cni":{"ips":["10.1.2.9"]}},"args":null,"runtimeConfig":{"ips":null})", ""),
              IsEmpty());
  EXPECT_THAT(requested(R"(,"args":{"cni":{"ips":["10.1.2.9"],"ips":null}},"runtimeConfig":null)", ""), IsEmpty());
}

// [102]
TEST(HostLocalConfig, RequestedAddressesAreTexts) {
  for (const std::string text : {"foo", "10.1.2.9/40", " 10.1.2.9", "10.1.2.9 "}) {
    EXPECT_EQ(refusal(with(kPlain, R"(,"args":{"cni":{"ips":[")" + text + "\"]}}")), "invalid IP address " + text);
    EXPECT_EQ(refusal(with(kPlain, R"(,"runtimeConfig":{"ips":[")" + text + "\"]}")), "invalid IP address " + text);
  }
  EXPECT_EQ(refusal(with(kPlain, R"(,"args":{"cni":{"ips":[""]}})")), "cannot understand ip: IP <nil> not v4 nor v6");
  EXPECT_EQ(refusal(with(kPlain, R"(,"args":{"cni":{"ips":["10.1.2.3",5]}})")),
            "invalid network config: args.cni.ips[1]: an integer (5) where a string is wanted");
  // docs/notes/host-local.md#h15: the reference crashes.
  EXPECT_EQ(refusal(with(kPlain, R"(,"args":{"cni":{"ips":[null]}})")),
            "invalid network config: args.cni.ips[0]: null where a string is wanted");
  EXPECT_EQ(refusal(with(kPlain, R"(,"runtimeConfig":{"ips":[null]})")),
            "invalid network config: runtimeConfig.ips[0]: null where a string is wanted");
}

// [104]
TEST(HostLocalConfig, CniArgsAreRefusedWithCode999) {
  const std::pair<std::string, std::string> cases[] = {
      {"FOO=BAR;X=1", R"(ARGS: unknown args ["FOO=BAR" "X=1"])"},
      {"ip=10.1.2.3", R"(ARGS: unknown args ["ip=10.1.2.3"])"},
      {"IP", R"(ARGS: invalid pair "IP")"},
      {"IP=10.1.2.3;", R"(ARGS: invalid pair "")"},
      {"IP=1=2", R"(ARGS: invalid pair "IP=1=2")"},
      {"IP=foo", R"(ARGS: error parsing value of pair "IP=foo": invalid IP address foo)"},
      {"K8S_POD_NAME=a", R"(ARGS: unknown args ["K8S_POD_NAME=a"])"},
  };
  for (const auto& [args, text] : cases) EXPECT_EQ(refusal(with(kPlain), Command::add, args), text);
  EXPECT_EQ(refusal(with(kPlain), Command::add, "IgnoreUnknown=1;K8S_POD_NAME=a;K8S_POD_UID=b"), "");
}

// docs/notes/host-local.md#load-order
TEST(HostLocalConfig, FaultsAreFoundInTheReferencesOrder) {
  const std::string no_address = R"(,"args":{"cni":{"ips":[""]}})";
  const std::string bad_json = R"(,"runtimeConfig":{"ipRanges":[[{"subnet":"x"}]]})";
  EXPECT_EQ(refusal(with("", no_address + bad_json), Command::add, "IP=foo"), "invalid CIDR address: x");
  EXPECT_EQ(refusal(R"({"name":"mynet")" + no_address + "}", Command::add, "IP=foo"), "IPAM config missing 'ipam' key");
  EXPECT_EQ(refusal(with("", no_address), Command::add, "IP=foo"),
            R"(ARGS: error parsing value of pair "IP=foo": invalid IP address foo)");
  EXPECT_EQ(refusal(with("", no_address)), "cannot understand ip: IP <nil> not v4 nor v6");
  // The first of the text, wherever it is.
  EXPECT_EQ(refusal(with(R"("gateway":"a","subnet":"b")", R"(,"runtimeConfig":{"ips":["c"]})")),
            "invalid IP address: a");
  EXPECT_EQ(refusal(R"({"name":"mynet","runtimeConfig":{"ips":["c"]},"ipam":{"gateway":"a"}})"),
            "invalid IP address c");
}

// ---- routes, paths, types

TEST(HostLocalConfig, RoutesKeepWhatTheySay) {
  const HostLocalConfig config = *decode(with(kPlain + R"(,"routes":[{"dst":"10.9.0.7/8"},{},null,
      {"dst":"::/0","gw":"2001:db8::1","mtu":1400,"advmss":1360,"priority":5,"table":0,"scope":253},
      {"dst":"::ffff:1.2.3.4/120","gw":"::ffff:1.2.3.4"},{"dst":"::ffff:1.2.3.4/64","gw":"","table":1,"table":null}])"));
  EXPECT_THAT(config.routes, ElementsAre(Route{cidr("10.9.0.7/8"), {}, 0, 0, 0, {}, {}}, Route{},
                                         Route{cidr("::/0"), address("2001:db8::1"), 1400, 1360, 5, 0, 253},
                                         Route{cidr("1.2.3.4/24"), address("1.2.3.4"), 0, 0, 0, {}, {}},
                                         Route{cidr("1.2.3.4/0"), {}, 0, 0, 0, {}, {}}));
}

TEST(HostLocalConfig, RoutesAreRefused) {
  const auto refused = [](const std::string& route) { return refusal(with(kPlain + R"(,"routes":[)" + route + "]")); };
  EXPECT_EQ(refused(R"({"dst":"10.0.0.0"})"), "invalid CIDR address: 10.0.0.0");
  EXPECT_EQ(refused(R"({"dst":null})"), "invalid CIDR address: ");
  EXPECT_EQ(refused(R"({"dst":"10.0.0.0/8","gw":"foo"})"), "invalid IP address: foo");
  EXPECT_EQ(refused(R"({"mtu":"1"})"),
            "invalid network config: ipam.routes[0].mtu: a string (\"1\") where an integer is wanted");
  EXPECT_EQ(
      refused(R"({"scope":99999999999999999999})"),
      "invalid network config: ipam.routes[0].scope: 99999999999999999999 is out of range: -9223372036854775808 to "
      "9223372036854775807");
}

TEST(HostLocalConfig, PathsAreTexts) {
  const HostLocalConfig config = *decode(with(kPlain + R"(,"dataDir":"a/b","resolvConf":"/etc/resolv.conf")"));
  EXPECT_EQ(config.data_dir, "a/b");
  EXPECT_EQ(config.resolv_conf, "/etc/resolv.conf");
  EXPECT_EQ(decode(with(kPlain + R"(,"dataDir":"")"))->data_dir, kDefaultDataDir);
  EXPECT_EQ(decode(with(kPlain + R"(,"dataDir":"/a","dataDir":null)"))->data_dir, "/a");
  for (const Command command : {Command::add, Command::del, Command::gc}) {
    EXPECT_EQ(refusal(with(kPlain + R"(,"dataDir":"/a\u0000b")"), command),
              R"(invalid network config: ipam.dataDir: "/a\x00b" has a NUL byte)");
    EXPECT_EQ(refusal(with(kPlain + R"(,"dataDir":5)"), command),
              "invalid network config: ipam.dataDir: an integer (5) where a string is wanted");
    EXPECT_EQ(refusal(with(kPlain + R"(,"dataDir":")" + std::string(4096, 'a') + "\""), command), "");
    EXPECT_THAT(refusal(with(kPlain + R"(,"dataDir":")" + std::string(4097, 'a') + "\""), command),
                testing::EndsWith("has 4097 bytes, at most 4096 are allowed"));
  }
}

// docs/notes/cni.md#json-rules
TEST(HostLocalConfig, MembersMatchInAnyCaseAndObjectsMerge) {
  const HostLocalConfig config = *decode(
      R"({"NAME":"mynet","CNIVERSION":"1.0.0","IPAM":{"RANGES":[[{"Subnet":"10.1.2.0/24","RANGEstart":"10.1.2.9"}]]},)"
      R"("ipam":{"datadir":"/a"}})");
  EXPECT_THAT(texts(config.sets), ElementsAre("10.1.2.9-10.1.2.254"));
  EXPECT_EQ(config.data_dir, "/a");
}

TEST(HostLocalConfig, WrongTypesNameTheMember) {
  const std::string front = "invalid network config: ";
  EXPECT_EQ(refusal(R"({"name":"mynet","ipam":5})"), front + "ipam: an integer (5) where an object is wanted");
  EXPECT_EQ(refusal(with(R"("ranges":{})")), front + "ipam.ranges: an object where an array is wanted");
  EXPECT_EQ(refusal(with(R"("ranges":[{}])")), front + "ipam.ranges[0]: an object where an array is wanted");
  EXPECT_EQ(refusal(with(R"("ranges":[[[]]])")), front + "ipam.ranges[0][0]: an array where an object is wanted");
  EXPECT_EQ(refusal(with_range(R"("subnet":5)")),
            front + "ipam.ranges[0][0].subnet: an integer (5) where a string is wanted");
  EXPECT_EQ(refusal(with_range(R"("gateway":true)")),
            front + "ipam.ranges[0][0].gateway: a boolean where a string is wanted");
  EXPECT_EQ(refusal(with(R"("name":5)")), front + "ipam.name: an integer (5) where a string is wanted");
  EXPECT_EQ(refusal(with("", R"(,"args":[])")), front + "args: an array where an object is wanted");
  EXPECT_EQ(refusal(R"({"name":5})"),
            "6 error unmarshall network config: name: an integer (5) where a string is wanted");
  EXPECT_EQ(refusal(R"({"name":"te%%st"})"), "7 invalid characters found in network name");
}

TEST(HostLocalConfig, EverythingHasALimit) {
  const auto list = [](std::size_t count, const std::string& element) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + element;
    return "[" + text + "]";
  };
  const std::string front = "invalid network config: ";
  EXPECT_EQ(refusal(with(R"("ranges":)" + list(1025, "[]"))), front + "ipam.ranges: more than 1024 elements");
  EXPECT_EQ(refusal(with(R"("ranges":[)" + list(1025, "{}") + "]")), front + "ipam.ranges[0]: more than 1024 elements");
  EXPECT_EQ(refusal(with(kPlain + R"(,"routes":)" + list(4097, "{}"))), front + "ipam.routes: more than 4096 elements");
  EXPECT_EQ(refusal(with(kPlain, R"(,"args":{"cni":{"ips":)" + list(1025, R"("1.1.1.1")") + "}}")),
            front + "args.cni.ips: more than 1024 elements");
  EXPECT_EQ(refusal(with(R"("ranges":)" + list(1024, "[]"), R"(,"runtimeConfig":{"ipRanges":[[]]})")),
            "1025 range sets are given, at most 1024 are allowed");
  EXPECT_EQ(refusal(with(R"("ranges":)" + list(5, list(1024, "{}")))),
            "5120 ranges are given, at most 4096 are allowed");
}

// ---- commands

// docs/notes/host-local.md#h10
TEST(HostLocalConfig, AReleaseNeedsNameAndDataDirAlone) {
  const std::string broken = with(R"("ranges":[[{"subnet":"x"}],5],"routes":5,"dataDir":"/a","resolvConf":7,"type":{})",
                                  R"(,"runtimeConfig":{"ipRanges":[[]],"ips":[null]},"args":7)");
  for (const Command command : {Command::del, Command::gc}) {
    const auto config = decode(broken, command, "FOO=BAR");
    ASSERT_TRUE(config) << config.error().msg;
    EXPECT_EQ(config->name, "mynet");
    EXPECT_EQ(config->data_dir, "/a");
    EXPECT_THAT(config->sets, IsEmpty());
    EXPECT_EQ(config->set_count, 3U);
    EXPECT_EQ(decode(with(""), command)->set_count, 0U);
    EXPECT_EQ(decode(with(R"("subnet":"10.1.2.0/24","ranges":[[],[]])", R"(,"runtimeConfig":5)"), command)->set_count,
              3U);
    EXPECT_EQ(refusal(R"({"name":"mynet","ipam":5})", command),
              "invalid network config: ipam: an integer (5) where an object is wanted");
  }
  // Row 88: GC succeeds without `ipam`, and then knows no directory to free anything in.
  EXPECT_EQ(refusal(R"({"name":"mynet"})", Command::del), "IPAM config missing 'ipam' key");
  const auto collection = decode(R"({"name":"mynet"})", Command::gc);
  ASSERT_TRUE(collection);
  EXPECT_FALSE(collection->has_ipam);
}

TEST(HostLocalConfig, TheDataDirIsTheOneThatGoMeans) {
  const std::pair<const char*, const char*> cases[] = {
      {"/a/b", "/a/b"}, {"/a/b/", "/a/b"}, {"//a//./b", "/a/b"},   {"/x/link/../b", "/x/b"},
      {"/..", "/"},     {"/../a", "/a"},   {"a/../..", ".."},      {"../../a", "../../a"},
      {".", "."},       {"a/..", "."},     {"/a/../../../b", "/b"}};
  for (const auto& [given, clean] : cases) {
    const auto config = decode(with(std::string(R"("dataDir":")") + given + "\""), Command::del);
    ASSERT_TRUE(config);
    EXPECT_EQ(config->data_dir, clean) << given;
  }
  EXPECT_EQ(decode(with(R"("dataDir":"")"), Command::del)->data_dir, kDefaultDataDir);
}

TEST(HostLocalConfig, CheckAndStatusReadWhatAddReads) {
  for (const Command command : {Command::check, Command::status}) {
    EXPECT_EQ(refusal(with(""), command), "no IP ranges specified");
    EXPECT_EQ(refusal(with(kPlain), command, "FOO=BAR"), R"(ARGS: unknown args ["FOO=BAR"])");
    EXPECT_THAT(decode(with(kPlain), command)->sets, SizeIs(1));
  }
}

TEST(HostLocalConfig, OnlyCheckReadsThePreviousResult) {
  const std::string previous = R"(,"prevResult":{"ips":[{"address":"10.1.2.3/24"},{"address":"2001:db8::1/64"}]})";
  EXPECT_THAT(decode(with(kPlain, previous), Command::check)->previous_addresses,
              ElementsAre(cidr("10.1.2.3/24"), cidr("2001:db8::1/64")));
  EXPECT_THAT(decode(with(kPlain, previous))->previous_addresses, IsEmpty());
  EXPECT_EQ(refusal(with(kPlain, R"(,"prevResult":5)")), "");
  EXPECT_EQ(refusal(with(kPlain, R"(,"prevResult":5)"), Command::check),
            "invalid network config: prevResult: an integer (5) where an object is wanted");
}

TEST(HostLocalConfig, OnlyStatusReadsItsSwitch) {
  const std::string full = with(kPlain + R"(,"statusWhenFull":true)");
  EXPECT_TRUE(decode(full, Command::status)->status_when_full);
  EXPECT_FALSE(decode(full)->status_when_full);
  const std::string bad = with(kPlain + R"(,"statusWhenFull":"yes")");
  EXPECT_EQ(refusal(bad), "");
  EXPECT_EQ(refusal(bad, Command::status),
            "invalid network config: ipam.statusWhenFull: a string (\"yes\") where a boolean is wanted");
}

TEST(HostLocalConfig, OnlyGcReadsTheListOfAttachments) {
  using Presence = ValidAttachments::Presence;
  const std::string two = with(kPlain, R"(,"cni.dev/valid-attachments":[{"containerID":"b","ifname":"eth0"},
      {"containerID":"a","ifname":"eth0"}],"cni.dev/attachments":[{"containerID":"a","ifname":"eth0"}])");
  const ValidAttachments read = decode(two, Command::gc)->valid_attachments;
  EXPECT_EQ(read.presence, Presence::given);
  EXPECT_THAT(read.entries, ElementsAre(Attachment{"a", "eth0"}, Attachment{"b", "eth0"}));
  EXPECT_EQ(decode(two, Command::del)->valid_attachments, ValidAttachments());
  EXPECT_EQ(decode(with(kPlain), Command::gc)->valid_attachments.presence, Presence::absent);
  EXPECT_EQ(refusal(with(kPlain, R"(,"cni.dev/valid-attachments":[{"ifname":"eth0"}])"), Command::gc),
            "invalid network config: cni.dev/valid-attachments[0]: has no containerID");
}

using testing::HasSubstr;

constexpr const char* kList =
    R"({"cniVersion":"1.0.0","name":"net","plugins":[{"type":"tuning"},{"type":"bridge",)"
    R"("capabilities":{"ipRanges":true,"ips":false},"ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}]]}}]})";

/// The sets as text; the error's message when there is one; "none" when there is no configuration.
std::vector<std::string> sets(std::string_view bytes, const std::string& network = "net", std::string_view args = {}) {
  const auto found = find_host_local_config(bytes, network, args);
  if (!found) return {"error: " + found.error().message};
  if (!*found) return {"none"};
  std::vector<std::string> texts;
  for (const auto& set : (*found)->sets) texts.push_back(set.to_string());
  return texts;
}

TEST(CniConfigSearch, FindsThePluginOfTheNetwork) {
  EXPECT_THAT(sets(kList), ElementsAre("10.1.0.1-10.1.0.254"));
  EXPECT_THAT(sets(R"({"name":"net","type":"bridge","ipam":{"type":"host-local","subnet":"10.2.0.0/30"}})"),
              ElementsAre("10.2.0.1-10.2.0.2"));
  EXPECT_THAT(sets(R"({"ipam":{"type":"host-local","subnet":"10.2.0.0/30"}})", ""), ElementsAre("10.2.0.1-10.2.0.2"));
  EXPECT_THAT(sets(kList, "another"), ElementsAre("none"));
  EXPECT_THAT(sets(kList, ""), ElementsAre("10.1.0.1-10.1.0.254"));
  EXPECT_THAT(sets(R"({"name":"net","plugins":[{"type":"flannel"},7,{"ipam":{"type":"dhcp"}}]})"), ElementsAre("none"));
  for (const char* bytes : {"[]", "7", "{}", R"({"plugins":7})", R"({"name":7,"ipam":[]})"}) {
    EXPECT_THAT(sets(bytes), ElementsAre("none")) << bytes;
  }
  EXPECT_THAT(sets("{"), ElementsAre(HasSubstr("error: invalid JSON")));
  EXPECT_THAT(sets(std::string(300, '[')), ElementsAre(HasSubstr("error: ")));
  EXPECT_THAT(sets(R"({"name":"net","ipam":{"type":"host-local","subnet":"10.2.0.0/33"}})"),
              ElementsAre(HasSubstr("error: invalid CIDR")));
  EXPECT_THAT(sets(R"({"name":"net","ipam":{"type":"host-local"}})"), ElementsAre(HasSubstr("error: no IP ranges")));
}

TEST(CniConfigSearch, RuntimeRangesComeFirstWhenThePluginDeclaresThem) {
  constexpr const char* kArgs = R"({"ipRanges":[[{"subnet":"10.9.0.0/30"}]],"ips":["10.9.0.2"]})";
  EXPECT_THAT(sets(kList, "net", kArgs), ElementsAre("10.9.0.1-10.9.0.2", "10.1.0.1-10.1.0.254"));
  EXPECT_THAT(find_host_local_config(kList, "net", kArgs).value()->requested_addresses, testing::IsEmpty());
  EXPECT_THAT(sets(kList, "net", "not JSON"), ElementsAre("10.1.0.1-10.1.0.254"));
}

}  // namespace

}  // namespace croft::wire::cni
