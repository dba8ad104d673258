#include "vpc/format/messages.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hex.h"

namespace croft::wire::vpc {
namespace {

using namespace std::chrono_literals;

PodNetwork sample_network() {
  PodNetwork network;
  network.pod_name = "cart-0";
  network.pod_namespace = "shop";
  network.pod_uid = "5b7e";
  network.sandbox_id = "7f3c";
  network.netns = "/run/netns/a";
  network.ip = "10.9.0.7";
  network.vpc = "uvnet-1";
  network.subnet = "subnet-1";
  network.gateway = "10.9.0.1";
  network.mask = "255.255.255.0";
  network.mac = "52:54:00:26:6E:DA";
  network.dedicated_uni = true;
  network.interface_id = "uni-abc";
  network.eip_id = "eip-x";
  network.create_time = 300;
  network.recycle_time = 1;
  network.recycled = true;
  return network;
}

/// A field of text as protobuf writes it.
std::string field(int number, const std::string& text) {
  std::string bytes;
  for (unsigned tag = static_cast<unsigned>(number) << 3 | 2U; true; tag >>= 7) {
    bytes += static_cast<char>(tag > 127 ? (tag & 127U) | 128U : tag);
    if (tag <= 127) break;
  }
  bytes += static_cast<char>(text.size());
  return bytes + text;
}

// Written out by hand from the numbers in docs/notes/warm-pool.md#grpc, not by the code that is tested.
std::string sample_bytes() {
  return field(1, "cart-0") + field(2, "shop") + field(3, "5b7e") + field(4, "7f3c") + field(5, "/run/netns/a") +
         field(6, "10.9.0.7") + field(7, "uvnet-1") + field(8, "subnet-1") + field(9, "10.9.0.1") +
         field(10, "255.255.255.0") + field(11, "52:54:00:26:6E:DA") + std::string("\x60\x01") + field(13, "uni-abc") +
         field(14, "eip-x") + std::string("\x78\xac\x02") + std::string("\x80\x01\x01") + std::string("\x88\x01\x01");
}

/// The lines of one block of proto/rpc/ipamd.proto, such as "message PodNetwork", without comments and indentation.
std::vector<std::string> lines_of(const std::string& block) {
  std::ifstream file(CROFT_IPAMD_PROTO);
  std::vector<std::string> lines;
  bool is_in = false;
  for (std::string line; std::getline(file, line);) {
    line.erase(std::min(line.find("//"), line.size()));
    line.erase(line.find_last_not_of(' ') + 1);
    line.erase(0, line.find_first_not_of(' '));
    if (line == block + " {}") return {};
    if (line == block + " {") {
      is_in = true;
    } else if (is_in && line == "}") {
      return lines;
    } else if (is_in && !line.empty()) {
      lines.push_back(line);
    }
  }
  return {"no " + block};
}

TEST(VpcMethods, AreThoseOfTheProtocol) {
  const std::vector<std::string> service = lines_of("service CNIIpam");
  ASSERT_EQ(service.size(), kMethodCount);
  for (std::size_t i = 0; i < kMethodCount; ++i) {
    const auto method = static_cast<Method>(i);
    const std::string path(path_of(method)), name = path.substr(path.rfind('/') + 1);
    const std::string line = "rpc " + name + "(" + name + "Request) returns (" + name + "Response);";
    EXPECT_EQ(std::ranges::count(service, line), 1) << line;
    EXPECT_EQ(path, "/rpc.CNIIpam/" + name);
    EXPECT_EQ(method_of(path_of(method)), method);
  }
  EXPECT_EQ(path_of(Method::support_multi_subnet), "/rpc.CNIIpam/SupportMultiSubnet");
}

TEST(VpcMethods, OtherPathsAreNone) {
  for (const char* path : {"", "/", "Ping", "/rpc.CNIIpam/", "/rpc.CNIIpam/ping", "/rpc.CNIIpam/Ping/", "/x/Ping"}) {
    EXPECT_FALSE(method_of(path)) << path;
  }
}

TEST(VpcMessages, GoldenBytes) {
  const std::string network = sample_bytes();
  ASSERT_EQ(network.size(), 140U);
  const std::string in_field_1 = std::string("\x0a\x8c\x01") + network;
  const std::string in_field_2 = std::string("\x12\x8c\x01") + network;
  EXPECT_EQ(hex_of(encode(DelPodNetworkRequest{sample_network(), "", ""})), hex_of(in_field_1));
  EXPECT_EQ(hex_of(encode(NetworkAnswer{sample_network()})), hex_of(in_field_2));
  EXPECT_EQ(hex_of(encode(NetworkAnswer{})), "");
  EXPECT_EQ(hex_of(encode(NetworksAnswer{{sample_network(), {}}})), hex_of(in_field_2) + "1200");
  EXPECT_EQ(hex_of(encode(StockAnswer{{{}}, {{}, {}}})), "12001a001a00");
  EXPECT_EQ(hex_of(encode(ReleaseRequest{{"a", "b"}})), "0a01610a0162");
  EXPECT_EQ(hex_of(encode(StockRequest{"a"})), "0a0161");
  EXPECT_EQ(hex_of(encode(RecordKey{"a", "b", "c"})), "0a01611201621a0163");
  EXPECT_EQ(hex_of(encode(BorrowRequest{"a", "b", "c"})), "0a0161120162a2060163");
  EXPECT_EQ(hex_of(encode(AddPodNetworkRequest{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"})),
            "0a01611201621a01632201642a01653201663a0167420168a2060169aa06016a");

  EXPECT_EQ(decode<NetworkAnswer>(in_field_2)->network, sample_network());
}

TEST(VpcMessages, ValuesSurvive) {
  const auto survives = []<class Value>(const Value& value) {
    const auto read = decode<Value>(encode(value));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, value);
  };
  survives(AddPodNetworkRequest{"a", "b", "c", "/d", "e", "f", "g", "h", "i", "j"});
  survives(AddPodNetworkRequest{"", "", "", "", "", "", "", "", "", "", true});
  survives(AddPodNetworkRequest{});
  survives(DelPodNetworkRequest{sample_network(), "net", "eth0"});
  survives(DelPodNetworkRequest{});
  survives(RecordKey{"a", "b", "c"});
  survives(BorrowRequest{"a", "b", "c"});
  survives(StockRequest{"10.9.0.7"});
  survives(ReleaseRequest{{"10.9.0.7", "fd00::7"}});
  survives(NetworkAnswer{sample_network()});
  survives(NetworkAnswer{});
  survives(NetworksAnswer{{sample_network(), PodNetwork{}}});
  survives(StockAnswer{{sample_network()}, {PodNetwork{}}});
}

/// The messages that one function writes for several methods are the same in the protocol.
TEST(VpcMessages, SharedShapesAreOne) {
  // "repeated PodNetwork Pods = 2;" without the name.
  const auto shape = [](const std::string& message) {
    std::string text;
    for (const std::string& line : lines_of("message " + message)) {
      const std::size_t number = line.find(" = ");
      text += line.substr(0, line.rfind(' ', number - 1)) + line.substr(number);
    }
    return text;
  };
  const std::vector<std::vector<std::string>> all = {
      {"GetPodNetworkRecordRequest", "DelPodNetworkRecordRequest"},
      {"PopPoolRequest", "PushPoolRequest"},
      {"DelPodNetworkResponse", "AddPodNetworkRecordResponse", "DelPodNetworkRecordResponse", "ReleaseIPResponse"},
      {"AddPodNetworkResponse", "GetPodNetworkRecordResponse", "BorrowIPResponse", "PushPoolResponse",
       "PopPoolResponse"},
      {"ListPodNetworkRecordResponse", "ListUnuseResponse"},
      {"PingRequest", "PingResponse", "ListPodNetworkRecordRequest", "DescribePoolRequest", "ListUnuseRequest",
       "SupportMultiSubnetRequest"}};
  for (const auto& same : all) {
    for (const std::string& message : same) EXPECT_EQ(shape(message), shape(same[0])) << message;
  }
}

TEST(VpcMessages, UnknownFieldsArePassedOver) {
  const std::string bytes = encode(RecordKey{"a", "b", "c"}) + field(77, "later") + std::string("\xf0\x04\x05");
  EXPECT_EQ(decode<RecordKey>(bytes).value(), (RecordKey{"a", "b", "c"}));
}

template <class Value>
void expect_refused(const Result<Value>& read, const std::string& in_message) {
  ASSERT_FALSE(read) << "expected: " << in_message;
  EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(read.error().message.find(in_message), std::string::npos) << read.error().message;
}

TEST(VpcMessages, WhatIsOutOfBoundsIsRefused) {
  const auto network_with = [](auto change) {
    PodNetwork network = sample_network();
    change(network);
    return decode<NetworkAnswer>(encode(NetworkAnswer{network}));
  };
  EXPECT_TRUE(network_with([](PodNetwork& n) { n.pod_name.assign(kNameBytesMax, 'a'); }));
  expect_refused(network_with([](PodNetwork& n) { n.pod_name.assign(kNameBytesMax + 1, 'a'); }),
                 "PodName has 254 bytes, more than 253");
  EXPECT_TRUE(network_with([](PodNetwork& n) { n.netns.assign(kTextBytesMax, 'a'); }));
  expect_refused(network_with([](PodNetwork& n) { n.netns.assign(kTextBytesMax + 1, 'a'); }), "NetNS has 4097 bytes");
  expect_refused(network_with([](PodNetwork& n) { n.sandbox_id = "a\nb"; }), "SandboxID is not UTF-8 without control");
  expect_refused(network_with([](PodNetwork& n) { n.mac = std::string("\0", 1); }), "MacAddress is not UTF-8");
  expect_refused(network_with([](PodNetwork& n) { n.eip_id = "\xc2\x9b"; }), "EIPID is not UTF-8 without control");
  EXPECT_TRUE(network_with([](PodNetwork& n) { n.subnet = "käse"; }));
  expect_refused(network_with([](PodNetwork& n) { n.create_time = -1; }), "CreateTime is -1");
  expect_refused(network_with([](PodNetwork& n) { n.recycle_time = kUnixSecondsMax + 1; }),
                 "RecycleTime is 2534023008");

  expect_refused(decode<StockRequest>("\x0a\x01\xff"), "");  // no UTF-8: the parser's refusal or ours
  expect_refused(decode<StockRequest>("\x0a\x05"
                                      "ab"),
                 "the whole is not what the protocol says");
  AddPodNetworkRequest request;
  request.interface_name.assign(kNameBytesMax + 1, 'a');
  expect_refused(decode<AddPodNetworkRequest>(encode(request)), "IfName has 254 bytes");
  expect_refused(decode<ReleaseRequest>(encode(ReleaseRequest{{"10.9.0.7", "a\tb"}})), "IP is not UTF-8");
  expect_refused(decode<BorrowRequest>(encode(BorrowRequest{"", "", "\x7f"})), "Request is not UTF-8");
}

TEST(VpcMessages, WhatIsShownSurvivesAndIsBounded) {
  const auto shown = [](std::string value) { return ShowAnswer{{{"node", "node-1"}, {"trouble", std::move(value)}}}; };
  EXPECT_EQ(decode<ShowAnswer>(encode(shown(""))).value(), shown(""));
  EXPECT_EQ(decode<ShowAnswer>(encode(shown("a\nb"))).value(), shown("a\\x0ab")) << "made readable by who shows it";
  EXPECT_EQ(decode<ShowAnswer>(encode(shown(std::string(kTextBytesMax + 1, 'a')))).value(), shown("(too long)"));
}

/// Whatever is lawful has room several times over.
TEST(VpcMessages, TheLongestLawfulRequestsAreTaken) {
  const std::string name(kNameBytesMax, 'a'), text(kTextBytesMax, 'a');
  PodNetwork network{name, name, name, name, text, name, name, name, name,
                     name, name, true, name, name, 0,    0,    true, {}};
  network.create_time = network.recycle_time = kUnixSecondsMax;
  const DelPodNetworkRequest del{network, text, name};
  EXPECT_EQ(decode<DelPodNetworkRequest>(encode(del)).value(), del);
  EXPECT_EQ(encode(del).size(), 11'551U) << "messages.h tells it";
  const AddPodNetworkRequest add{name, name, name, text, name, name, name, name, text, name, true};
  EXPECT_EQ(decode<AddPodNetworkRequest>(encode(add)).value(), add);
  EXPECT_LT(encode(add).size(), encode(del).size());
  const ReleaseRequest release{std::vector<std::string>(1000, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")};
  EXPECT_EQ(decode<ReleaseRequest>(encode(release)).value(), release);
}

TEST(VpcMessages, ListsAreBounded) {
  const std::vector<PodNetwork> many(kListMax + 1);
  expect_refused(decode<ReleaseRequest>(encode(ReleaseRequest{std::vector<std::string>(kListMax + 1)})),
                 "IP has more entries than 65536");
  expect_refused(decode<NetworksAnswer>(encode(NetworksAnswer{many})), "Networks has more entries than 65536");
  expect_refused(decode<StockAnswer>(encode(StockAnswer{many, {}})), "Pool has more entries than 65536");
  expect_refused(decode<StockAnswer>(encode(StockAnswer{{}, many})), "Cooldown has more entries than 65536");
}

core::StockAddress sample_warm_address() {
  core::StockAddress address;
  address.address = net::Address::parse("10.9.0.7").value();
  address.prefix_length = 24;
  address.gateway = net::Address::parse("10.9.0.1").value();
  address.mac = net::Mac::parse("52:54:00:26:6e:da").value();
  address.vpc = "uvnet-1";
  address.subnet = "subnet-1";
  address.created = WallTime(300s) + 999ms;
  address.recycled = true;
  address.recycled_at = WallTime(1s);
  address.owner.container_id = "7f3c";
  address.pod = {"cart-0", "shop", "5b7e"};
  address.netns = "/run/netns/a";
  address.extra = {{"dedicatedUNI", "true"}, {"interfaceID", "uni-abc"}, {"eipID", "eip-x"}};
  return address;
}

TEST(VpcMessages, AnAddressOfTheStock) {
  EXPECT_EQ(pod_network_of(sample_warm_address()), sample_network());

  core::StockAddress back = sample_warm_address();
  back.created = WallTime(300s);  // the protocol knows whole seconds
  EXPECT_EQ(warm_address_of(sample_network()).value(), back);

  core::StockAddress v6 = sample_warm_address();
  v6.address = net::Address::parse("fd00::7").value();
  v6.prefix_length = 64;
  v6.gateway.reset();
  v6.extra.clear();
  v6.recycled_at = {};
  const PodNetwork network = pod_network_of(v6);
  EXPECT_EQ(network.ip, "fd00::7");
  EXPECT_EQ(network.mask, "64");
  EXPECT_EQ(network.gateway, "");
  EXPECT_EQ(network.recycle_time, 0);
  EXPECT_FALSE(network.dedicated_uni);
  EXPECT_EQ(warm_address_of(network)->address, v6.address);
  EXPECT_EQ(warm_address_of(network)->prefix_length, 64U);
  EXPECT_EQ(warm_address_of(network)->recycled_at, WallTime{});
}

TEST(VpcMessages, Masks) {
  for (std::uint32_t length = 0; length <= 32; ++length) {
    core::StockAddress address = sample_warm_address();
    address.prefix_length = length;
    const PodNetwork network = pod_network_of(address);
    EXPECT_EQ(warm_address_of(network)->prefix_length, length) << network.mask;
  }
  PodNetwork network = sample_network();
  network.mask = "24";  // a cloud's description of a subnet has it so
  EXPECT_EQ(warm_address_of(network)->prefix_length, 24U);
  network.mask.clear();  // UK8S' plugin tells of an address of its own without one
  EXPECT_EQ(warm_address_of(network)->prefix_length, 0U);
  for (const char* mask : {"33", "255.0.255.0", "0.0.0.1", "ffff::", "255.255.255"}) {
    network.mask = mask;
    expect_refused(warm_address_of(network), fmt::format("Mask \"{}\" is no mask of an IPv4 subnet", mask));
  }
}

TEST(VpcMessages, WhatIsNoAddressIsNamed) {
  const auto with = [](auto change) {
    PodNetwork network = sample_network();
    change(network);
    return warm_address_of(network);
  };
  expect_refused(with([](PodNetwork& n) { n.ip = ""; }), "VPCIP \"\" is no address");
  expect_refused(with([](PodNetwork& n) { n.ip = "10.9.0.700"; }), "VPCIP \"10.9.0.700\" is no address");
  expect_refused(with([](PodNetwork& n) { n.gateway = "fd00::1"; }), "Gateway \"fd00::1\"");
  expect_refused(with([](PodNetwork& n) { n.mac = "52-54"; }), "MacAddress \"52-54\"");
  EXPECT_FALSE(with([](PodNetwork& n) { n.gateway = ""; })->gateway);
}

/// What a hostile peer may say as a time does not leave the clock's range.
TEST(VpcMessages, TimesFarAway) {
  PodNetwork network = sample_network();
  network.create_time = kUnixSecondsMax;
  EXPECT_GT(warm_address_of(network)->created, WallTime(9'000'000'000s));
  core::StockAddress address = sample_warm_address();
  address.created = WallTime::min();
  EXPECT_EQ(pod_network_of(address).create_time, 0);
}

}  // namespace
}  // namespace croft::wire::vpc
