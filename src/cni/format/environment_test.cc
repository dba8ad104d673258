#include "cni/format/environment.h"

#include <gtest/gtest.h>

#include "cni/format/network.h"

namespace croft::wire::cni {
namespace {

using namespace std::string_literals;

Environment complete(std::string command) {
  return {std::move(command), "dummy", "/var/run/netns/x", "eth0", "", "/opt/cni/bin", ""};
}

std::string refusal(const std::optional<Error>& error) {
  if (!error) return "";
  return std::to_string(static_cast<int>(error->code)) + " " + error->msg + " | " + error->details;
}

TEST(Environment, EveryCommandIsItsUpperCaseWord) {
  for (const Command command :
       {Command::add, Command::del, Command::check, Command::gc, Command::status, Command::version}) {
    EXPECT_EQ(parse_command(name_of(command)), command);
    EXPECT_EQ(check_environment(complete(std::string(name_of(command)))), std::nullopt);
  }
  for (const char* word : {"", "add", "ADD ", "NOPE"}) EXPECT_EQ(parse_command(word), std::nullopt);
}

// Row 72.
TEST(Environment, ContainerId) {
  EXPECT_EQ(refusal(check_container_id("some-%%container-id")),
            "4 invalid characters in containerID | some-%%container-id");
  for (const auto& good : {"a"s, "0"s, "a_b.c-d"s, std::string(300, 'x'), "a.."s}) {
    EXPECT_EQ(check_container_id(good), std::nullopt) << good;
  }
  for (const auto& bad : {"-a"s, ".a"s, "_a"s, "a\n"s, "\na"s, "a/b"s, "../x"s, ".."s, "a b"s, "a\0b"s, "\xD0\xB0"s,
                          "a\xC2\xA0"s, " a"s, "a\r\n"s, "%2e"s}) {
    EXPECT_EQ(refusal(check_container_id(bad)), "4 invalid characters in containerID | " + bad);
  }
}

// Row 73.
TEST(Environment, InterfaceName) {
  EXPECT_EQ(refusal(check_interface_name("1234567890123456")),
            "4 interface name is too long | interface name should be less than 16 characters");
  EXPECT_EQ(refusal(check_interface_name(".")), "4 interface name is . or .. | ");
  EXPECT_EQ(refusal(check_interface_name("..")), "4 interface name is . or .. | ");
  for (const auto& bad : {"test/test"s, "test:test"s, "test test"s, "a\n"s, "a\r"s, "a\xC2\xA0"s, "a\xC2\x85"s,
                          "a\xE2\x80\x80"s, "\xE3\x80\x80"s}) {
    EXPECT_EQ(refusal(check_interface_name(bad)), "4 interface name contains / or : or whitespace characters | ");
  }
  // Bytes count, not characters; what the kernel allows and Go does not call space passes.
  EXPECT_EQ(
      refusal(check_interface_name("\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4")).substr(0, 8),
      "4 interf");
  for (const auto& good : {"eth0"s, "123456789012345"s, "..."s, "-"s, "a\x01"s, "\xFF"s, "a\xE2\x80\x8B"s}) {
    EXPECT_EQ(check_interface_name(good), std::nullopt) << good;
  }
}

// Rows 74 to 76.
TEST(Environment, MissingVariablesAreNamedTogetherInTableOrder) {
  for (const char* command : {"ADD", "CHECK"}) {
    Environment environment = complete(command);
    environment.netns = environment.interface_name = environment.path = "";
    EXPECT_EQ(refusal(check_environment(environment)),
              "4 required env variables [CNI_NETNS,CNI_IFNAME,CNI_PATH] missing | ");
  }
  Environment nothing;
  EXPECT_EQ(refusal(check_environment(nothing)), "4 required env variables [CNI_COMMAND] missing | ");
  for (const char* command : {"GC", "STATUS"}) {
    Environment environment;
    environment.command = command;
    EXPECT_EQ(refusal(check_environment(environment)), "4 required env variables [CNI_PATH] missing | ");
    environment.path = "/opt/cni/bin";
    EXPECT_EQ(check_environment(environment), std::nullopt);
    environment.container_id = "a%b";  // not required, hence not looked at
    environment.interface_name = "..";
    EXPECT_EQ(check_environment(environment), std::nullopt);
  }
  Environment del = complete("DEL");
  del.netns = "";
  EXPECT_EQ(check_environment(del), std::nullopt);
  del = Environment();
  del.command = "DEL";
  EXPECT_EQ(refusal(check_environment(del)),
            "4 required env variables [CNI_CONTAINERID,CNI_IFNAME,CNI_PATH] missing | ");
  Environment unknown;
  unknown.command = "NOPE";
  EXPECT_EQ(check_environment(unknown), std::nullopt);
}

TEST(Environment, AnInvalidVariableWinsOverMissingOnesBeforeAndAfter) {
  Environment environment = complete("ADD");
  environment.netns = environment.path = "";
  environment.interface_name = "..";
  EXPECT_EQ(refusal(check_environment(environment)), "4 interface name is . or .. | ");
  environment.container_id = "a%b";
  EXPECT_EQ(refusal(check_environment(environment)), "4 invalid characters in containerID | a%b");
}

TEST(Environment, ReadsTheVariablesByName) {
  const Environment environment = Environment::from(
      [](const char* name) -> const char* { return std::string_view(name) == "CNI_IFNAME" ? nullptr : name; });
  EXPECT_EQ(environment, (Environment{"CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "", "CNI_ARGS", "CNI_PATH",
                                      "CNI_NETNS_OVERRIDE"}));
}

TEST(Environment, OverrideIsOneOrTrueInAnyCase) {
  for (const char* yes : {"1", "true", "TRUE", "tRuE"}) {
    EXPECT_TRUE((Environment{"", "", "", "", "", "", yes}.overrides_netns_check())) << yes;
  }
  for (const char* no : {"", "0", "yes", "true ", "tru"}) {
    EXPECT_FALSE((Environment{"", "", "", "", "", "", no}.overrides_netns_check())) << no;
  }
}

TEST(Owner, NetworkAndContainerIdMustFitTheHandle) {
  EXPECT_EQ(check_owner_size("net", std::string(300, 'x')), std::nullopt);
  EXPECT_EQ(check_owner_size(std::string(255, 'n'), std::string(768, 'x')), std::nullopt);
  EXPECT_EQ(check_owner_size(std::string(255, 'n'), std::string(769, 'x'))->msg,
            "CNI_CONTAINERID is too long: 769 bytes, at most 768 in this network");
  EXPECT_EQ(check_owner_size(std::string(255, 'n'), std::string(769, 'x'))->code, Code::invalid_environment);
  const auto network = check_owner_size(std::string(256, 'n'), "x");
  EXPECT_EQ(network->msg, "network name is too long: 256 bytes, at most 255");
  EXPECT_EQ(network->code, Code::invalid_network_config);
  EXPECT_EQ(check_recordable_interface("eth0"), std::nullopt);
  EXPECT_EQ(refusal(check_recordable_interface("a\x01")),
            "4 CNI_IFNAME is not UTF-8 text without control characters | \"a\\x01\"");
  EXPECT_NE(check_recordable_interface("\xFF"), std::nullopt);
}

// ---- the two members every personality reads

std::string network_name(std::string_view config) {
  const auto document = parse_network_config(config);
  if (!document) return refusal(document.error());
  const auto name = read_network_name(*document);
  return name ? *name : refusal(name.error());
}

// Rows 81, 117, 118 and the catalogue of names.
TEST(NetworkName, IsCheckedAsUsed) {
  EXPECT_EQ(network_name(R"({"name":"a.."})"), "a..");
  EXPECT_EQ(network_name(R"({"NAME":"lock"})"), "lock");
  EXPECT_EQ(network_name(R"({"name":"last_reserved_ip.0"})"), "last_reserved_ip.0");
  EXPECT_EQ(network_name(R"({"name":"../x","Name":"b"})"), "b");
  for (const auto& bad :
       {"te%%st"s, "a/b"s, "."s, ".."s, "../x"s, "a/../b"s, "/abs"s, "-a"s, ".a"s, "%2e%2e"s, "\xD0\xB0"s}) {
    EXPECT_EQ(network_name("{\"name\":\"" + bad + "\"}"), "7 invalid characters found in network name | " + bad);
  }
  EXPECT_EQ(network_name(R"({"name":"b","NAME":"../x"})"), "7 invalid characters found in network name | ../x");
  EXPECT_EQ(network_name(R"({"name":"a\n"})"), "7 invalid characters found in network name | a\n");
  EXPECT_EQ(network_name(R"({"name":"a\u0000"})"), "7 invalid characters found in network name | a\0"s);
  for (const char* missing : {"{}", R"({"name":""})", R"({"name":null})", "null"}) {
    EXPECT_EQ(network_name(missing), "7 missing network name | ");
  }
  EXPECT_EQ(network_name(R"({"name":5})"),
            "6 error unmarshall network config: name: an integer (5) where a string is wanted | ");
  for (const char* bad : {"", "{", "[]", "5", "\"x\"", "{\"name\":\"a\"}x", "\xEF\xBB\xBF{\"name\":\"a\"}"}) {
    EXPECT_EQ(network_name(bad).rfind("6 error unmarshall network config: ", 0), 0) << bad;
  }
  EXPECT_EQ(network_name("{\"name\":\"a\",\"x\":\"" + std::string(kStdinBytesMax, 'x') + "\"}"),
            "6 error unmarshall network config: invalid JSON: larger than 2097152 bytes | ");
}

TEST(CniVersion, IsReadAsWritten) {
  const auto version = [](std::string_view config) {
    const auto read = read_cni_version(*parse_network_config(config));
    return read ? *read : refusal(read.error());
  };
  EXPECT_EQ(version("{}"), "0.1.0");
  EXPECT_EQ(version(R"({"cniVersion":""})"), "0.1.0");
  EXPECT_EQ(version(R"({"cniVersion":null})"), "0.1.0");
  EXPECT_EQ(version(R"({"CNIVERSION":"0.3.2"})"), "0.3.2");
  EXPECT_EQ(version(R"({"cniVersion":1.0})"),
            "6 decoding version from network config: cniVersion: a number (1.0) where a string is wanted | ");
}

TEST(CniVersion, Order) {
  const auto number = [](std::string_view text) { return parse_version(text).value(); };
  EXPECT_EQ(number(""), number("0.1.0"));
  EXPECT_EQ(number("1"), number("1.0.0"));
  EXPECT_EQ(number("1.0"), number("1.0.0"));
  EXPECT_LT(number("0.4.0"), number("0.10.0"));
  EXPECT_LT(number("0.3.1"), number("0.4"));
  const auto why = [](std::string_view text) { return parse_version(text).error().message; };
  EXPECT_EQ(why("1.2.3.4"), "invalid version \"1.2.3.4\": too many parts");
  EXPECT_EQ(why("abc"), "failed to convert major version part \"abc\": strconv.Atoi: parsing \"abc\": invalid syntax");
  EXPECT_EQ(why("1."), "failed to convert minor version part \"\": strconv.Atoi: parsing \"\": invalid syntax");
  EXPECT_EQ(why("1.0.-"), "failed to convert micro version part \"-\": strconv.Atoi: parsing \"-\": invalid syntax");
  EXPECT_EQ(why("1.+-2"),
            "failed to convert minor version part \"+-2\": strconv.Atoi: parsing \"+-2\": invalid syntax");
  EXPECT_EQ(why("99999999999999999999"),
            "failed to convert major version part \"99999999999999999999\": strconv.Atoi: parsing "
            "\"99999999999999999999\": value out of range");
  EXPECT_EQ(number("+1.-2"), (VersionNumber{1, -2, 0}));
}

// ---- CNI_ARGS

std::string args_refusal(std::string_view text) {
  const auto args = parse_args(text, kHostLocalArgKeys);
  return args ? "" : args.error().message;
}

// docs/notes/cni.md#cases, row 87, and #cni-args.
TEST(Args, TextsOfTheReference) {
  EXPECT_EQ(args_refusal(""), "");
  EXPECT_EQ(args_refusal("IgnoreUnknown=True;Unk=nown"), "");
  EXPECT_EQ(args_refusal("Unk=nown;IgnoreUnknown=1"), "");
  EXPECT_EQ(args_refusal("Unk=nown"), "ARGS: unknown args [\"Unk=nown\"]");
  EXPECT_EQ(args_refusal("IgnoreUnknown=0, Unk=nown"), "ARGS: invalid pair \"IgnoreUnknown=0, Unk=nown\"");
  EXPECT_EQ(args_refusal("FOO=BAR;X=1"), "ARGS: unknown args [\"FOO=BAR\" \"X=1\"]");
  EXPECT_EQ(args_refusal("ip=10.1.2.3"), "ARGS: unknown args [\"ip=10.1.2.3\"]");
  EXPECT_EQ(args_refusal("ignoreunknown=1"), "ARGS: unknown args [\"ignoreunknown=1\"]");
  EXPECT_EQ(args_refusal("IP"), "ARGS: invalid pair \"IP\"");
  EXPECT_EQ(args_refusal("IP=10.1.2.3;"), "ARGS: invalid pair \"\"");
  EXPECT_EQ(args_refusal("IP=1=2"), "ARGS: invalid pair \"IP=1=2\"");
  EXPECT_EQ(args_refusal(";;==;="), "ARGS: invalid pair \"\"");
  EXPECT_EQ(args_refusal("="), "ARGS: unknown args [\"=\"]");
  EXPECT_EQ(args_refusal("IP=foo"), "ARGS: error parsing value of pair \"IP=foo\": invalid IP address foo");
  EXPECT_EQ(args_refusal("IP=10.1.2.9/40"),
            "ARGS: error parsing value of pair \"IP=10.1.2.9/40\": invalid IP address 10.1.2.9/40");
  EXPECT_EQ(args_refusal("IgnoreUnknown=yes"),
            "ARGS: error parsing value of pair \"IgnoreUnknown=yes\": boolean unmarshal error: invalid input yes");
  EXPECT_EQ(args_refusal("IgnoreUnknown=Maybe"),
            "ARGS: error parsing value of pair \"IgnoreUnknown=Maybe\": boolean unmarshal error: invalid input maybe");
  EXPECT_EQ(args_refusal("IgnoreUnknown="),
            "ARGS: error parsing value of pair \"IgnoreUnknown=\": boolean unmarshal error: invalid input ");
  EXPECT_EQ(args_refusal("CommonArgs=1"),
            "ARGS: cannot unmarshal into field 'CommonArgs' - type '*types.CommonArgs' does not implement "
            "encoding.TextUnmarshaler");
  EXPECT_EQ(args_refusal("a\"b=\xFF\n"), "ARGS: unknown args [\"a\\\"b=\\xff\\n\"]");
}

TEST(Args, ErrorsComeInTheOrderOfThePairs) {
  EXPECT_EQ(args_refusal("FOO=1;IP=foo;bad"), "ARGS: error parsing value of pair \"IP=foo\": invalid IP address foo");
  EXPECT_EQ(args_refusal("FOO=1;bad;IP=foo"), "ARGS: invalid pair \"bad\"");
}

TEST(Args, HostileAddressesAreRefused) {
  for (const char* text : {"10.1.2.3:80", "fe80::1%eth0", "010.1.2.3", "0x0a.1.2.3", "10.1", "10.1.2.3.", " 10.1.2.3",
                           "10.1.2.3 ", "167772161", "10.1.2.3/", "10.1.2.3/-1", "/24", "10.1.2.3/24/24", "::1::"}) {
    EXPECT_NE(args_refusal("IP=" + std::string(text)), "") << text;
  }
}

TEST(Args, ValuesOfKnownKeys) {
  const auto host_local = parse_args("IP=10.1.2.3/24;IP=;IgnoreUnknown=true;K8S_POD_NAME=p", kHostLocalArgKeys).value();
  EXPECT_EQ(host_local.ips, std::vector{net::Address::v4(0x0A010203)});
  EXPECT_TRUE(host_local.texts.empty());
  const auto croft =
      parse_args(
          "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=p;K8S_POD_INFRA_CONTAINER_ID=c;K8S_POD_UID=u;"
          "K8S_POD_NAME=q;IP=::ffff:10.1.2.9/120",
          kCroftArgKeys)
          .value();
  EXPECT_EQ(croft.ips, std::vector{net::Address::v4(0x0A010209)});
  EXPECT_EQ(croft.texts.find(kPodNameArg)->second, "q");
  EXPECT_EQ(croft.texts.find(kPodUidArg)->second, "u");
  EXPECT_EQ(croft.texts.size(), 4);
  EXPECT_TRUE(parse_args("K8S_POD_NAME=p", kCroftArgKeys));
}

// As the plugin `static` reads it: split at commas, blanks around the items dropped, an empty item is an error.
TEST(Args, IpMayBeAList) {
  const auto ips = [](std::string_view text) {
    std::vector<std::string> all;
    const auto args = parse_args(text, kCroftArgKeys);
    if (!args) return std::vector{args.error().message};
    for (const net::Address& address : args->ips) all.push_back(address.to_string());
    return all;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(ips("IgnoreUnknown=1;IP=192.168.131.8/24,fd00:192:168:131::8/64"),
            (Texts{"192.168.131.8", "fd00:192:168:131::8"}));
  EXPECT_EQ(ips("IP=fd00::8,10.1.2.3, 10.1.2.4/16 ,\t::ffff:10.1.2.5"),
            (Texts{"fd00::8", "10.1.2.3", "10.1.2.4", "10.1.2.5"}));
  EXPECT_EQ(ips("IP=10.1.2.3,10.1.2.4;IP=10.1.2.5"), Texts{"10.1.2.5"});
  EXPECT_EQ(ips("IP=10.1.2.3,fd00::8;IP="), (Texts{"10.1.2.3", "fd00::8"}));
  for (const char* bad : {"IP=,", "IP=10.1.2.3,", "IP=,10.1.2.3", "IP=10.1.2.3,,fd00::8", "IP=10.1.2.3, ",
                          "IP=10.1.2.3 fd00::8", "IP=10.1.2.3,fd00::8%eth0", "IP=10.1.2.3,fd00::8/129"}) {
    EXPECT_TRUE(ips(bad).front().starts_with("ARGS: error parsing value of pair ")) << bad;
  }
  EXPECT_EQ(args_refusal("IP=10.1.2.3,x"), "ARGS: error parsing value of pair \"IP=10.1.2.3,x\": invalid IP address x");
}

TEST(Args, SizeIsBounded) {
  EXPECT_EQ(args_refusal(std::string(1U << 20, 'x')), "ARGS: 1048576 bytes are too many, at most 131072 are read");
  std::string many = "IgnoreUnknown=1";
  while (many.size() < kArgsBytesMax - 4) many += ";a=b";
  EXPECT_EQ(args_refusal(many), "");
}

}  // namespace
}  // namespace croft::wire::cni
