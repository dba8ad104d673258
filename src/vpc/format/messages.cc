#include "vpc/format/messages.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "vpc/provider.h"

namespace croft::wire::vpc {
namespace {

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

Error wrong(std::string_view member, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("message of the node agent: {} {}", member, why), {}};
}

// ---------------------------------------------------------------- bounds

/// Keeps the first fault.
struct Bounds {
  std::optional<Error> fault{};

  void refuse(std::string_view member, std::string_view why) {
    if (!fault) fault = wrong(member, why);
  }
  void text(std::string_view member, const std::string& text, std::size_t bytes_max = kNameBytesMax) {
    if (text.size() > bytes_max) {
      refuse(member, fmt::format("has {} bytes, more than {}", text.size(), bytes_max));
    } else if (!is_plain_text(text)) {
      refuse(member, "is not UTF-8 without control characters");
    }
  }
  void seconds(std::string_view member, std::int64_t value) {
    if (value >= 0 && value <= kUnixSecondsMax) return;
    refuse(member, fmt::format("is {}, no time between 1970 and the year 9999", value));
  }
  template <class Items, class Each>
  void list(std::string_view member, const Items& items, Each each) {
    if (static_cast<std::size_t>(items.size()) > kListMax) {
      return refuse(member, fmt::format("has {} entries, more than {}", items.size(), kListMax));
    }
    for (const auto& one : items) each(one);
  }
};

void check(Bounds& in, const PodNetwork& m) {
  in.text("PodName", m.podname());
  in.text("PodNS", m.podns());
  in.text("PodUID", m.poduid());
  in.text("SandboxID", m.sandboxid());
  in.text("NetNS", m.netns(), kTextBytesMax);
  in.text("VPCIP", m.vpcip());
  in.text("VPCID", m.vpcid());
  in.text("SubnetID", m.subnetid());
  in.text("Gateway", m.gateway());
  in.text("Mask", m.mask());
  in.text("MacAddress", m.macaddress());
  in.text("InterfaceID", m.interfaceid());
  in.text("EIPID", m.eipid());
  in.text("Why", m.why(), kTextBytesMax);
  in.seconds("CreateTime", m.createtime());
  in.seconds("RecycleTime", m.recycletime());
}

void check(Bounds& in, std::string_view member, const google::protobuf::RepeatedPtrField<PodNetwork>& networks) {
  in.list(member, networks, [&](const PodNetwork& one) { check(in, one); });
}

void check(Bounds& in, const AddPodNetworkRequest& m) {
  in.text("PodName", m.podname());
  in.text("PodNamespace", m.podnamespace());
  in.text("SandboxID", m.sandboxid());
  in.text("Netns", m.netns(), kTextBytesMax);
  in.text("IfName", m.ifname());
  in.text("SubnetID", m.subnetid());
  in.text("MacAddress", m.macaddress());
  in.text("InterfaceID", m.interfaceid());
  in.text("Network", m.network(), kTextBytesMax);
  in.text("PodUID", m.poduid());
}

void check(Bounds& in, const DelPodNetworkRequest& m) {
  check(in, m.podnetwork());
  in.text("Network", m.network(), kTextBytesMax);
  in.text("IfName", m.ifname());
}

void check(Bounds& in, const RecordKey& m) {
  in.text("PodName", m.podname());
  in.text("PodNS", m.podns());
  in.text("SandboxID", m.sandboxid());
}

void check(Bounds& in, const BorrowRequest& m) {
  in.text("MacAddr", m.macaddr());
  in.text("SubnetID", m.subnetid());
  in.text("Request", m.request());
}

void check(Bounds& in, const StockRequest& m) { in.text("IP", m.ip()); }

void check(Bounds& in, const ReleaseRequest& m) {
  in.list("IP", m.ip(), [&](const std::string& one) { in.text("IP", one); });
}

void check(Bounds& in, const NetworkAnswer& m) { check(in, m.podnetwork()); }

void check(Bounds& in, const NetworksAnswer& m) { check(in, "Networks", m.networks()); }

void check(Bounds& in, const StockAnswer& m) {
  check(in, "Pool", m.pool());
  check(in, "Cooldown", m.cooldown());
}

void check(Bounds& in, const ShowAnswer& m) {
  in.list("Properties", m.properties(), [&](const rpc::ShownProperty& one) {
    in.text("Name", one.name());
    in.text("Value", one.value(), kTextBytesMax);
  });
}

template <class Message, class... Those>
constexpr bool is_one_of = (std::is_same_v<Message, Those> || ...);

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

template <class Message>
Result<Message> decode(std::string_view bytes) {
  constexpr std::size_t kMost =
      is_one_of<Message, NetworkAnswer, NetworksAnswer, StockAnswer, ShowAnswer> ? kAnswerBytesMax : kRequestBytesMax;
  if (bytes.size() > kMost) {
    return fail(wrong("the whole", fmt::format("has {} bytes, more than {}", bytes.size(), kMost)));
  }
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(wrong("the whole", "is not what the protocol says"));
  }
  Bounds bounds;
  check(bounds, message);
  if (bounds.fault) return fail(*std::move(bounds.fault));
  return message;
}

template Result<AddPodNetworkRequest> decode(std::string_view bytes);
template Result<DelPodNetworkRequest> decode(std::string_view bytes);
template Result<RecordKey> decode(std::string_view bytes);
template Result<BorrowRequest> decode(std::string_view bytes);
template Result<StockRequest> decode(std::string_view bytes);
template Result<ReleaseRequest> decode(std::string_view bytes);
template Result<NetworkAnswer> decode(std::string_view bytes);
template Result<NetworksAnswer> decode(std::string_view bytes);
template Result<StockAnswer> decode(std::string_view bytes);
template Result<ShowAnswer> decode(std::string_view bytes);

ShowAnswer shown(const std::vector<std::pair<std::string, std::string>>& properties) {
  ShowAnswer answer;
  for (const auto& [name, text] : properties) {
    rpc::ShownProperty& property = *answer.add_properties();
    property.set_name(name);
    // An error of the cloud may have any bytes.
    const std::string line = printable(text, Printed::line);
    property.set_value(line.size() > kTextBytesMax ? "(too long)" : line);
  }
  return answer;
}

PodNetwork pod_network_of(const core::StockAddress& address) {
  PodNetwork network;
  network.set_podname(address.pod.name);
  network.set_podns(address.pod.namespace_name);
  network.set_poduid(address.pod.uid);
  network.set_sandboxid(address.owner.container_id);
  network.set_netns(address.netns);
  network.set_vpcip(address.address.to_string());
  network.set_vpcid(address.vpc);
  network.set_subnetid(address.subnet);
  if (address.gateway) network.set_gateway(address.gateway->to_string());
  network.set_mask(mask_of(address));
  network.set_macaddress(cloud::capital_text(address.mac));
  network.set_dedicateduni(found(address.extra, kDedicatedUni) == "true");
  network.set_interfaceid(found(address.extra, kInterfaceId));
  network.set_eipid(found(address.extra, kEipId));
  network.set_createtime(unix_seconds(address.created));
  network.set_recycletime(unix_seconds(address.recycled_at));
  network.set_recycled(address.recycled);
  return network;
}

Result<core::StockAddress> warm_address_of(const PodNetwork& network) {
  core::StockAddress address;
  const auto ip = net::Address::parse(network.vpcip());
  if (!ip) return fail(wrong("VPCIP", fmt::format("\"{}\" is no address", network.vpcip())));
  address.address = *ip;
  // UK8S' own plugin records an address of its own without one.
  if (!network.mask().empty()) {
    const auto length = cloud::parse_mask(network.mask(), ip->family());
    if (!length) {
      return fail(
          wrong("Mask", fmt::format("\"{}\" is no mask of an {} subnet", network.mask(), name_of(ip->family()))));
    }
    address.prefix_length = static_cast<std::uint32_t>(*length);
  }
  if (!network.gateway().empty()) {
    const auto gateway = net::Address::parse(network.gateway());
    if (!gateway || gateway->family() != ip->family()) {
      return fail(wrong("Gateway",
                        fmt::format("\"{}\" is no address of the family of {}", network.gateway(), network.vpcip())));
    }
    address.gateway = *gateway;
  }
  const auto mac = net::Mac::parse(network.macaddress());
  if (!mac) return fail(wrong("MacAddress", fmt::format("\"{}\" is no MAC address", network.macaddress())));
  address.mac = *mac;
  address.vpc = network.vpcid();
  address.subnet = network.subnetid();
  address.created = wall_time(network.createtime());
  address.recycled = network.recycled();
  address.recycled_at = wall_time(network.recycletime());
  address.pod = {network.podname(), network.podns(), network.poduid()};
  address.owner.container_id = network.sandboxid();
  address.netns = network.netns();
  if (network.dedicateduni()) address.extra[kDedicatedUni] = "true";
  if (!network.interfaceid().empty()) address.extra[kInterfaceId] = network.interfaceid();
  if (!network.eipid().empty()) address.extra[kEipId] = network.eipid();
  return address;
}

}  // namespace croft::wire::vpc
