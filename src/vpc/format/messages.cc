#include "vpc/format/messages.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <rpc/ipamd.pb.h>

#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/text/go_text.h"

namespace croft::wire::vpc {
namespace {

namespace pb = ::rpc;

Error wrong(std::string_view member, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("message of the node agent: {} {}", member, why), {}};
}

[[nodiscard]] Result<std::string> text_of(std::string_view member, const std::string& text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return fail(wrong(member, fmt::format("has {} bytes, more than {}", text.size(), bytes_max)));
  }
  if (!is_plain_text(text)) return fail(wrong(member, "is not UTF-8 without control characters"));
  return text;
}

[[nodiscard]] Result<std::string> name(std::string_view member, const std::string& text) {
  return text_of(member, text, kNameBytesMax);
}

[[nodiscard]] Result<std::string> text(std::string_view member, const std::string& value) {
  return text_of(member, value, kTextBytesMax);
}

[[nodiscard]] Result<std::int64_t> seconds(std::string_view member, std::int64_t value) {
  if (value < 0 || value > kUnixSecondsMax) {
    return fail(wrong(member, fmt::format("is {}, no time between 1970 and the year 9999", value)));
  }
  return value;
}

template <class Items>
[[nodiscard]] Result<void> check_count(std::string_view member, const Items& items) {
  if (static_cast<std::size_t>(items.size()) <= kListMax) return {};
  return fail(wrong(member, fmt::format("has {} entries, more than {}", items.size(), kListMax)));
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

// ---------------------------------------------------------------- PodNetwork

void fill(pb::PodNetwork& out, const PodNetwork& network) {
  out.set_podname(network.pod_name);
  out.set_podns(network.pod_namespace);
  out.set_poduid(network.pod_uid);
  out.set_sandboxid(network.sandbox_id);
  out.set_netns(network.netns);
  out.set_vpcip(network.ip);
  out.set_vpcid(network.vpc);
  out.set_subnetid(network.subnet);
  out.set_gateway(network.gateway);
  out.set_mask(network.mask);
  out.set_macaddress(network.mac);
  out.set_dedicateduni(network.dedicated_uni);
  out.set_interfaceid(network.interface_id);
  out.set_eipid(network.eip_id);
  out.set_createtime(network.create_time);
  out.set_recycletime(network.recycle_time);
  out.set_recycled(network.recycled);
}

[[nodiscard]] Result<PodNetwork> network_of(const pb::PodNetwork& in) {
  PodNetwork network;
  TRY(network.pod_name, name("PodName", in.podname()));
  TRY(network.pod_namespace, name("PodNS", in.podns()));
  TRY(network.pod_uid, name("PodUID", in.poduid()));
  TRY(network.sandbox_id, name("SandboxID", in.sandboxid()));
  TRY(network.netns, text("NetNS", in.netns()));
  TRY(network.ip, name("VPCIP", in.vpcip()));
  TRY(network.vpc, name("VPCID", in.vpcid()));
  TRY(network.subnet, name("SubnetID", in.subnetid()));
  TRY(network.gateway, name("Gateway", in.gateway()));
  TRY(network.mask, name("Mask", in.mask()));
  TRY(network.mac, name("MacAddress", in.macaddress()));
  network.dedicated_uni = in.dedicateduni();
  TRY(network.interface_id, name("InterfaceID", in.interfaceid()));
  TRY(network.eip_id, name("EIPID", in.eipid()));
  TRY(network.create_time, seconds("CreateTime", in.createtime()));
  TRY(network.recycle_time, seconds("RecycleTime", in.recycletime()));
  network.recycled = in.recycled();
  return network;
}

template <class Items>
[[nodiscard]] Result<std::vector<PodNetwork>> networks_of(std::string_view member, const Items& in) {
  TRY_VOID(check_count(member, in));
  std::vector<PodNetwork> networks;
  networks.reserve(static_cast<std::size_t>(in.size()));
  for (const pb::PodNetwork& one : in) {
    TRY(PodNetwork network, network_of(one));
    networks.push_back(std::move(network));
  }
  return networks;
}

// ---------------------------------------------------------------- versions

void fill(pb::Speech& out, const Speech& speech) {
  out.set_newest(speech.newest);
  out.set_oldest(speech.oldest);
  out.set_program(speech.program);
}

/// For a message that may have one. A sender that says nothing has no member.
template <class Message>
void say(Message& out, const Speech& speech) {
  if (speech != Speech{}) fill(*out.mutable_speech(), speech);
}

template <class Message>
[[nodiscard]] Result<Speech> speech_of(const Message& in) {
  Speech speech;
  speech.newest = in.speech().newest();
  speech.oldest = in.speech().oldest();
  if (speech.oldest > speech.newest) {
    return fail(wrong("Speech", fmt::format("is from {} to {}", speech.oldest, speech.newest)));
  }
  TRY(speech.program, name("Speech.Program", in.speech().program()));
  return speech;
}

// ---------------------------------------------------------------- addresses

std::string mask_of(const core::WarmAddress& address) {
  if (address.address.is_v6()) return fmt::format("{}", address.prefix_length);
  const int length = static_cast<int>(std::min<std::uint32_t>(address.prefix_length, 32));
  return net::Prefix::containing(net::Address::v4(0xffff'ffff), length).address().to_string();
}

/// Reads a dotted mask, or a length as a cloud's description of a subnet has it.
[[nodiscard]] Result<std::uint32_t> prefix_length_of(const std::string& mask, net::Family family) {
  if (const auto length = net::parse_prefix_length(mask); length && *length <= net::bit_length(family)) {
    return static_cast<std::uint32_t>(*length);
  }
  const auto dotted = net::Address::parse(mask);
  if (dotted && dotted->is_v4() && family == net::Family::v4) {
    const auto bits = static_cast<std::uint32_t>(dotted->value().lo);
    if (std::countl_one(bits) == std::popcount(bits)) return static_cast<std::uint32_t>(std::popcount(bits));
  }
  return fail(wrong("Mask", fmt::format("\"{}\" is no mask of an {} subnet", mask, name_of(family))));
}

std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
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

// ---------------------------------------------------------------- answers of one shape

CniCode code_of(pb::CNIErrorCode code) { return static_cast<CniCode>(static_cast<std::int32_t>(code)); }
pb::CNIErrorCode code_of(CniCode code) { return static_cast<pb::CNIErrorCode>(static_cast<std::int32_t>(code)); }

}  // namespace

std::optional<net::Address> parsed_ip(const PodNetwork& network) {
  const auto address = net::Address::parse(network.ip);
  if (!address) return {};
  return *address;
}

PodNetwork pod_network_of(const core::WarmAddress& address) {
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
  network.mac = upper_case(address.mac.to_string());
  network.dedicated_uni = found(address.extra, kDedicatedUni) == "true";
  network.interface_id = found(address.extra, kInterfaceId);
  network.eip_id = found(address.extra, kEipId);
  network.create_time = unix_seconds(address.created);
  network.recycle_time = unix_seconds(address.recycled_at);
  network.recycled = address.recycled;
  return network;
}

Result<core::WarmAddress> warm_address_of(const PodNetwork& network) {
  core::WarmAddress address;
  const auto ip = parsed_ip(network);
  if (!ip) return fail(wrong("VPCIP", fmt::format("\"{}\" is no address", network.ip)));
  address.address = *ip;
  // UK8S' own plugin records an address of its own without one.
  if (!network.mask.empty()) {
    TRY(address.prefix_length, prefix_length_of(network.mask, ip->family()));
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

// ---------------------------------------------------------------- writing

std::string encode(const Nothing& /*value*/) { return {}; }

std::string encode(const Ping& value) {
  pb::PingRequest out;  // the answer is the same
  say(out, value.speech);
  return out.SerializeAsString();
}

std::string encode(const AddPodNetworkRequest& value) {
  pb::AddPodNetworkRequest out;
  out.set_podname(value.pod_name);
  out.set_podnamespace(value.pod_namespace);
  out.set_sandboxid(value.sandbox_id);
  out.set_netns(value.netns);
  out.set_ifname(value.interface_name);
  out.set_subnetid(value.subnet);
  out.set_macaddress(value.mac);
  out.set_interfaceid(value.interface_id);
  out.set_network(value.network);
  out.set_poduid(value.pod_uid);
  say(out, value.speech);
  return out.SerializeAsString();
}

std::string encode(const DelPodNetworkRequest& value) {
  pb::DelPodNetworkRequest out;
  if (value.pod_network) fill(*out.mutable_podnetwork(), *value.pod_network);
  out.set_network(value.network);
  out.set_ifname(value.interface_name);
  return out.SerializeAsString();
}

std::string encode(const RecordRequest& value) {
  pb::AddPodNetworkRecordRequest out;
  if (value.pod_network) fill(*out.mutable_podnetwork(), *value.pod_network);
  return out.SerializeAsString();
}

std::string encode(const RecordKey& value) {
  pb::GetPodNetworkRecordRequest out;  // DelPodNetworkRecord's is the same
  out.set_podname(value.pod_name);
  out.set_podns(value.pod_namespace);
  out.set_sandboxid(value.sandbox_id);
  return out.SerializeAsString();
}

std::string encode(const BorrowRequest& value) {
  pb::BorrowIPRequest out;
  out.set_macaddr(value.mac);
  out.set_subnetid(value.subnet);
  out.set_request(value.request);
  out.set_node(value.node);
  out.set_ip(value.ip);
  out.set_keptfor(value.kept_for);
  out.set_named(value.is_named);
  say(out, value.speech);
  return out.SerializeAsString();
}

std::string encode(const StockRequest& value) {
  pb::PopPoolRequest out;  // PushPool's is the same
  out.set_ip(value.ip);
  return out.SerializeAsString();
}

std::string encode(const ReleaseRequest& value) {
  pb::ReleaseIPRequest out;
  for (const std::string& ip : value.ips) out.add_ip(ip);
  return out.SerializeAsString();
}

std::string encode(const CodeAnswer& value) {
  pb::DelPodNetworkResponse out;  // the other three are the same
  out.set_code(code_of(value.code));
  return out.SerializeAsString();
}

std::string encode(const NetworkAnswer& value) {
  pb::AddPodNetworkResponse out;  // the other four are the same
  out.set_code(code_of(value.code));
  if (value.network) fill(*out.mutable_podnetwork(), *value.network);
  return out.SerializeAsString();
}

std::string encode(const NetworksAnswer& value) {
  pb::ListPodNetworkRecordResponse out;  // ListUnuse's is the same
  out.set_code(code_of(value.code));
  for (const PodNetwork& network : value.networks) fill(*out.add_networks(), network);
  return out.SerializeAsString();
}

std::string encode(const StockAnswer& value) {
  pb::DescribePoolResponse out;
  out.set_code(code_of(value.code));
  for (const PodNetwork& network : value.pool) fill(*out.add_pool(), network);
  for (const PodNetwork& network : value.cooldown) fill(*out.add_cooldown(), network);
  return out.SerializeAsString();
}

std::string encode(const SupportAnswer& value) {
  pb::SupportMultiSubnetResponse out;
  out.set_code(code_of(value.code));
  out.set_support(value.support);
  return out.SerializeAsString();
}

std::string encode(const ShowAnswer& value) {
  // An error of the cloud may have any bytes.
  const auto readable = [](const std::string& text) {
    std::string line = printable(text, Printed::line);
    if (line.size() > kTextBytesMax) line = "(too long)";
    return line;
  };
  pb::ShowStockResponse out;
  for (const ShownTable& table : value.tables) {
    pb::ShownTable& shown = *out.add_tables();
    shown.set_name(table.name);
    for (const ShownTable::Column& column : table.columns) {
      pb::ShownColumn& head = *shown.add_columns();
      head.set_name(column.name);
      head.set_isnumber(column.is_number);
    }
    for (const auto& row : table.rows) {
      pb::ShownRow& cells = *shown.add_rows();
      for (const std::string& cell : row) cells.add_cells(readable(cell));
    }
  }
  return out.SerializeAsString();
}

// ---------------------------------------------------------------- reading

Result<Ping> decode_ping(std::string_view bytes) {
  TRY(const auto in, parse<pb::PingRequest>(bytes, kRequestBytesMax));
  TRY(Speech speech, speech_of(in));
  return Ping{std::move(speech)};
}

Result<AddPodNetworkRequest> decode_add_pod_network_request(std::string_view bytes) {
  TRY(const auto in, parse<pb::AddPodNetworkRequest>(bytes, kRequestBytesMax));
  AddPodNetworkRequest value;
  TRY(value.pod_name, name("PodName", in.podname()));
  TRY(value.pod_namespace, name("PodNamespace", in.podnamespace()));
  TRY(value.sandbox_id, name("SandboxID", in.sandboxid()));
  TRY(value.netns, text("Netns", in.netns()));
  TRY(value.interface_name, name("IfName", in.ifname()));
  TRY(value.subnet, name("SubnetID", in.subnetid()));
  TRY(value.mac, name("MacAddress", in.macaddress()));
  TRY(value.interface_id, name("InterfaceID", in.interfaceid()));
  TRY(value.network, text("Network", in.network()));
  TRY(value.pod_uid, name("PodUID", in.poduid()));
  TRY(value.speech, speech_of(in));
  return value;
}

Result<DelPodNetworkRequest> decode_del_pod_network_request(std::string_view bytes) {
  TRY(const auto in, parse<pb::DelPodNetworkRequest>(bytes, kRequestBytesMax));
  DelPodNetworkRequest value;
  if (in.has_podnetwork()) {
    TRY(value.pod_network, network_of(in.podnetwork()));
  }
  TRY(value.network, text("Network", in.network()));
  TRY(value.interface_name, name("IfName", in.ifname()));
  return value;
}

Result<RecordRequest> decode_record_request(std::string_view bytes) {
  TRY(const auto in, parse<pb::AddPodNetworkRecordRequest>(bytes, kRequestBytesMax));
  RecordRequest value;
  if (in.has_podnetwork()) {
    TRY(value.pod_network, network_of(in.podnetwork()));
  }
  return value;
}

Result<RecordKey> decode_record_key(std::string_view bytes) {
  TRY(const auto in, parse<pb::GetPodNetworkRecordRequest>(bytes, kRequestBytesMax));
  RecordKey value;
  TRY(value.pod_name, name("PodName", in.podname()));
  TRY(value.pod_namespace, name("PodNS", in.podns()));
  TRY(value.sandbox_id, name("SandboxID", in.sandboxid()));
  return value;
}

Result<BorrowRequest> decode_borrow_request(std::string_view bytes) {
  TRY(const auto in, parse<pb::BorrowIPRequest>(bytes, kRequestBytesMax));
  BorrowRequest value;
  TRY(value.mac, name("MacAddr", in.macaddr()));
  TRY(value.subnet, name("SubnetID", in.subnetid()));
  TRY(value.request, name("Request", in.request()));
  TRY(value.node, name("Node", in.node()));
  TRY(value.ip, name("IP", in.ip()));
  TRY(value.kept_for, text("KeptFor", in.keptfor()));
  value.is_named = in.named();
  TRY(value.speech, speech_of(in));
  return value;
}

Result<StockRequest> decode_stock_request(std::string_view bytes) {
  TRY(const auto in, parse<pb::PopPoolRequest>(bytes, kRequestBytesMax));
  StockRequest value;
  TRY(value.ip, name("IP", in.ip()));
  return value;
}

Result<ReleaseRequest> decode_release_request(std::string_view bytes) {
  TRY(const auto in, parse<pb::ReleaseIPRequest>(bytes, kRequestBytesMax));
  TRY_VOID(check_count("IP", in.ip()));
  ReleaseRequest value;
  value.ips.reserve(static_cast<std::size_t>(in.ip().size()));
  for (const std::string& one : in.ip()) {
    TRY(std::string ip, name("IP", one));
    value.ips.push_back(std::move(ip));
  }
  return value;
}

Result<CodeAnswer> decode_code_answer(std::string_view bytes) {
  TRY(const auto in, parse<pb::DelPodNetworkResponse>(bytes, kAnswerBytesMax));
  return CodeAnswer{code_of(in.code())};
}

Result<NetworkAnswer> decode_network_answer(std::string_view bytes) {
  TRY(const auto in, parse<pb::AddPodNetworkResponse>(bytes, kAnswerBytesMax));
  NetworkAnswer value{code_of(in.code()), {}};
  if (in.has_podnetwork()) {
    TRY(value.network, network_of(in.podnetwork()));
  }
  return value;
}

Result<NetworksAnswer> decode_networks_answer(std::string_view bytes) {
  TRY(const auto in, parse<pb::ListPodNetworkRecordResponse>(bytes, kAnswerBytesMax));
  NetworksAnswer value{code_of(in.code()), {}};
  TRY(value.networks, networks_of("Networks", in.networks()));
  return value;
}

Result<StockAnswer> decode_stock_answer(std::string_view bytes) {
  TRY(const auto in, parse<pb::DescribePoolResponse>(bytes, kAnswerBytesMax));
  StockAnswer value{code_of(in.code()), {}, {}};
  TRY(value.pool, networks_of("Pool", in.pool()));
  TRY(value.cooldown, networks_of("Cooldown", in.cooldown()));
  return value;
}

Result<ShowAnswer> decode_show_answer(std::string_view bytes) {
  TRY(const auto in, parse<pb::ShowStockResponse>(bytes, kAnswerBytesMax));
  TRY_VOID(check_count("Tables", in.tables()));
  ShowAnswer value;
  for (const pb::ShownTable& table : in.tables()) {
    ShownTable shown;
    TRY(shown.name, name("Name", table.name()));
    TRY_VOID(check_count("Columns", table.columns()));
    for (const pb::ShownColumn& column : table.columns()) {
      TRY(std::string head, name("Name", column.name()));
      shown.columns.push_back({std::move(head), column.isnumber()});
    }
    TRY_VOID(check_count("Rows", table.rows()));
    for (const pb::ShownRow& row : table.rows()) {
      if (row.cells_size() != table.columns_size()) return fail(wrong("Rows", "has a row of another length"));
      auto& cells = shown.rows.emplace_back();
      for (int i = 0; i < row.cells_size(); ++i) {
        TRY(std::string cell, text("Cells", row.cells(i)));
        const bool is_digits = !cell.empty() && cell.find_first_not_of("0123456789") == std::string::npos;
        if (shown.columns[static_cast<std::size_t>(i)].is_number && !cell.empty() && (!is_digits || cell.size() > 18)) {
          return fail(wrong("Cells", "has no number where there is to be one"));
        }
        cells.push_back(std::move(cell));
      }
    }
    value.tables.push_back(std::move(shown));
  }
  return value;
}

}  // namespace croft::wire::vpc
