#include "vpc/format/messages.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <rpc/ipamd.pb.h>

#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "vpc/provider.h"

namespace croft::wire::vpc {
namespace {

namespace pb = ::rpc;

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

template <class Message>
[[nodiscard]] Result<Message> parse(std::string_view bytes, std::size_t bytes_max) {
  if (bytes.size() > bytes_max) {
    return fail(wrong("the whole", fmt::format("has {} bytes, more than {}", bytes.size(), bytes_max)));
  }
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(wrong("the whole", "is not what the protocol says"));
  }
  return message;
}

// ---------------------------------------------------------------- the members of messages, once for both ways

/// Fills a message of the protocol.
struct Writer {
  static constexpr bool kReads = false;
  void text(std::string_view /*member*/, std::string& out, const std::string& value,
            std::size_t /*bytes_max*/ = kNameBytesMax) {
    out = value;
  }
};

/// Takes what one says, which is ours to change; the first fault is kept.
struct Reader {
  static constexpr bool kReads = true;
  std::optional<Error> fault{};

  void refuse(std::string_view member, std::string_view why) {
    if (!fault) fault = wrong(member, why);
  }
  void text(std::string_view member, std::string& in, std::string& value, std::size_t bytes_max = kNameBytesMax) {
    if (in.size() > bytes_max) {
      return refuse(member, fmt::format("has {} bytes, more than {}", in.size(), bytes_max));
    }
    if (!is_plain_text(in)) return refuse(member, "is not UTF-8 without control characters");
    value = std::move(in);
  }
  std::int64_t seconds(std::string_view member, std::int64_t value) {
    if (value < 0 || value > kUnixSecondsMax) {
      refuse(member, fmt::format("is {}, no time between 1970 and the year 9999", value));
    }
    return value;
  }
  template <class Items>
  [[nodiscard]] bool has_room(std::string_view member, const Items& items) {
    const bool is_short = static_cast<std::size_t>(items.size()) <= kListMax;
    if (!is_short) refuse(member, fmt::format("has {} entries, more than {}", items.size(), kListMax));
    return is_short;
  }
};

template <class Io, class V>
void members(Io& io, pb::PodNetwork& m, V& v) {
  io.text("PodName", *m.mutable_podname(), v.pod_name);
  io.text("PodNS", *m.mutable_podns(), v.pod_namespace);
  io.text("PodUID", *m.mutable_poduid(), v.pod_uid);
  io.text("SandboxID", *m.mutable_sandboxid(), v.sandbox_id);
  io.text("NetNS", *m.mutable_netns(), v.netns, kTextBytesMax);
  io.text("VPCIP", *m.mutable_vpcip(), v.ip);
  io.text("VPCID", *m.mutable_vpcid(), v.vpc);
  io.text("SubnetID", *m.mutable_subnetid(), v.subnet);
  io.text("Gateway", *m.mutable_gateway(), v.gateway);
  io.text("Mask", *m.mutable_mask(), v.mask);
  io.text("MacAddress", *m.mutable_macaddress(), v.mac);
  io.text("InterfaceID", *m.mutable_interfaceid(), v.interface_id);
  io.text("EIPID", *m.mutable_eipid(), v.eip_id);
  io.text("Why", *m.mutable_why(), v.why, kTextBytesMax);
  if constexpr (Io::kReads) {
    v.dedicated_uni = m.dedicateduni();
    v.create_time = io.seconds("CreateTime", m.createtime());
    v.recycle_time = io.seconds("RecycleTime", m.recycletime());
    v.recycled = m.recycled();
  } else {
    m.set_dedicateduni(v.dedicated_uni);
    m.set_createtime(v.create_time);
    m.set_recycletime(v.recycle_time);
    m.set_recycled(v.recycled);
  }
}

/// That of a message which may have one.
template <class Io, class Message, class V>
void network(Io& io, Message& m, V& v) {
  if constexpr (Io::kReads) {
    if (m.has_podnetwork()) members(io, *m.mutable_podnetwork(), v.emplace());
  } else {
    if (v) members(io, *m.mutable_podnetwork(), *v);
  }
}

template <class Io, class List, class V>
void networks(Io& io, std::string_view member, List& list, V& v) {
  if constexpr (Io::kReads) {
    if (!io.has_room(member, list)) return;
    v.reserve(static_cast<std::size_t>(list.size()));
    for (pb::PodNetwork& one : list) members(io, one, v.emplace_back());
  } else {
    for (const PodNetwork& one : v) members(io, *list.Add(), one);
  }
}

// Some messages are the same for several methods; one of them stands for all.

template <class Io, class V>
void members(Io& io, pb::AddPodNetworkRequest& m, V& v) {
  io.text("PodName", *m.mutable_podname(), v.pod_name);
  io.text("PodNamespace", *m.mutable_podnamespace(), v.pod_namespace);
  io.text("SandboxID", *m.mutable_sandboxid(), v.sandbox_id);
  io.text("Netns", *m.mutable_netns(), v.netns, kTextBytesMax);
  io.text("IfName", *m.mutable_ifname(), v.interface_name);
  io.text("SubnetID", *m.mutable_subnetid(), v.subnet);
  io.text("MacAddress", *m.mutable_macaddress(), v.mac);
  io.text("InterfaceID", *m.mutable_interfaceid(), v.interface_id);
  io.text("Network", *m.mutable_network(), v.network, kTextBytesMax);
  io.text("PodUID", *m.mutable_poduid(), v.pod_uid);
  if constexpr (Io::kReads) {
    v.is_crofts = m.speech().newest() > 0;
  } else if (v.is_crofts) {
    m.mutable_speech()->set_newest(1);
  }
}

template <class Io, class V>
void members(Io& io, pb::DelPodNetworkRequest& m, V& v) {
  network(io, m, v.pod_network);
  io.text("Network", *m.mutable_network(), v.network, kTextBytesMax);
  io.text("IfName", *m.mutable_ifname(), v.interface_name);
}

template <class Io, class V>
void members(Io& io, pb::GetPodNetworkRecordRequest& m, V& v) {
  io.text("PodName", *m.mutable_podname(), v.pod_name);
  io.text("PodNS", *m.mutable_podns(), v.pod_namespace);
  io.text("SandboxID", *m.mutable_sandboxid(), v.sandbox_id);
}

template <class Io, class V>
void members(Io& io, pb::BorrowIPRequest& m, V& v) {
  io.text("MacAddr", *m.mutable_macaddr(), v.mac);
  io.text("SubnetID", *m.mutable_subnetid(), v.subnet);
  io.text("Request", *m.mutable_request(), v.request);
}

template <class Io, class V>
void members(Io& io, pb::PopPoolRequest& m, V& v) {
  io.text("IP", *m.mutable_ip(), v.ip);
}

template <class Io, class V>
void members(Io& io, pb::ReleaseIPRequest& m, V& v) {
  if constexpr (Io::kReads) {
    if (!io.has_room("IP", m.ip())) return;
    for (std::string& one : *m.mutable_ip()) io.text("IP", one, v.ips.emplace_back());
  } else {
    for (const std::string& ip : v.ips) m.add_ip(ip);
  }
}

template <class Io, class V>
void members(Io& io, pb::AddPodNetworkResponse& m, V& v) {
  network(io, m, v.network);
}

template <class Io, class V>
void members(Io& io, pb::ListPodNetworkRecordResponse& m, V& v) {
  networks(io, "Networks", *m.mutable_networks(), v.networks);
}

template <class Io, class V>
void members(Io& io, pb::DescribePoolResponse& m, V& v) {
  networks(io, "Pool", *m.mutable_pool(), v.pool);
  networks(io, "Cooldown", *m.mutable_cooldown(), v.cooldown);
}

template <class Message, class Value>
std::string written(const Value& value) {
  Message out;
  Writer io;
  members(io, out, value);
  return out.SerializeAsString();
}

template <class Message, class Value>
[[nodiscard]] Result<Value> read(std::string_view bytes, std::size_t bytes_max = kRequestBytesMax) {
  TRY(Message in, parse<Message>(bytes, bytes_max));
  Value value;
  Reader io;
  members(io, in, value);
  if (io.fault) return fail(*std::move(io.fault));
  return value;
}

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

std::optional<net::Address> parsed_ip(const PodNetwork& network) {
  const auto address = net::Address::parse(network.ip);
  if (!address) return {};
  return *address;
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
  const auto ip = parsed_ip(network);
  if (!ip) return fail(wrong("VPCIP", fmt::format("\"{}\" is no address", network.ip)));
  address.address = *ip;
  // UK8S' own plugin records an address of its own without one.
  if (!network.mask.empty()) {
    const auto length = cloud::parse_mask(network.mask, ip->family());
    if (!length) {
      return fail(wrong("Mask", fmt::format("\"{}\" is no mask of an {} subnet", network.mask, name_of(ip->family()))));
    }
    address.prefix_length = static_cast<std::uint32_t>(*length);
  }
  if (!network.gateway.empty()) {
    const auto gateway = net::Address::parse(network.gateway);
    if (!gateway || gateway->family() != ip->family()) {
      return fail(
          wrong("Gateway", fmt::format("\"{}\" is no address of the family of {}", network.gateway, network.ip)));
    }
    address.gateway = *gateway;
  }
  const auto mac = net::Mac::parse(network.mac);
  if (!mac) return fail(wrong("MacAddress", fmt::format("\"{}\" is no MAC address", network.mac)));
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

std::string encode(const Nothing& /*value*/) { return {}; }
std::string encode(const AddPodNetworkRequest& value) { return written<pb::AddPodNetworkRequest>(value); }
std::string encode(const DelPodNetworkRequest& value) { return written<pb::DelPodNetworkRequest>(value); }
std::string encode(const RecordKey& value) { return written<pb::GetPodNetworkRecordRequest>(value); }
std::string encode(const BorrowRequest& value) { return written<pb::BorrowIPRequest>(value); }
std::string encode(const StockRequest& value) { return written<pb::PopPoolRequest>(value); }
std::string encode(const ReleaseRequest& value) { return written<pb::ReleaseIPRequest>(value); }
std::string encode(const NetworkAnswer& value) { return written<pb::AddPodNetworkResponse>(value); }
std::string encode(const NetworksAnswer& value) { return written<pb::ListPodNetworkRecordResponse>(value); }
std::string encode(const StockAnswer& value) { return written<pb::DescribePoolResponse>(value); }

Result<AddPodNetworkRequest> decode_add_pod_network_request(std::string_view bytes) {
  return read<pb::AddPodNetworkRequest, AddPodNetworkRequest>(bytes);
}
Result<DelPodNetworkRequest> decode_del_pod_network_request(std::string_view bytes) {
  return read<pb::DelPodNetworkRequest, DelPodNetworkRequest>(bytes);
}
Result<RecordKey> decode_record_key(std::string_view bytes) {
  return read<pb::GetPodNetworkRecordRequest, RecordKey>(bytes);
}
Result<BorrowRequest> decode_borrow_request(std::string_view bytes) {
  return read<pb::BorrowIPRequest, BorrowRequest>(bytes);
}
Result<StockRequest> decode_stock_request(std::string_view bytes) {
  return read<pb::PopPoolRequest, StockRequest>(bytes);
}
Result<ReleaseRequest> decode_release_request(std::string_view bytes) {
  return read<pb::ReleaseIPRequest, ReleaseRequest>(bytes);
}
Result<NetworkAnswer> decode_network_answer(std::string_view bytes) {
  return read<pb::AddPodNetworkResponse, NetworkAnswer>(bytes, kAnswerBytesMax);
}
Result<NetworksAnswer> decode_networks_answer(std::string_view bytes) {
  return read<pb::ListPodNetworkRecordResponse, NetworksAnswer>(bytes, kAnswerBytesMax);
}
Result<StockAnswer> decode_stock_answer(std::string_view bytes) {
  return read<pb::DescribePoolResponse, StockAnswer>(bytes, kAnswerBytesMax);
}

std::string encode(const ShowAnswer& value) {
  pb::ShowStockResponse out;
  for (const auto& [name, text] : value.properties) {
    pb::ShownProperty& property = *out.add_properties();
    property.set_name(name);
    // An error of the cloud may have any bytes.
    const std::string line = printable(text, Printed::line);
    property.set_value(line.size() > kTextBytesMax ? "(too long)" : line);
  }
  return out.SerializeAsString();
}

Result<ShowAnswer> decode_show_answer(std::string_view bytes) {
  TRY(auto in, parse<pb::ShowStockResponse>(bytes, kAnswerBytesMax));
  ShowAnswer value;
  Reader io;
  if (!io.has_room("Properties", in.properties())) return fail(*std::move(io.fault));
  for (pb::ShownProperty& property : *in.mutable_properties()) {
    auto& [name, text] = value.properties.emplace_back();
    io.text("Name", *property.mutable_name(), name);
    io.text("Value", *property.mutable_value(), text, kTextBytesMax);
  }
  if (io.fault) return fail(*std::move(io.fault));
  return value;
}

}  // namespace croft::wire::vpc
