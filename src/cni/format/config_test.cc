#include "cni/format/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "cni/format/network.h"

namespace croft::wire::cni {
namespace {

using core::GatewayChoice;
using net::Address;
using testing::ElementsAre;
using testing::HasSubstr;

Checked<NetworkConfig> decode(std::string_view text, Command command = Command::add, const std::string& args = {}) {
  auto network = read_network(*parse_network_config(text));
  if (!network) return network.error();
  return decode_croft_ipam_config(*network, args, needs_of(command));
}

/// "code msg" of the refusal; empty when there is none.
std::string refusal(std::string_view text, Command command = Command::add, const std::string& args = {}) {
  const auto config = decode(text, command, args);
  return config ? "" : std::to_string(static_cast<int>(config.error().code)) + " " + config.error().msg;
}

/// A configuration with these members in `ipam` and these at the top level.
std::string with(std::string_view ipam, std::string_view top_level = "") {
  return R"({"cniVersion":"1.1.0","name":"net",)" + std::string(top_level) + R"("ipam":{"type":"croft-ipam")" +
         std::string(ipam.empty() ? "" : ",") + std::string(ipam) + "}}";
}

TEST(Config, TheLeastConfigurationHasTheDefaults) {
  const NetworkConfig config = *decode(with(""));
  NetworkConfig expected;
  expected.name = "net";
  EXPECT_EQ(config, expected);
  EXPECT_TRUE(config.ipam.assign_v4);
  EXPECT_FALSE(config.ipam.assign_v6);
}

TEST(Config, ReadsEveryMember) {
  const NetworkConfig config =
      *decode(R"({
    "cniVersion": "1.0.0", "name": "net", "type": "bridge", "nodename": "outer",
    "args": {"cni": {"ips": ["10.1.0.9/16"]}}, "runtimeConfig": {"ips": ["10.1.0.10", "10.1.0.9"]},
    "ipam": {
      "type": "croft-ipam", "store": "sqlite:/path/croft.db", "nodename": "node-a",
      "pools": [{"name": "a", "cidr": "10.1.0.0/16", "blockSize": 26, "gateway": "10.1.0.1", "cooldownSeconds": 30},
                {"name": "b", "cidr": "2001:db8::/64", "gateway": "none", "disabled": true}, {"name": "c", "cidr": "10.2.0.0/24"}],
      "assign_ipv4": "true", "assign_ipv6": "true", "ipv4_pools": ["a", "10.2.0.7/24"], "ipv6_pools": ["2001:db8::/64"],
      "ips": ["10.1.2.3"], "statusWhenFull": true, "log_file_path": "/var/log/croft/ipam.log"}})",
              Command::add, "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=pod;K8S_POD_UID=uid;IP=10.1.0.8;X=y");
  EXPECT_EQ(config.nodename, "node-a");
  EXPECT_EQ(config.ipam.store, "sqlite:/path/croft.db");
  EXPECT_EQ(config.ipam.log_file, "/var/log/croft/ipam.log");
  EXPECT_TRUE(config.ipam.assign_v6);
  EXPECT_TRUE(config.ipam.status_when_full);
  EXPECT_THAT(config.ipam.asked_pools.v4, ElementsAre(core::AskedPool("a"), core::AskedPool(prefix("10.2.0.0/24"))));
  // `croft explain` and `croftd install` read a flag by this, and are to find what an ADD takes.
  EXPECT_EQ(core::asked_pool("10.2.0.7/24"), config.ipam.asked_pools.v4[1]);
  EXPECT_THAT(config.ipam.asked_pools.v6, ElementsAre(core::AskedPool(prefix("2001:db8::/64"))));
  EXPECT_EQ(config.pod, (core::PodIdentity{"pod", "ns", "uid"}));
  EXPECT_THAT(config.requested_addresses,
              ElementsAre(address("10.1.0.8"), address("10.1.0.9"), address("10.1.0.10"), address("10.1.2.3")));
  const core::PoolSpec a{"a",
                         prefix("10.1.0.0/16"),
                         26,
                         GatewayChoice{GatewayChoice::Kind::given, address("10.1.0.1")},
                         std::chrono::seconds(30),
                         std::nullopt};
  const core::PoolSpec b{
      "b", prefix("2001:db8::/64"), std::nullopt, GatewayChoice{GatewayChoice::Kind::none, {}}, std::nullopt, true};
  const core::PoolSpec c{"c", prefix("10.2.0.0/24"), std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  EXPECT_THAT(config.ipam.pools, ElementsAre(a, b, c));
}

TEST(Config, RoutesAreRead) {
  const NetworkConfig config =
      *decode(with(R"("routes":[{"dst":"0.0.0.0/0"},{"dst":"2001:db8::/32","gw":"fe80::1","mtu":1400,"priority":7}])"));
  Route everything, one;
  everything.destination = {address("0.0.0.0"), 0};
  one.destination = {address("2001:db8::"), 32};
  one.gateway = address("fe80::1");
  one.mtu = 1400;
  one.priority = 7;
  EXPECT_THAT(config.ipam.routes, ElementsAre(everything, one));
}

// docs/notes/cni.md#json-rules
TEST(Config, MembersMatchInAnyCaseAndObjectsMerge) {
  const NetworkConfig config = *decode(
      R"({"NAME":"net","Ipam":{"type":"x","store":"memory:","nodename":"a"},"ipam":{"NodeName":"b","POOLS":null},"blocK":1})");
  EXPECT_EQ(config.ipam.store, "memory:");
  EXPECT_EQ(config.nodename, "b");
  EXPECT_EQ(decode(with(R"("store":"memory:","store":null)"))->ipam.store, "memory:");
  EXPECT_EQ(decode(with(R"("store":"memory:","store":"sqlite:/x")"))->ipam.store, "sqlite:/x");
}

TEST(Config, NodenameIsTheInnerOneElseTheOuterOne) {
  EXPECT_EQ(decode(with("", R"("nodename":"outer",)"))->nodename, "outer");
  EXPECT_EQ(decode(with(R"("nodename":"")", R"("nodename":"outer",)"))->nodename, "outer");
  EXPECT_EQ(decode(with(R"("nodename":"inner")", R"("nodename":"outer",)"))->nodename, "inner");
  EXPECT_EQ(decode(with(R"("nodename":"")"))->nodename, std::nullopt);
  EXPECT_THAT(refusal(with(R"("nodename":"a/b")")), HasSubstr("7 invalid network config: ipam.nodename: "));
  EXPECT_THAT(refusal(with("", R"("nodename":"a\n",)")), HasSubstr("7 invalid network config: nodename: "));
}

TEST(Config, SwitchesAreStringsOrBooleans) {
  const auto families = [](std::string_view ipam) {
    const auto config = decode(with(ipam));
    return std::pair(config->ipam.assign_v4, config->ipam.assign_v6);
  };
  EXPECT_EQ(families(R"("assign_ipv4":"false","assign_ipv6":"true")"), std::pair(false, true));
  EXPECT_EQ(families(R"("assign_ipv4":"true","assign_ipv6":"false")"), std::pair(true, false));
  EXPECT_EQ(families(R"("assign_ipv4":"","assign_ipv6":"yes")"), std::pair(true, false));
  EXPECT_EQ(families(R"("assign_ipv4":false,"assign_ipv6":true)"), std::pair(false, true));
  EXPECT_EQ(families(R"("assign_ipv4":null,"assign_ipv6":null)"), std::pair(true, false));
  EXPECT_EQ(refusal(with(R"("assign_ipv4":0)")),
            "999 invalid network config: ipam.assign_ipv4: an integer (0) where \"true\" or \"false\" is wanted");
}

TEST(Config, WrongTypesAreCode999AndNameTheMember) {
  const std::pair<std::string, std::string> cases[] = {
      {with(R"("store":5)"), "ipam.store: an integer (5) where a string is wanted"},
      {with(R"("pools":{})"), "ipam.pools: an object where an array is wanted"},
      {with(R"("pools":[5])"), "ipam.pools[0]: an integer (5) where an object is wanted"},
      {with(R"("pools":[null])"), "ipam.pools[0]: null where an object is wanted"},
      {with(R"("pools":[{"cidr":1}])"), "ipam.pools[0].cidr: an integer (1) where a string is wanted"},
      {with(R"("pools":[{"blockSize":"26"}])"),
       "ipam.pools[0].blockSize: a string (\"26\") where an integer is wanted"},
      {with(R"("pools":[{"blockSize":26.0}])"), "ipam.pools[0].blockSize: a number (26.0) where an integer is wanted"},
      {with(R"("ips":[5])"), "ipam.ips[0]: an integer (5) where a string is wanted"},
      {with(R"("ips":[null])"), "ipam.ips[0]: null where a string is wanted"},
      {with(R"("ipv4_pools":"a")"), "ipam.ipv4_pools: a string (\"a\") where an array is wanted"},
      {with(R"("ipv6_pools":[null])"), "ipam.ipv6_pools[0]: null where a string is wanted"},
      {with(R"("statusWhenFull":"yes")"), "ipam.statusWhenFull: a string (\"yes\") where a boolean is wanted"},
      {with("", R"("args":[],)"), "args: an array where an object is wanted"},
      {with("", R"("args":{"cni":{"ips":["10.1.2.3",[]]}},)"), "args.cni.ips[1]: an array where a string is wanted"},
      {with("", R"("runtimeConfig":{"ips":5},)"), "runtimeConfig.ips: an integer (5) where an array is wanted"},
      {R"({"name":"net","ipam":5})", "ipam: an integer (5) where an object is wanted"},
  };
  for (const auto& [text, why] : cases) EXPECT_EQ(refusal(text), "999 invalid network config: " + why);
  EXPECT_EQ(refusal(R"({"name":"n","cniVersion":5,"ipam":{}})").substr(0, 2), "6 ");
}

/// What containerd 2 hands over of a pod (the capability io.kubernetes.cri.pod-annotations).
std::string with_annotations(const std::string& members) {
  return with(R"("ipv4_pools":["configured"],"ipv6_pools":["configured6"])",
              R"("runtimeConfig":{"io.kubernetes.cri.pod-annotations":{)" + members + "}},");
}

TEST(Config, APodAsksInItsAnnotations) {
  const std::string text = with_annotations(
      R"("cni.projectcalico.org/ipv4pools":"[\"a\", \"10.2.0.0/24\"]","cni.projectcalico.org/ipAddrs":"[\"10.2.0.7\"]",)"
      R"("cni.projectcalico.org/ipFamilies":"[\"IPv6\",\"IPv4\"]","note":"[","cni.projectcalico.org/other":"{")");
  const NetworkConfig config = *decode(text);
  EXPECT_THAT(config.ipam.asked_pools.v4, ElementsAre(core::asked_pool("a"), core::asked_pool("10.2.0.0/24")));
  EXPECT_THAT(config.ipam.asked_pools.v6, ElementsAre(core::asked_pool("configured6")));
  EXPECT_THAT(config.requested_addresses, ElementsAre(net::Address::parse("10.2.0.7").value()));
  EXPECT_TRUE(config.ipam.assign_v4);
  EXPECT_TRUE(config.ipam.assign_v6);
  // A release needs none of it.
  EXPECT_EQ(decode(with_annotations(R"("cni.projectcalico.org/ipv4pools":"odd")"), Command::del)->requested_addresses,
            std::vector<net::Address>());
}

TEST(Config, CroftsAnnotationsWinOverCalicos) {
  for (const bool is_first : {true, false}) {
    const std::string crofts = R"("ipam.croft.dev/ipv4pools":"[\"mine\"]")";
    const std::string calicos = R"("cni.projectcalico.org/ipv4pools":"no list at all")";
    const auto config = decode(with_annotations(is_first ? crofts + "," + calicos : calicos + "," + crofts));
    EXPECT_THAT(config->ipam.asked_pools.v4, ElementsAre(core::asked_pool("mine")));
  }
}

TEST(Config, FaultsOfAnnotationsNameTheAnnotation) {
  const std::string at = "runtimeConfig.io.kubernetes.cri.pod-annotations.";
  const std::pair<std::string, std::string> cases[] = {
      {R"("cni.projectcalico.org/ipv4pools":5)",
       "999 invalid network config: " + at +
           "cni.projectcalico.org/ipv4pools: an integer (5) where a string is wanted"},
      {R"("cni.projectcalico.org/ipv4pools":"{}")",
       "999 invalid network config: " + at + "cni.projectcalico.org/ipv4pools: an object where an array is wanted"},
      {R"("ipam.croft.dev/ipAddrs":"[\"ten\"]")",
       "7 invalid network config: " + at + "ipam.croft.dev/ipAddrs[0]: invalid IP address \"ten\""},
      {R"("ipam.croft.dev/ipFamilies":"[]")",
       "7 invalid network config: " + at + "ipam.croft.dev/ipFamilies: it names no family"},
      {R"("cni.projectcalico.org/ipAddrsNoIpam":"[\"10.0.0.1\"]")",
       "7 invalid network config: " + at +
           "cni.projectcalico.org/ipAddrsNoIpam: an address past IPAM is not given by an IPAM plugin; remove the "
           "annotation"},
  };
  for (const auto& [members, why] : cases) EXPECT_EQ(refusal(with_annotations(members)), why);
  EXPECT_THAT(refusal(with_annotations(R"("ipam.croft.dev/ipv4pools":"[")")), testing::HasSubstr("it is no JSON list"));
}

TEST(Config, BadValuesAreCode7AndNameMemberAndValue) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"name":"net"})", "ipam is missing"},
      {R"({"name":"net","ipam":null})", "ipam is missing"},
      {R"({"name":"net","ipam":{}})", "ipam.type is missing"},
      {with(R"("store":"a\u0000b")"), "ipam.store: \"a\\x00b\" has control characters"},
      {with(R"("pools":[{"cidr":"10.0.0.0/16"}])"), "ipam.pools[0]: name is missing"},
      {with(R"("pools":[{"name":"a"}])"), "ipam.pools[0]: cidr is missing"},
      {with(R"("pools":[{"name":"a","cidr":"10.0.0.0/16","cooldownSeconds":-1}])"),
       "ipam.pools[0].cooldownSeconds: -1 is out of range: 0 to 1200"},
      {with(R"("pools":[{"name":"a","cidr":"10.0.0.0/16","blockSize":129}])"),
       "ipam.pools[0].blockSize: 129 is out of range: 0 to 128"},
      {with(R"("pools":[{"name":"a","cidr":"10.0.0.0/16"},{"name":"a","cidr":"10.9.0.0/16"}])"),
       "ipam.pools: two pools have the name a"},
      {with(R"("pools":[{"name":"a","cidr":"10.0.0.0/16"},{"name":"b","cidr":"10.0.4.0/24"}])"),
       "ipam.pools: cidr 10.0.4.0/24 of pool b overlaps cidr 10.0.0.0/16 of pool a"},
      {with(R"("ipv4_pool":["a"])"),
       "ipam: has no member \"ipv4_pool\"; did you mean \"ipv4_pools\" or \"ipv6_pools\"?"},
      {with(R"("subnet":"10.0.0.0/8")"), "ipam: has no member \"subnet\""},
      {with(R"("pools":[{"name":"a","cidr":"10.0.0.0/16","blocksizes":26}])"),
       "ipam.pools[0]: has no member \"blocksizes\"; did you mean \"blockSize\"?"},
      {with(R"("routes":[{"gw":"10.0.0.1"}])"), "ipam.routes[0]: dst is missing"},
      {with(R"("routes":[{"dst":"0.0.0.0/0","gw":"fe80::1"}])"), "ipam.routes[0]: gw is of another family than dst"},
      {with(R"("routes":[{"dst":"0.0.0.0/0","table":5}])"), "ipam.routes[0]: has no member \"table\""},
      {with(R"("routes":[{"dst":"0.0.0.0/0","mtu":70000}])"), "ipam.routes[0].mtu: 70000 is out of range: 0 to 65535"},
      {with(R"("ips":["foo"])"), "ipam.ips[0]: invalid IP address \"foo\""},
      {with(R"("ips":[""])"), "ipam.ips[0]: invalid IP address \"\""},
      {with(R"("ips":["10.1.2.9/40"])"), "ipam.ips[0]: invalid IP address \"10.1.2.9/40\""},
      {with("", R"("args":{"cni":{"ips":["fe80::1%eth0"]}},)"), "args.cni.ips[0]: invalid IP address \"fe80::1%eth0\""},
      {with(R"("ipv4_pools":["2001:db8::/64"])"), "ipam.ipv4_pools[0]: \"2001:db8::/64\" is not IPv4"},
      {with(R"("ipv6_pools":["10.0.0.0/8"])"), "ipam.ipv6_pools[0]: \"10.0.0.0/8\" is not IPv6"},
  };
  for (const auto& [text, why] : cases) EXPECT_EQ(refusal(text), "7 invalid network config: " + why);
  // Texts that come from elsewhere are named with the member.
  EXPECT_THAT(refusal(with(R"("pools":[{"name":"A!","cidr":"10.0.0.0/16"}])")),
              HasSubstr("7 invalid network config: ipam.pools[0]: pool name"));
  EXPECT_THAT(refusal(with(R"("pools":[{"name":"a","cidr":"10.0.0.1/16"}])")),
              HasSubstr("7 invalid network config: ipam.pools[0].cidr: "));
  EXPECT_THAT(refusal(with(R"("pools":[{"name":"a","cidr":"10.0.0.0/16","blockSize":40}])")),
              HasSubstr("blockSize 40 of pool a"));
  EXPECT_THAT(refusal(with(R"("pools":[{"name":"a","cidr":"10.0.0.0/16","gateway":"x"}])")),
              HasSubstr("ipam.pools[0].gateway: invalid IP address"));
  EXPECT_THAT(refusal(with(R"("pools":[{"name":"a","cidr":"10.0.0.0/16","gateway":"10.9.0.1"}])")),
              HasSubstr("gateway 10.9.0.1 of pool a is outside"));
  EXPECT_THAT(refusal(with(R"("ipv4_pools":["10.0.0.0/33"])")), HasSubstr("ipam.ipv4_pools[0]: "));
  EXPECT_THAT(refusal(with(R"("ipv4_pools":["../x"])")), HasSubstr("ipam.ipv4_pools[0]: "));
  EXPECT_THAT(refusal(with(R"("ipv4_pools":["b\n"])")), HasSubstr("ipam.ipv4_pools[0]: "));
}

/// What a release does not need fails no release, and what runtimes add is theirs.
TEST(Config, UnknownMembersAreRefusedOnlyInIpamAndWhereTheyCount) {
  EXPECT_TRUE(decode(with(R"("ipv4_pool":["a"])"), Command::del));
  EXPECT_TRUE(decode(with(R"("ipv4_pool":["a"])"), Command::check));
  EXPECT_TRUE(decode(with(R"("example.com/note":"x")")));
  EXPECT_TRUE(decode(with("", R"("mtu":1500,"whatever":{"a":1},)")));
}

TEST(Config, EverythingHasALimit) {
  const auto list = [](std::size_t count, auto element) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + element(i);
    return "[" + text + "]";
  };
  const auto pool = [](std::size_t i) {
    return "{\"name\":\"p" + std::to_string(i) + "\",\"cidr\":\"10." + std::to_string(i) + ".0.0/16\"}";
  };
  EXPECT_EQ(refusal(with("\"pools\":" + list(64, pool))), "");
  EXPECT_EQ(refusal(with("\"pools\":" + list(65, pool))),
            "7 invalid network config: ipam.pools: more than 64 elements");
  const auto ip = [](std::size_t i) { return "\"10.1.2." + std::to_string(i) + "\""; };
  EXPECT_EQ(refusal(with("\"ips\":" + list(16, ip))), "");
  EXPECT_EQ(refusal(with("\"ips\":" + list(17, ip))), "7 invalid network config: ipam.ips: more than 16 elements");
  EXPECT_EQ(refusal(with("\"ips\":" + list(16, ip)), Command::add, "IP=10.9.9.9"),
            "7 17 addresses are requested, at most 16 are allowed");
  EXPECT_EQ(refusal(with("\"ips\":" + list(16, ip)), Command::add, "IP=10.1.2.3"), "");
  const auto name = [](std::size_t) { return std::string("\"a\""); };
  EXPECT_EQ(refusal(with("\"ipv4_pools\":" + list(65, name))),
            "7 invalid network config: ipam.ipv4_pools: more than 64 elements");
  EXPECT_THAT(refusal(with("\"store\":\"" + std::string(4097, 'x') + "\"")), HasSubstr("has 4097 bytes, at most 4096"));
}

TEST(Config, CniArgsAreCheckedForAddWithTheTextsOfTheReference) {
  EXPECT_EQ(refusal(with(""), Command::add, "IP=foo"),
            "4 ARGS: error parsing value of pair \"IP=foo\": invalid IP address foo");
  EXPECT_EQ(refusal(with(""), Command::add, "FOO=BAR"), "4 ARGS: unknown args [\"FOO=BAR\"]");
  EXPECT_EQ(refusal(with(""), Command::add, "K8S_POD_NAME=a\nb"),
            "4 ARGS: K8S_POD_NAME is not UTF-8 text of at most 253 bytes without control characters");
  EXPECT_EQ(refusal(with(""), Command::add, "K8S_POD_UID=" + std::string(254, 'x')).substr(0, 20),
            "4 ARGS: K8S_POD_UID ");
  EXPECT_EQ(refusal(with(""), Command::del, "FOO=BAR"), "");
  EXPECT_EQ(refusal(with(""), Command::check, "FOO=BAR"), "");
}

// Multus hands `ips` of a pod's annotation over in both ways at once.
TEST(Config, ListedAddressesOfCniArgsCountOnceWithThoseOfOtherMembers) {
  const auto requested = [](std::string_view top, const std::string& args) {
    const auto config = decode(with("", top), Command::add, args);
    return config ? config->requested_addresses : std::vector<net::Address>();
  };
  EXPECT_THAT(requested(R"("runtimeConfig":{"ips":["10.1.2.8/24","fd00::8/64"]},)",
                        "IgnoreUnknown=1;IP=10.1.2.8/24,fd00::8/64"),
              ElementsAre(address("10.1.2.8"), address("fd00::8")));
  EXPECT_THAT(requested("", "IP=fd00::8,10.1.2.8/24,10.1.2.8/16,fd00::8"),
              ElementsAre(address("fd00::8"), address("10.1.2.8")));
  EXPECT_THAT(requested(R"("args":{"cni":{"ips":["10.1.2.9","10.1.2.8"]}},)", "IP=10.1.2.8,10.1.2.7"),
              ElementsAre(address("10.1.2.8"), address("10.1.2.7"), address("10.1.2.9")));
}

TEST(Config, MappedAddressesAreUnmappedAndCountOnce) {
  EXPECT_THAT(decode(with(R"("ips":["::ffff:10.1.2.9","10.1.2.9/24","2001:0DB8::1.2.3.4/64"])"))->requested_addresses,
              ElementsAre(address("10.1.2.9"), address("2001:db8::102:304")));
}

// docs/promises.md#promise-3: a DEL never fails because of what it does not need.
TEST(Config, DelNeedsOnlyNameAndStore) {
  for (const char* ipam :
       {R"("store":"memory:","pools":5)", R"("store":"memory:","pools":[{"name":"..","cidr":"x"}])",
        R"("store":"memory:","type":5,"nodename":[],"log_file_path":{},"statusWhenFull":"x","ips":[null])",
        R"("nodename":"a/b","store":"memory:","assign_ipv4":7,"ipv4_pools":["10.0.0.0/99"])"}) {
    const auto config = decode(with(ipam, R"("args":5,"runtimeConfig":[],"prevResult":"x","cni.dev/attachments":1,)"),
                               Command::del, "bad");
    ASSERT_TRUE(config) << ipam;
    EXPECT_EQ(config->ipam.store, "memory:");
    EXPECT_EQ(config->name, "net");
    EXPECT_TRUE(config->ipam.pools.empty());
  }
  EXPECT_EQ(refusal(R"({"name":"net"})", Command::del), "");
  EXPECT_EQ(refusal(R"({"name":"net","ipam":{"type":null},"nodename":5})", Command::del), "");
  // Without the store nobody knows where to release.
  EXPECT_EQ(refusal(with(R"("store":5)"), Command::del).substr(0, 4), "999 ");
  EXPECT_EQ(refusal(R"({"name":"net","ipam":5})", Command::del).substr(0, 4), "999 ");
  EXPECT_EQ(decode(with(R"("pools":5,"nodename":"n","log_file_path":"/x")"), Command::del)->nodename, "n");
}

TEST(Config, CheckAndGcDoNotLookAtPools) {
  for (const Command command : {Command::check, Command::gc}) {
    EXPECT_EQ(refusal(with(R"("pools":5,"ips":5)", R"("args":5,)"), command), "");
    EXPECT_EQ(refusal(with(R"("nodename":5)"), command),
              "999 invalid network config: ipam.nodename: an integer (5) where a string is wanted");
  }
}

TEST(Config, CheckReadsTheAddressesOfPrevResult) {
  const auto previous = [](std::string_view ips) {
    return with(
        "", R"("prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"eth0"}],"ips":)" + std::string(ips) + "},");
  };
  const auto config = decode(previous(R"([{"version":"4","address":"10.1.2.3/24","gateway":"10.1.2.1","interface":0},
                                          {"address":"2001:db8::5/64"}])"),
                             Command::check);
  EXPECT_THAT(config->previous_addresses, ElementsAre(net::AddressWithLength{address("10.1.2.3"), 24},
                                                      net::AddressWithLength{address("2001:db8::5"), 64}));
  EXPECT_TRUE(decode(previous("[]"), Command::add)->previous_addresses.empty());
  EXPECT_EQ(refusal(previous("[{}]"), Command::check), "7 invalid network config: prevResult.ips[0]: has no address");
  EXPECT_EQ(refusal(previous("[null]"), Command::check), "7 invalid network config: prevResult.ips[0]: has no address");
  EXPECT_THAT(refusal(previous(R"([{"address":"10.1.2.3"}])"), Command::check),
              HasSubstr("prevResult.ips[0].address: "));
  EXPECT_EQ(refusal(with("", R"("prevResult":null,)"), Command::check), "");
}

using Presence = ValidAttachments::Presence;

TEST(Config, AttachmentsAbsentNullAndEmptyAreThreeThings) {
  const auto gc = [](std::string_view members) { return decode(with("", members), Command::gc)->valid_attachments; };
  EXPECT_EQ(gc(""), (ValidAttachments{Presence::absent, {}}));
  EXPECT_EQ(gc(R"("cni.dev/valid-attachments":null,)"), (ValidAttachments{Presence::null, {}}));
  EXPECT_EQ(gc(R"("cni.dev/valid-attachments":[],)"), (ValidAttachments{Presence::given, {}}));
  EXPECT_EQ(gc(R"("cni.dev/attachments":[],)"), (ValidAttachments{Presence::given, {}}));
  const Attachment a{"a", "eth0"};
  const Attachment b{"b", "eth1"};
  const std::string list_a = R"([{"containerID":"a","ifname":"eth0"}])";
  const std::string list_b = R"([{"containerid":"b","IFNAME":"eth1","x":1},{"containerID":"b","ifname":"eth1"}])";
  EXPECT_EQ(gc("\"cni.dev/valid-attachments\":" + list_a + ","), (ValidAttachments{Presence::given, {a}}));
  EXPECT_EQ(gc("\"cni.dev/attachments\":" + list_b + ","), (ValidAttachments{Presence::given, {b}}));
  EXPECT_EQ(gc("\"cni.dev/attachments\":" + list_a + ",\"cni.dev/valid-attachments\":" + list_a + ","),
            (ValidAttachments{Presence::given, {a}}));
  EXPECT_EQ(gc("\"cni.dev/attachments\":" + list_b + ",\"cni.dev/valid-attachments\":" + list_a + ","),
            (ValidAttachments{Presence::given, {a, b}}));
  EXPECT_EQ(gc("\"cni.dev/attachments\":null,\"cni.dev/valid-attachments\":" + list_a + ","),
            (ValidAttachments{Presence::given, {a}}));
}

TEST(Config, AGapInTheListOfAttachmentsIsAnError) {
  const auto gc = [](std::string_view list) {
    return refusal(with("", "\"cni.dev/valid-attachments\":" + std::string(list) + ","), Command::gc);
  };
  EXPECT_EQ(gc(R"([{"ifname":"eth0"}])"), "7 invalid network config: cni.dev/valid-attachments[0]: has no containerID");
  EXPECT_EQ(gc(R"([{"containerID":"a","ifname":"eth0"},{"containerID":"a"}])"),
            "7 invalid network config: cni.dev/valid-attachments[1]: has no ifname");
  EXPECT_EQ(gc("[null]"), "7 invalid network config: cni.dev/valid-attachments[0]: has no containerID");
  EXPECT_EQ(gc("[5]"),
            "999 invalid network config: cni.dev/valid-attachments[0]: an integer (5) where an object is wanted");
  EXPECT_EQ(gc("{}"), "999 invalid network config: cni.dev/valid-attachments: an object where an array is wanted");
  // Nobody else looks at it.
  EXPECT_EQ(refusal(with("", R"("cni.dev/valid-attachments":5,)"), Command::add), "");
}

TEST(Config, AttachmentsAreReadToTheLimitOfTheInput) {
  std::string list;
  std::size_t count = 0;
  while (list.size() < kStdinBytesMax - 200) {
    list += (count == 0 ? "" : ",") + ("{\"containerID\":\"c" + std::to_string(count) + "\",\"ifname\":\"eth0\"}");
    ++count;
  }
  const auto config = decode(with("", "\"cni.dev/attachments\":[" + list + "],"), Command::gc);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->valid_attachments.entries.size(), count);
}

TEST(Config, AnnotationsOfTheApiCountWhereTheRuntimeHandedNoneOver) {
  const std::string api = R"("annotations":"api")";
  EXPECT_FALSE(decode(with(R"("annotations":"runtime")"))->ipam.annotations);
  EXPECT_FALSE(decode(with(""))->ipam.annotations);
  EXPECT_EQ(decode(with(api))->ipam.annotations, core::WishesWanted());
  const NetworkConfig beside = *decode(
      with(api, R"("runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"ipam.croft.dev/ipv4pools":"[\"a\"]"}},)"));
  EXPECT_EQ(beside.ipam.annotations, (core::WishesWanted{{false, true}, true, true}));
  EXPECT_EQ(refusal(with(R"("annotations":"both")")),
            "7 invalid network config: ipam.annotations: \"both\" is neither \"runtime\" nor \"api\"");
}

}  // namespace
}  // namespace croft::wire::cni
