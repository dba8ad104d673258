#include "cni/format/config_parts.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/net/address_with_length.h"
#include "base/net/echo.h"
#include "base/text/go_text.h"
#include "register/affinity.h"
#include "register/names.h"

namespace croft::wire::cni {

namespace {

using net::AddressWithLength;

// ---- valid attachments

struct AttachmentLists {
  ValidAttachments by_name, by_old_name;
};

MaybeFault read_attachment(const JsonAt& at, Attachment& out) {
  static constexpr std::array<JsonMember<Attachment>, 2> kMembers = {
      {{"containerID",
        [](const JsonAt& a, Attachment& into) { return read_text(a, kPathBytesMax, into.container_id); }},
       {"ifname", [](const JsonAt& a, Attachment& into) { return read_text(a, kPathBytesMax, into.interface_name); }}}};
  if (auto fault = read_object<Attachment>(at, kMembers, out)) return fault;
  // A gap in the list of what lives must not free anything.
  if (out.container_id.empty()) return at.bad_value("has no containerID");
  if (out.interface_name.empty()) return at.bad_value("has no ifname");
  return {};
}

MaybeFault read_attachments(const JsonAt& at, ValidAttachments& out) {
  out.presence = at.value.is_null() ? ValidAttachments::Presence::null : ValidAttachments::Presence::given;
  return read_list<Attachment>(at, kAttachmentsMax, read_attachment, out.entries);
}

ValidAttachments united(ValidAttachments a, const ValidAttachments& b) {
  a.presence = std::max(a.presence, b.presence);
  a.entries.insert(a.entries.end(), b.entries.begin(), b.entries.end());
  std::sort(a.entries.begin(), a.entries.end());
  a.entries.erase(std::unique(a.entries.begin(), a.entries.end()), a.entries.end());
  return a;
}

// ---- prevResult

MaybeFault read_previous_ip(const JsonAt& at, AddressWithLength& out) {
  static constexpr std::array<JsonMember<AddressWithLength>, 1> kMembers = {
      {{"address", [](const JsonAt& a, AddressWithLength& into) -> MaybeFault {
          std::string text;
          if (auto fault = read_text(a, kPathBytesMax, text)) return fault;
          const auto parsed = AddressWithLength::parse(text);
          if (!parsed) return a.bad_value(parsed.error().message);
          into = *parsed;
          return {};
        }}}};
  if (auto fault = read_object<AddressWithLength>(at, kMembers, out)) return fault;
  if (!out.address.is_valid()) return at.bad_value("has no address");
  return {};
}

MaybeFault read_previous_result(const JsonAt& at, std::vector<AddressWithLength>& out) {
  static constexpr std::array<JsonMember<std::vector<AddressWithLength>>, 1> kMembers = {
      {{"ips", [](const JsonAt& a, std::vector<AddressWithLength>& into) {
          return read_list<AddressWithLength>(a, kPreviousAddressesMax, read_previous_ip, into);
        }}}};
  return read_object<std::vector<AddressWithLength>>(at, kMembers, out);
}

// ---- CNI_ARGS

std::optional<Error> take_pod_text(const Args& args, std::string_view key, std::string& out) {
  constexpr std::size_t kBytesMax = 253;  // of a Kubernetes object name
  const auto it = args.texts.find(key);
  if (it == args.texts.end()) return {};
  if (it->second.size() > kBytesMax || !is_plain_text(it->second)) {
    return Error{
        Code::invalid_environment,
        fmt::format("ARGS: {} is not UTF-8 text of at most {} bytes without control characters", key, kBytesMax),
        net::echo(it->second)};
  }
  out = it->second;
  return {};
}

}  // namespace

MaybeFault read_valid_attachments(const JsonAt& root, ValidAttachments& out) {
  static constexpr std::array<JsonMember<AttachmentLists>, 2> kMembers = {
      {{"cni.dev/valid-attachments",
        [](const JsonAt& a, AttachmentLists& lists) { return read_attachments(a, lists.by_name); }},
       {"cni.dev/attachments",
        [](const JsonAt& a, AttachmentLists& lists) { return read_attachments(a, lists.by_old_name); }}}};
  AttachmentLists lists;
  if (auto fault = read_object<AttachmentLists>(root, kMembers, lists)) return fault;
  out = united(std::move(lists.by_name), lists.by_old_name);
  return {};
}

MaybeFault read_previous_addresses(const JsonAt& root, std::vector<AddressWithLength>& out) {
  static constexpr std::array<JsonMember<std::vector<AddressWithLength>>, 1> kMembers = {
      {{"prevResult", read_previous_result}}};
  return read_object<std::vector<AddressWithLength>>(root, kMembers, out);
}

MaybeFault read_plain_text(const JsonAt& at, std::size_t bytes_max, std::string& out) {
  if (auto fault = read_text(at, bytes_max, out)) return fault;
  if (is_plain_text(out)) return {};
  return at.bad_value(net::echo(out) + " has control characters");
}

MaybeFault read_nodename(const JsonAt& at, std::string& out) {
  std::string name;
  if (auto fault = read_text(at, kPathBytesMax, name)) return fault;
  if (!name.empty()) {
    if (const auto checked = core::check_node_name(name); !checked) return at.bad_value(checked.error().message);
  }
  if (!at.value.is_null()) out = name;
  return {};
}

MaybeFault read_switch(const JsonAt& at, bool fallback, bool& out) {
  if (at.value.is_null()) return {};
  if (at.value.kind() == JsonKind::boolean) return read_boolean(at, out);
  if (at.value.kind() != JsonKind::string) return at.wrong_type("\"true\" or \"false\"");
  const std::string_view exception = fallback ? "false" : "true";
  out = (at.value.text() == exception) != fallback;
  return {};
}

Error config_error_of(const JsonFault& fault) {
  const bool type = fault.kind == JsonFault::Kind::wrong_type;
  return {type ? Code::internal : Code::invalid_network_config, "invalid network config: " + fault.to_string(), {}};
}

std::optional<Error> take_pod(const Args& args, core::PodIdentity& pod) {
  if (auto error = take_pod_text(args, kPodNameArg, pod.name)) return error;
  if (auto error = take_pod_text(args, kPodNamespaceArg, pod.namespace_name)) return error;
  return take_pod_text(args, kPodUidArg, pod.uid);
}

MaybeFault read_agent(const JsonAt& at, std::string& out) {
  std::string path;
  if (auto fault = read_plain_text(at, kSocketPathBytesMax, path)) return fault;
  if (!path.empty() && path != "none" && path.front() != '/') {
    return at.bad_value(net::echo(path) + " is neither an absolute path nor \"none\"");
  }
  out = std::move(path);
  return {};
}

MaybeFault read_requested_address(const JsonAt& at, net::Address& out) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const auto address = parse_requested_address(at.value.text());
  if (!address) return at.bad_value("invalid IP address " + net::echo(at.value.text()));
  out = *address;
  return {};
}

static MaybeFault read_destination(const JsonAt& at, net::AddressWithLength& out) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const auto destination = net::Prefix::parse(at.value.text());
  if (!destination) return at.bad_value(destination.error().message);
  out = {destination->address(), destination->length()};
  return {};
}

static MaybeFault read_route_gateway(const JsonAt& at, std::optional<net::Address>& out) {
  return at.value.is_null() ? MaybeFault() : read_requested_address(at, out.emplace());
}

MaybeFault read_route(const JsonAt& at, Route& out) {
  constexpr std::int64_t kMtuMax = 65535;
  static constexpr std::array<JsonMember<Route>, 4> kMembers = {
      {{"dst", [](const JsonAt& a, Route& r) { return read_destination(a, r.destination); }},
       {"gw", [](const JsonAt& a, Route& r) { return read_route_gateway(a, r.gateway); }},
       {"mtu", [](const JsonAt& a, Route& r) { return read_integer(a, 0, kMtuMax, r.mtu); }},
       {"priority", [](const JsonAt& a, Route& r) { return read_integer(a, 0, INT32_MAX, r.priority); }}}};
  std::vector<std::string> names;
  add_names<Route>(kMembers, names);
  if (auto fault = refuse_unknown_members(at, names)) return fault;
  if (auto fault = read_object<Route>(at, kMembers, out)) return fault;
  if (!out.destination.address.is_valid()) return at.bad_value("dst is missing");
  if (out.gateway && out.gateway->family() != out.destination.address.family()) {
    return at.bad_value("gw is of another family than dst");
  }
  return {};
}

namespace {

using core::GatewayChoice;
using core::PoolSpec;

MaybeFault read_name(const JsonAt& at, PoolSpec& out) { return read_text(at, kPathBytesMax, out.name); }

MaybeFault read_cidr(const JsonAt& at, PoolSpec& out) {
  std::string text;
  if (auto fault = read_text(at, kPathBytesMax, text)) return fault;
  if (at.value.is_null()) return {};
  const auto prefix = net::Prefix::parse(text);
  if (!prefix) return at.bad_value(prefix.error().message);
  out.cidr = *prefix;
  return {};
}

MaybeFault read_block_size(const JsonAt& at, PoolSpec& out) {
  if (at.value.is_null()) return {};
  std::int64_t length = 0;
  if (auto fault = read_integer(at, 0, net::bit_length(net::Family::v6), length)) return fault;
  out.block_length = static_cast<int>(length);
  return {};
}

MaybeFault read_gateway(const JsonAt& at, PoolSpec& out) {
  std::string text;
  if (auto fault = read_text(at, kPathBytesMax, text)) return fault;
  if (at.value.is_null()) return {};
  if (text == "none") {
    out.gateway = GatewayChoice{GatewayChoice::Kind::none, {}};
    return {};
  }
  const auto address = net::Address::parse(text);
  if (!address) return at.bad_value(address.error().message + "; give an address of the pool, or \"none\"");
  out.gateway = GatewayChoice{GatewayChoice::Kind::given, *address};
  return {};
}

MaybeFault read_cooldown(const JsonAt& at, PoolSpec& out) {
  if (at.value.is_null()) return {};
  std::int64_t seconds = 0;
  if (auto fault = read_integer(at, 0, core::kCooldownMax.count(), seconds)) return fault;
  out.cooldown = std::chrono::seconds(seconds);
  return {};
}

MaybeFault read_disabled(const JsonAt& at, PoolSpec& out) {
  if (at.value.is_null()) return {};
  bool disabled = false;
  if (auto fault = read_boolean(at, disabled)) return fault;
  out.disabled = disabled;
  return {};
}

constexpr std::array<JsonMember<PoolSpec>, 6> kMembers = {{{"name", read_name},
                                                           {"cidr", read_cidr},
                                                           {"blockSize", read_block_size},
                                                           {"gateway", read_gateway},
                                                           {"cooldownSeconds", read_cooldown},
                                                           {"disabled", read_disabled}}};

MaybeFault read_pool_spec(const JsonAt& at, PoolSpec& out) {
  if (at.value.is_null()) return at.wrong_type("an object");
  if (auto fault = read_object<PoolSpec>(at, kMembers, out, {.unknown = ObjectRules::Unknown::refused})) return fault;
  if (out.name.empty()) return at.bad_value("name is missing");
  if (!out.cidr.is_valid()) return at.bad_value("cidr is missing");
  if (const auto pool = core::make_pool(out); !pool) return at.bad_value(pool.error().message);
  return {};
}

MaybeFault check_apart(const JsonAt& at, const std::vector<PoolSpec>& pools) {
  for (std::size_t i = 0; i < pools.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (pools[i].name == pools[j].name) return at.bad_value(fmt::format("two pools have the name {}", pools[i].name));
      if (pools[i].cidr.overlaps(pools[j].cidr)) {
        return at.bad_value(fmt::format("cidr {} of pool {} overlaps cidr {} of pool {}", pools[i].cidr.to_string(),
                                        pools[i].name, pools[j].cidr.to_string(), pools[j].name));
      }
    }
  }
  return {};
}

MaybeFault read_cidr_choice(const JsonAt& at, net::Family family, core::AskedPool& out) {
  const auto cidr = net::AddressWithLength::parse(at.value.text());
  if (!cidr) return at.bad_value(cidr.error().message);
  if (cidr->address.family() != family) {
    return at.bad_value(fmt::format("{} is not {}", net::echo(at.value.text()), net::name_of(family)));
  }
  out = cidr->network();
  return {};
}

template <net::Family kFamily>
MaybeFault read_choice(const JsonAt& at, core::AskedPool& out) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const std::string text(at.value.text());
  if (text.find('/') != text.npos) return read_cidr_choice(at, kFamily, out);
  if (const auto checked = core::check_pool_name(text); !checked) return at.bad_value(checked.error().message);
  out = text;
  return {};
}

}  // namespace

MaybeFault read_pool_specs(const JsonAt& at, std::size_t count_max, std::vector<PoolSpec>& out) {
  if (auto fault = read_list<PoolSpec>(at, count_max, read_pool_spec, out)) return fault;
  return check_apart(at, out);
}

MaybeFault read_asked_pools(const JsonAt& at, net::Family family, std::size_t count_max,
                            std::vector<core::AskedPool>& out) {
  return family == net::Family::v4 ? read_list<core::AskedPool>(at, count_max, read_choice<net::Family::v4>, out)
                                   : read_list<core::AskedPool>(at, count_max, read_choice<net::Family::v6>, out);
}

}  // namespace croft::wire::cni
