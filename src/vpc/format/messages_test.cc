#include "vpc/format/messages.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace croft::wire::vpc {
namespace {

using namespace std::chrono_literals;

PodNetwork sample_network() {
  PodNetwork network;
  network.set_podname("cart-0");
  network.set_podns("shop");
  network.set_poduid("5b7e");
  network.set_sandboxid("7f3c");
  network.set_netns("/run/netns/a");
  network.set_vpcip("10.9.0.7");
  network.set_vpcid("uvnet-1");
  network.set_subnetid("subnet-1");
  network.set_gateway("10.9.0.1");
  network.set_mask("255.255.255.0");
  network.set_macaddress("52:54:00:26:6E:DA");
  network.set_dedicateduni(true);
  network.set_interfaceid("uni-abc");
  network.set_eipid("eip-x");
  network.set_createtime(300);
  network.set_recycletime(1);
  network.set_recycled(true);
  return network;
}

/// The bytes of a message with these members set.
template <class Message>
std::string with(void (*set)(Message&)) {
  Message message;
  set(message);
  return message.SerializeAsString();
}

std::string hex_of(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
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
  EXPECT_EQ(hex_of(sample_network().SerializeAsString()), hex_of(network));
  const std::string in_field_1 = std::string("\x0a\x8c\x01") + network;
  const std::string in_field_2 = std::string("\x12\x8c\x01") + network;
  EXPECT_EQ(decode<DelPodNetworkRequest>(in_field_1)->podnetwork().SerializeAsString(), network);
  EXPECT_EQ(decode<NetworkAnswer>(in_field_2)->podnetwork().SerializeAsString(), network);
  EXPECT_EQ(decode<NetworksAnswer>(in_field_2)->networks(0).SerializeAsString(), network);
  EXPECT_EQ(decode<StockAnswer>(in_field_2 + "\x1a" + std::string(1, '\0'))->pool(0).SerializeAsString(), network);
  EXPECT_EQ(decode<StockAnswer>(in_field_2 + "\x1a" + std::string(1, '\0'))->cooldown_size(), 1);
  EXPECT_FALSE(decode<NetworkAnswer>("")->has_podnetwork());
  const auto members = [](const auto&... texts) {
    std::string all;
    ((all += (all.empty() ? "" : " ") + texts), ...);
    return all;
  };
  const auto asked = decode<AddPodNetworkRequest>(field(1, "a") + field(2, "b") + field(3, "c") + field(4, "d") +
                                                  field(5, "e") + field(6, "f") + field(7, "g") + field(8, "h") +
                                                  field(100, "i") + field(101, "j") + field(110, "\x08\x01"));
  EXPECT_EQ(members(asked->podname(), asked->podnamespace(), asked->sandboxid(), asked->netns(), asked->ifname(),
                    asked->subnetid(), asked->macaddress(), asked->interfaceid(), asked->network(), asked->poduid()),
            "a b c d e f g h i j");
  EXPECT_EQ(asked->speech().newest(), 1U);
  const auto del = decode<DelPodNetworkRequest>(field(100, "a") + field(101, "b"));
  EXPECT_EQ(members(del->network(), del->ifname()), "a b");
  const auto key = decode<RecordKey>(field(1, "a") + field(2, "b") + field(3, "c"));
  EXPECT_EQ(members(key->podname(), key->podns(), key->sandboxid()), "a b c");
  const auto borrow = decode<BorrowRequest>(field(1, "a") + field(2, "b") + field(100, "c"));
  EXPECT_EQ(members(borrow->macaddr(), borrow->subnetid(), borrow->request()), "a b c");
  EXPECT_EQ(decode<StockRequest>(field(1, "a"))->ip(), "a");
  EXPECT_EQ(decode<ReleaseRequest>(field(1, "a") + field(1, "b"))->ip(1), "b");
}

/// The messages that one type stands for are the same in the protocol.
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
  const std::string bytes = field(3, "c") + field(77, "later") + std::string("\xf0\x04\x05");
  EXPECT_EQ(decode<RecordKey>(bytes)->sandboxid(), "c");
}

template <class Value>
void expect_refused(const Result<Value>& read, const std::string& in_message) {
  ASSERT_FALSE(read) << "expected: " << in_message;
  EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(read.error().message.find(in_message), std::string::npos) << read.error().message;
}

TEST(VpcMessages, WhatIsOutOfBoundsIsRefused) {
  const auto network_with = [](auto change) {
    NetworkAnswer answer;
    *answer.mutable_podnetwork() = sample_network();
    change(*answer.mutable_podnetwork());
    return decode<NetworkAnswer>(answer.SerializeAsString());
  };
  const std::string name(kNameBytesMax, 'a'), text(kTextBytesMax, 'a');
  EXPECT_TRUE(network_with([&](PodNetwork& n) { n.set_podname(name); }));
  expect_refused(network_with([&](PodNetwork& n) { n.set_podname(name + 'a'); }),
                 "PodName has 254 bytes, more than 253");
  EXPECT_TRUE(network_with([&](PodNetwork& n) { n.set_netns(text); }));
  expect_refused(network_with([&](PodNetwork& n) { n.set_netns(text + 'a'); }), "NetNS has 4097 bytes");
  expect_refused(network_with([](PodNetwork& n) { n.set_sandboxid("a\nb"); }),
                 "SandboxID is not UTF-8 without control");
  expect_refused(network_with([](PodNetwork& n) { n.set_macaddress(std::string(1, '\0')); }),
                 "MacAddress is not UTF-8");
  expect_refused(network_with([](PodNetwork& n) { n.set_eipid("\xc2\x9b"); }), "EIPID is not UTF-8 without control");
  EXPECT_TRUE(network_with([](PodNetwork& n) { n.set_subnetid("käse"); }));
  expect_refused(network_with([](PodNetwork& n) { n.set_createtime(-1); }), "CreateTime is -1");
  expect_refused(network_with([](PodNetwork& n) { n.set_recycletime(kUnixSecondsMax + 1); }),
                 "RecycleTime is 2534023008");

  expect_refused(decode<StockRequest>("\x0a\x01\xff"), "");  // no UTF-8: the parser's refusal or ours
  expect_refused(decode<StockRequest>("\x0a\x05"
                                      "ab"),
                 "the whole is not what the protocol says");
  expect_refused(decode<AddPodNetworkRequest>(
                     with<AddPodNetworkRequest>([](auto& m) { m.set_ifname(std::string(kNameBytesMax + 1, 'a')); })),
                 "IfName has 254 bytes");
  expect_refused(decode<ReleaseRequest>(field(1, "10.9.0.7") + field(1, "a\tb")), "IP is not UTF-8");
  expect_refused(decode<BorrowRequest>(field(100, "\x7f")), "Request is not UTF-8");
}

TEST(VpcMessages, WhatIsShownSurvivesAndIsBounded) {
  const auto read = [](std::string value) {
    return decode<ShowAnswer>(shown({{"trouble", std::move(value)}}).SerializeAsString())->properties(0).value();
  };
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("a\nb"), "a\\x0ab") << "made readable by who shows it";
  EXPECT_EQ(read(std::string(kTextBytesMax + 1, 'a')), "(too long)");
}

TEST(VpcMessages, ListsAreBounded) {
  const auto empties = [](char field, std::size_t count) {
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) bytes += {field, '\0'};
    return bytes;
  };
  const std::size_t most = kRequestBytesMax / 2;  // an empty one has two bytes
  EXPECT_EQ(decode<ReleaseRequest>(empties('\x0a', most))->ip_size(), static_cast<int>(most));
  expect_refused(decode<ReleaseRequest>(empties('\x0a', most + 1)), "the whole has 65538 bytes, more than 65536");
  const std::size_t many = kListMax + 1;
  expect_refused(decode<NetworksAnswer>(empties('\x12', many)), "Networks has 65537 entries");
  expect_refused(decode<StockAnswer>(empties('\x12', many)), "Pool has 65537 entries");
  expect_refused(decode<StockAnswer>(empties('\x1a', many)), "Cooldown has 65537 entries");
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
  EXPECT_EQ(pod_network_of(sample_warm_address()).SerializeAsString(), sample_network().SerializeAsString());

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
  EXPECT_EQ(network.vpcip(), "fd00::7");
  EXPECT_EQ(network.mask(), "64");
  EXPECT_EQ(network.gateway(), "");
  EXPECT_EQ(network.recycletime(), 0);
  EXPECT_FALSE(network.dedicateduni());
  EXPECT_EQ(warm_address_of(network)->prefix_length, 64U);
  EXPECT_EQ(warm_address_of(network)->recycled_at, WallTime{});
}

TEST(VpcMessages, Masks) {
  for (std::uint32_t length = 0; length <= 32; ++length) {
    core::StockAddress address = sample_warm_address();
    address.prefix_length = length;
    const PodNetwork network = pod_network_of(address);
    EXPECT_EQ(warm_address_of(network)->prefix_length, length) << network.mask();
  }
  PodNetwork network = sample_network();
  network.set_mask("24");  // a cloud's description of a subnet has it so
  EXPECT_EQ(warm_address_of(network)->prefix_length, 24U);
  network.clear_mask();  // UK8S' plugin tells of an address of its own without one
  EXPECT_EQ(warm_address_of(network)->prefix_length, 0U);
  for (const char* mask : {"33", "255.0.255.0", "0.0.0.1", "ffff::", "255.255.255"}) {
    network.set_mask(mask);
    expect_refused(warm_address_of(network), fmt::format("Mask \"{}\" is no mask of an IPv4 subnet", mask));
  }
}

TEST(VpcMessages, WhatIsNoAddressIsNamed) {
  const auto with = [](auto change) {
    PodNetwork network = sample_network();
    change(network);
    return warm_address_of(network);
  };
  expect_refused(with([](PodNetwork& n) { n.clear_vpcip(); }), "VPCIP \"\" is no address");
  expect_refused(with([](PodNetwork& n) { n.set_vpcip("10.9.0.700"); }), "VPCIP \"10.9.0.700\" is no address");
  expect_refused(with([](PodNetwork& n) { n.set_gateway("fd00::1"); }), "Gateway \"fd00::1\"");
  expect_refused(with([](PodNetwork& n) { n.set_macaddress("52-54"); }), "MacAddress \"52-54\"");
  EXPECT_FALSE(with([](PodNetwork& n) { n.clear_gateway(); })->gateway);
}

/// What a hostile peer may say as a time does not leave the clock's range.
TEST(VpcMessages, TimesFarAway) {
  PodNetwork network = sample_network();
  network.set_createtime(kUnixSecondsMax);
  EXPECT_GT(warm_address_of(network)->created, WallTime(9'000'000'000s));
  core::StockAddress address = sample_warm_address();
  address.created = WallTime::min();
  EXPECT_EQ(pod_network_of(address).createtime(), 0);
}

}  // namespace
}  // namespace croft::wire::vpc
