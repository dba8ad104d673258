#include "vpc/format/messages.h"

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "base/text/proto.h"
#include "vpc/provider.h"

namespace croft::wire::vpc {
namespace {

using proto::Message;

/// In the order of Method.
constexpr std::array<std::string_view, kMethodCount> kPaths = {
    "/rpc.CNIIpam/Ping",
    "/rpc.CNIIpam/AddPodNetwork",
    "/rpc.CNIIpam/DelPodNetwork",
    "/rpc.CNIIpam/AddPodNetworkRecord",
    "/rpc.CNIIpam/DelPodNetworkRecord",
    "/rpc.CNIIpam/GetPodNetworkRecord",
    "/rpc.CNIIpam/ListPodNetworkRecord",
    "/rpc.CNIIpam/BorrowIP",
    "/rpc.CNIIpam/DescribePool",
    "/rpc.CNIIpam/PushPool",
    "/rpc.CNIIpam/PopPool",
    "/rpc.CNIIpam/ListUnuse",
    "/rpc.CNIIpam/ReleaseIP",
    "/rpc.CNIIpam/SupportMultiSubnet",
    "/rpc.CNIIpam/ShowStock",
};

/// The bound of the words of names; other texts say their own.
struct Rules {
  static constexpr std::size_t kTextBytesMax = kNameBytesMax;

  static Error wrong(std::string_view member, std::string_view why) {
    return invalid_argument(fmt::format("message of the node agent: {} {}", member, why));
  }
  static std::string fault_of(std::string_view text, std::size_t bytes_max) {
    if (text.size() > bytes_max) return fmt::format("has {} bytes, more than {}", text.size(), bytes_max);
    return is_plain_text(text) ? "" : "is not UTF-8 without control characters";
  }
};

template <class Io>
void time_member(Io& io, std::uint32_t number, std::string_view member, auto& v) {
  io.number(number, v);
  if constexpr (Io::kReads) {
    const bool is_time = v >= 0 && v <= kUnixSecondsMax;
    if (!is_time) io.refuse(member, fmt::format("is {}, no time between 1970 and the year 9999", v));
  }
}

void members(auto& io, Message<PodNetwork> auto& v) {
  io.field(1, "PodName", v.pod_name);
  io.field(2, "PodNS", v.pod_namespace);
  io.field(3, "PodUID", v.pod_uid);
  io.field(4, "SandboxID", v.sandbox_id);
  io.field(5, "NetNS", v.netns, kTextBytesMax);
  io.field(6, "VPCIP", v.ip);
  io.field(7, "VPCID", v.vpc);
  io.field(8, "SubnetID", v.subnet);
  io.field(9, "Gateway", v.gateway);
  io.field(10, "Mask", v.mask);
  io.field(11, "MacAddress", v.mac);
  io.number(12, v.dedicated_uni);
  io.field(13, "InterfaceID", v.interface_id);
  io.field(14, "EIPID", v.eip_id);
  time_member(io, 15, "CreateTime", v.create_time);
  time_member(io, 16, "RecycleTime", v.recycle_time);
  io.number(17, v.recycled);
  io.field(110, "Why", v.why, kTextBytesMax);
}

// Some messages are the same for several methods; one of them stands for all.

struct Speech {
  std::uint32_t newest = 0;
};
void members(auto& io, Message<Speech> auto& v) { io.number(1, v.newest); }

template <class Io>
void members(Io& io, Message<AddPodNetworkRequest> auto& v) {
  io.field(1, "PodName", v.pod_name);
  io.field(2, "PodNamespace", v.pod_namespace);
  io.field(3, "SandboxID", v.sandbox_id);
  io.field(4, "Netns", v.netns, kTextBytesMax);
  io.field(5, "IfName", v.interface_name);
  io.field(6, "SubnetID", v.subnet);
  io.field(7, "MacAddress", v.mac);
  io.field(8, "InterfaceID", v.interface_id);
  io.field(100, "Network", v.network, kTextBytesMax);
  io.field(101, "PodUID", v.pod_uid);
  std::optional<Speech> speech;
  if (v.is_crofts) speech = Speech{1};
  io.maybe(110, "Speech", speech);
  if constexpr (Io::kReads) v.is_crofts = speech && speech->newest > 0;
}

void members(auto& io, Message<DelPodNetworkRequest> auto& v) {
  io.maybe(1, "PodNetwork", v.pod_network);
  io.field(100, "Network", v.network, kTextBytesMax);
  io.field(101, "IfName", v.interface_name);
}

void members(auto& io, Message<RecordKey> auto& v) {
  io.field(1, "PodName", v.pod_name);
  io.field(2, "PodNS", v.pod_namespace);
  io.field(3, "SandboxID", v.sandbox_id);
}

void members(auto& io, Message<BorrowRequest> auto& v) {
  io.field(1, "MacAddr", v.mac);
  io.field(2, "SubnetID", v.subnet);
  io.field(100, "Request", v.request);
}

void members(auto& io, Message<StockRequest> auto& v) { io.field(1, "IP", v.ip); }
void members(auto& io, Message<ReleaseRequest> auto& v) { io.list(1, "IP", v.ips, kListMax); }
void members(auto& io, Message<NetworkAnswer> auto& v) { io.maybe(2, "PodNetwork", v.network); }
void members(auto& io, Message<NetworksAnswer> auto& v) { io.list(2, "Networks", v.networks, kListMax); }

void members(auto& io, Message<StockAnswer> auto& v) {
  io.list(2, "Pool", v.pool, kListMax);
  io.list(3, "Cooldown", v.cooldown, kListMax);
}

using Property = std::pair<std::string, std::string>;
void members(auto& io, Message<Property> auto& v) {
  io.field(1, "Name", v.first);
  io.field(2, "Value", v.second, kTextBytesMax);
}
void members(auto& io, Message<ShowAnswer> auto& v) { io.list(1, "Properties", v.properties, kListMax); }

// ---------------------------------------------------------------- addresses

std::string mask_of(const core::StockAddress& address) {
  if (address.address.is_v6()) return fmt::format("{}", address.prefix_length);
  const int length = static_cast<int>(std::min<std::uint32_t>(address.prefix_length, 32));
  return net::Prefix::containing(net::Address::v4(0xffff'ffff), length).address().to_string();
}

std::int64_t unix_seconds(WallTime time) {
  const auto since = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  return std::clamp<std::int64_t>(since, 0, kUnixSecondsMax);
}

/// The most that the clock of WallTime holds.
WallTime wall_time(std::int64_t unix_seconds) {
  constexpr auto kMost = std::chrono::floor<std::chrono::seconds>(WallTime::max());
  return std::min(kMost, std::chrono::sys_seconds(std::chrono::seconds(unix_seconds)));
}

std::string found(const std::map<std::string, std::string>& extra, const std::string& key) {
  const auto entry = extra.find(key);
  return entry == extra.end() ? std::string() : entry->second;
}

constexpr const char* kDedicatedUni = "dedicatedUNI";
constexpr const char* kInterfaceId = "interfaceID";
constexpr const char* kEipId = "eipID";

}  // namespace

std::string_view path_of(Method method) { return kPaths.at(static_cast<std::size_t>(method)); }

std::optional<Method> method_of(std::string_view path) {
  const auto found = std::ranges::find(kPaths, path);
  if (found == kPaths.end()) return {};
  return static_cast<Method>(found - kPaths.begin());
}

PodNetwork pod_network_of(const core::StockAddress& address) {
  PodNetwork network;
  network.pod_name = address.pod.name;
  network.pod_namespace = address.pod.namespace_name;
  network.pod_uid = address.pod.uid;
  network.sandbox_id = address.owner.container_id;
  network.netns = address.netns;
  network.ip = address.address.to_string();
  network.vpc = address.vpc;
  network.subnet = address.subnet;
  if (address.gateway) network.gateway = address.gateway->to_string();
  network.mask = mask_of(address);
  network.mac = cloud::capital_text(address.mac);
  network.dedicated_uni = found(address.extra, kDedicatedUni) == "true";
  network.interface_id = found(address.extra, kInterfaceId);
  network.eip_id = found(address.extra, kEipId);
  network.create_time = unix_seconds(address.created);
  network.recycle_time = unix_seconds(address.recycled_at);
  network.recycled = address.recycled;
  return network;
}

Result<core::StockAddress> warm_address_of(const PodNetwork& network) {
  core::StockAddress address;
  const auto ip = net::Address::parse(network.ip);
  if (!ip) return fail(Rules::wrong("VPCIP", fmt::format("\"{}\" is no address", network.ip)));
  address.address = *ip;
  // UK8S' own plugin records an address of its own without one.
  if (!network.mask.empty()) {
    const auto length = cloud::parse_mask(network.mask, ip->family());
    if (!length) {
      return fail(
          Rules::wrong("Mask", fmt::format("\"{}\" is no mask of an {} subnet", network.mask, name_of(ip->family()))));
    }
    address.prefix_length = static_cast<std::uint32_t>(*length);
  }
  if (!network.gateway.empty()) {
    const auto gateway = net::Address::parse(network.gateway);
    if (!gateway || gateway->family() != ip->family()) {
      return fail(Rules::wrong("Gateway",
                               fmt::format("\"{}\" is no address of the family of {}", network.gateway, network.ip)));
    }
    address.gateway = *gateway;
  }
  const auto mac = net::Mac::parse(network.mac);
  if (!mac) return fail(Rules::wrong("MacAddress", fmt::format("\"{}\" is no MAC address", network.mac)));
  address.mac = *mac;
  address.vpc = network.vpc;
  address.subnet = network.subnet;
  address.created = wall_time(network.create_time);
  address.recycled = network.recycled;
  address.recycled_at = wall_time(network.recycle_time);
  address.pod = {network.pod_name, network.pod_namespace, network.pod_uid};
  address.owner.container_id = network.sandbox_id;
  address.netns = network.netns;
  if (network.dedicated_uni) address.extra[kDedicatedUni] = "true";
  if (!network.interface_id.empty()) address.extra[kInterfaceId] = network.interface_id;
  if (!network.eip_id.empty()) address.extra[kEipId] = network.eip_id;
  return address;
}

// ---------------------------------------------------------------- both ways

template <class Value>
std::string encode(const Value& value) {
  return proto::Io<Rules, false>::written(value);
}

template <class Value>
Result<Value> decode(std::string_view bytes) {
  return proto::Io<Rules, true>::template read<Value>(bytes);
}

std::string encode(const ShowAnswer& value) {
  ShowAnswer shown = value;
  for (auto& [name, text] : shown.properties) {
    // An error of the cloud may have any bytes.
    text = printable(text, Printed::line);
    if (text.size() > kTextBytesMax) text = "(too long)";
  }
  return encode<ShowAnswer>(shown);
}

#define CROFT_VPC_MESSAGE(Value)                   \
  template std::string encode(const Value& value); \
  template Result<Value> decode(std::string_view bytes)
CROFT_VPC_MESSAGE(AddPodNetworkRequest);
CROFT_VPC_MESSAGE(DelPodNetworkRequest);
CROFT_VPC_MESSAGE(RecordKey);
CROFT_VPC_MESSAGE(BorrowRequest);
CROFT_VPC_MESSAGE(StockRequest);
CROFT_VPC_MESSAGE(ReleaseRequest);
CROFT_VPC_MESSAGE(NetworkAnswer);
CROFT_VPC_MESSAGE(NetworksAnswer);
CROFT_VPC_MESSAGE(StockAnswer);
CROFT_VPC_MESSAGE(ShowAnswer);
#undef CROFT_VPC_MESSAGE

}  // namespace croft::wire::vpc
