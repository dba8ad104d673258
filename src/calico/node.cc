#include <algorithm>
#include <utility>

#include "calico/metadata.h"
#include "calico/resources.h"

namespace croft::wire::calico {
namespace {

using core::OrchestratorRef;
using core::TunnelKind;

constexpr std::size_t kOrchestratorsMax = 256;

// Members that are passed on, where Calico writes them.
constexpr std::string_view kBgpBefore[] = {"asNumber", "ipv4Address", "ipv6Address"};
constexpr std::string_view kVxlanMac[] = {"vxlanTunnelMACAddr"};
constexpr std::string_view kVxlanMacV6[] = {"vxlanTunnelMACAddrV6"};
constexpr std::string_view kBehindWireguard[] = {"addresses"};

constexpr std::string_view kIpip = "ipv4IPIPTunnelAddr";
constexpr std::string_view kVxlan = "ipv4VXLANTunnelAddr";
constexpr std::string_view kVxlanV6 = "ipv6VXLANTunnelAddr";
constexpr std::string_view kWireguard = "interfaceIPv4Address";
constexpr std::string_view kWireguardV6 = "interfaceIPv6Address";

constexpr std::string_view kPassedOnInSpec[] = {kVxlan, "vxlanTunnelMACAddr", kVxlanV6, "vxlanTunnelMACAddrV6",
                                                "addresses"};
constexpr std::string_view kPassedOnInBgp[] = {"asNumber", "ipv4Address", "ipv6Address", kIpip};
constexpr std::string_view kPassedOnInWireguard[] = {kWireguard, kWireguardV6};

// ---------------------------------------------------------------- reading

struct NodeDraft {
  Frame frame;
  NodeRecord record;
};

/// An address of the tunnel's family, or else a member that is passed on.
MaybeFault read_tunnel(const JsonAt& at, TunnelKind kind, core::Node& node, RawMembers& rest) {
  std::string text;
  if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
  if (text.empty()) return {};
  const auto address = net::Address::parse(text);
  if (address && address->family() == core::family_of(kind)) {
    node.tunnels.push_back({kind, *address});
  } else {
    rest.push_back(raw_member(at.value));
  }
  return {};
}

constexpr JsonMember<NodeDraft> kBgpMembers[] = {
    {kIpip, [](const JsonAt& at,
               NodeDraft& out) { return read_tunnel(at, TunnelKind::ipip, out.record.node, *out.record.rest.bgp); }},
};

constexpr JsonMember<NodeDraft> kWireguardMembers[] = {
    {kWireguard,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::wireguard_v4, out.record.node, *out.record.rest.wireguard);
     }},
    {kWireguardV6,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::wireguard_v6, out.record.node, *out.record.rest.wireguard);
     }},
};

struct RefDraft {
  OrchestratorRef ref;
  RawMembers rest;
};

constexpr JsonMember<RefDraft> kRefMembers[] = {
    {"nodeName", [](const JsonAt& at, RefDraft& out) { return read_text(at, kTextBytesMax, out.ref.node_name); }},
    {"orchestrator",
     [](const JsonAt& at, RefDraft& out) { return read_text(at, kTextBytesMax, out.ref.orchestrator); }},
};

MaybeFault read_orchestrators(const JsonAt& at, NodeDraft& out) {
  std::vector<RefDraft> refs;
  auto fault = read_list<RefDraft>(
      at, kOrchestratorsMax,
      [](const JsonAt& element, RefDraft& ref) { return read_kept<RefDraft>(element, kRefMembers, ref, ref.rest); },
      refs);
  for (RefDraft& draft : refs) {
    if (!draft.rest.empty()) out.record.rest.orchestrators.emplace_back(draft.ref, std::move(draft.rest));
    out.record.node.orchestrators.push_back(std::move(draft.ref));
  }
  return fault;
}

constexpr JsonMember<NodeDraft> kSpecMembers[] = {
    {"bgp",
     [](const JsonAt& at, NodeDraft& out) {
       if (at.value.is_null()) return MaybeFault();
       return read_kept<NodeDraft>(at, kBgpMembers, out, out.record.rest.bgp.emplace());
     }},
    {kVxlan,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::vxlan_v4, out.record.node, out.record.rest.spec);
     }},
    {kVxlanV6,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::vxlan_v6, out.record.node, out.record.rest.spec);
     }},
    {"orchRefs", read_orchestrators},
    {"wireguard",
     [](const JsonAt& at, NodeDraft& out) {
       if (at.value.is_null()) return MaybeFault();
       return read_kept<NodeDraft>(at, kWireguardMembers, out, out.record.rest.wireguard.emplace());
     }},
};

constexpr JsonMember<NodeDraft> kNodeMembers[] = {
    {"kind", [](const JsonAt& at, NodeDraft& out) { return read_kind(at, out.frame); }},
    {"apiVersion", [](const JsonAt& at, NodeDraft&) { return read_api_version(at); }},
    {"metadata", [](const JsonAt& at, NodeDraft& out) { return read_metadata(at, out.frame); }},
    {"spec", [](const JsonAt& at,
                NodeDraft& out) { return read_kept<NodeDraft>(at, kSpecMembers, out, out.record.rest.spec); }},
};

// ---------------------------------------------------------------- writing

/// The tunnel's address, or what was found in its place.
void write_tunnel(JsonWriter& out, const core::Node& node, TunnelKind kind, std::string_view name,
                  const RawMembers& rest) {
  const auto tunnel = std::ranges::find(node.tunnels, kind, [](const auto& t) { return t.kind; });
  if (tunnel == node.tunnels.end()) return write_some(out, rest, {&name, 1});
  out.key(name);
  out.text(tunnel->address.to_string());
}

bool has(const core::Node& node, TunnelKind kind) {
  return std::ranges::any_of(node.tunnels, [&](const auto& tunnel) { return tunnel.kind == kind; });
}

void write_bgp(JsonWriter& out, const NodeRecord& record) {
  if (!record.rest.bgp && !has(record.node, TunnelKind::ipip)) return;
  const RawMembers rest = record.rest.bgp.value_or(RawMembers());
  out.key("bgp");
  out.begin_object();
  write_some(out, rest, kBgpBefore);
  write_tunnel(out, record.node, TunnelKind::ipip, kIpip, rest);
  write_others(out, rest, kPassedOnInBgp);
  out.end_object();
}

void write_wireguard(JsonWriter& out, const NodeRecord& record) {
  if (!record.rest.wireguard && !has(record.node, TunnelKind::wireguard_v4) &&
      !has(record.node, TunnelKind::wireguard_v6)) {
    return;
  }
  const RawMembers rest = record.rest.wireguard.value_or(RawMembers());
  out.key("wireguard");
  out.begin_object();
  write_tunnel(out, record.node, TunnelKind::wireguard_v4, kWireguard, rest);
  write_tunnel(out, record.node, TunnelKind::wireguard_v6, kWireguardV6, rest);
  write_others(out, rest, kPassedOnInWireguard);
  out.end_object();
}

void write_orchestrators(JsonWriter& out, const NodeRecord& record) {
  if (record.node.orchestrators.empty()) return;
  out.key("orchRefs");
  out.begin_array();
  for (const OrchestratorRef& ref : record.node.orchestrators) {
    out.begin_object();
    write_text_if_set(out, "nodeName", ref.node_name);
    out.key("orchestrator");
    out.text(ref.orchestrator);
    const auto rest = std::ranges::find(record.rest.orchestrators, ref, [](const auto& entry) { return entry.first; });
    if (rest != record.rest.orchestrators.end()) write_rest(out, rest->second);
    out.end_object();
  }
  out.end_array();
}

void write_spec(JsonWriter& out, const NodeRecord& record) {
  const RawMembers& rest = record.rest.spec;
  out.begin_object();
  write_bgp(out, record);
  write_tunnel(out, record.node, TunnelKind::vxlan_v4, kVxlan, rest);
  write_some(out, rest, kVxlanMac);
  write_tunnel(out, record.node, TunnelKind::vxlan_v6, kVxlanV6, rest);
  write_some(out, rest, kVxlanMacV6);
  write_orchestrators(out, record);
  write_wireguard(out, record);
  write_some(out, rest, kBehindWireguard);
  write_others(out, rest, kPassedOnInSpec);
  out.end_object();
}

bool has_status(const RawMembers& members) {
  return std::ranges::any_of(members, [](const RawMember& member) { return member.name == "status"; });
}

}  // namespace

Result<NodeRecord> decode_node(const std::string& name, std::string_view bytes) {
  const Key key = ResourceKey{ResourceKey::Kind::node, name};
  NodeDraft draft{{.kind = "Node", .name = name, .metadata = {}}, {}};
  NodeRecord& record = draft.record;
  TRY_VOID(decode_into<NodeDraft>(key, bytes, kNodeMembers, draft, record.rest.members));
  if (!draft.frame.has_name) return fail(damaged(key, "metadata.name: it is missing"));
  record.node.name = name;
  record.node.labels = std::move(draft.frame.metadata.labels);
  draft.frame.metadata.labels.clear();
  record.metadata = std::move(draft.frame.metadata);
  return std::move(record);
}

std::string encode(const NodeRecord& record) {
  JsonWriter out(JsonWriter::Layout::compact);
  begin_resource(out, "Node", record.node.name, record.metadata, record.node.labels);
  out.key("spec");
  write_spec(out, record);
  if (!has_status(record.rest.members)) {
    out.key("status");
    out.begin_object();
    out.end_object();
  }
  write_some(out, record.rest.members, kBehindSpec);
  write_others(out, record.rest.members, kBehindSpec);
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::calico
