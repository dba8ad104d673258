#include "cni/format/config.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/json/reader.h"
#include "base/letters.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "register/node.h"

namespace croft::wire::cni {
namespace {

using net::AddressWithLength;

constexpr std::size_t kConfiguredRoutesMax = 256;
constexpr std::size_t kAttachmentsMax = 100'000;
constexpr std::size_t kSocketPathBytesMax = 107;
constexpr std::string_view kPodAnnotationsCapability = "io.kubernetes.cri.pod-annotations";

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
        echo(it->second)};
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
  return at.bad_value(echo(out) + " has control characters");
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

/// Takes the absolute path of a socket, no longer than the kernel takes, or "none"; null leaves `out`.
static MaybeFault read_agent(const JsonAt& at, std::string& out) {
  std::string path;
  if (auto fault = read_plain_text(at, kSocketPathBytesMax, path)) return fault;
  if (!path.empty() && path != "none" && path.front() != '/') {
    return at.bad_value(echo(path) + " is neither an absolute path nor \"none\"");
  }
  out = std::move(path);
  return {};
}

MaybeFault read_requested_address(const JsonAt& at, net::Address& out) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const auto address = parse_requested_address(at.value.text());
  if (!address) return at.bad_value("invalid IP address " + echo(at.value.text()));
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
  return at.value.is_null() ? MaybeFault() : read_boolean(at, out.disabled.emplace());
}

constexpr std::array<JsonMember<PoolSpec>, 6> kPoolMembers = {{{"name", read_name},
                                                               {"cidr", read_cidr},
                                                               {"blockSize", read_block_size},
                                                               {"gateway", read_gateway},
                                                               {"cooldownSeconds", read_cooldown},
                                                               {"disabled", read_disabled}}};

MaybeFault read_pool_spec(const JsonAt& at, PoolSpec& out) {
  if (at.value.is_null()) return at.wrong_type("an object");
  if (auto fault = read_object<PoolSpec>(at, kPoolMembers, out, {.unknown = ObjectRules::Unknown::refused}))
    return fault;
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

MaybeFault read_choice(const JsonAt& at, net::Family family, core::AskedPool& out) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const std::string text(at.value.text());
  if (text.find('/') == text.npos) {
    if (const auto checked = core::check_pool_name(text); !checked) return at.bad_value(checked.error().message);
    out = text;
    return {};
  }
  const auto cidr = net::AddressWithLength::parse(text);
  if (!cidr) return at.bad_value(cidr.error().message);
  if (cidr->address.family() != family) {
    return at.bad_value(fmt::format("{} is not {}", echo(text), net::name_of(family)));
  }
  out = cidr->network();
  return {};
}

}  // namespace

/// Reads pools of which each passes core::make_pool and no two share a name or an address.
static MaybeFault read_pool_specs(const JsonAt& at, std::vector<PoolSpec>& out) {
  if (auto fault = read_list<PoolSpec>(at, kConfiguredPoolsMax, read_pool_spec, out)) return fault;
  return check_apart(at, out);
}

MaybeFault read_asked_pools(const JsonAt& at, net::Family family, std::vector<core::AskedPool>& out) {
  out.clear();
  return each_element(at, kAskedPoolsMax,
                      [&](const JsonAt& element) { return read_choice(element, family, out.emplace_back()); });
}

namespace {

/// The parts before they are put together.
struct Draft {
  NetworkConfig config;
  ConfigNeeds needs;
  bool has_ipam = false;
  std::string type;
  std::string top_level_nodename;
  std::string ipam_nodename;
  std::string store;
  std::string log_file;
  std::string agent;
  std::vector<net::Address> from_args, from_args_member, from_runtime, from_ipam;  ///< requested, by channel
  PodWishes wishes;
  bool asks_api = false;  ///< for further ones
};

// ---- requested addresses

MaybeFault read_requested_addresses(const JsonAt& at, std::vector<net::Address>& out) {
  return read_list<net::Address>(at, kRequestedAddressesMax, read_requested_address, out);
}

MaybeFault read_args_cni(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 1> kMembers = {
      {{"ips", [](const JsonAt& a, Draft& d) { return read_requested_addresses(a, d.from_args_member); }}}};
  return read_object<Draft>(at, kMembers, out);
}

MaybeFault read_args_member(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 1> kMembers = {{{"cni", read_args_cni}}};
  return read_object<Draft>(at, kMembers, out);
}

MaybeFault read_runtime_config(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 2> kMembers = {
      {{"ips", [](const JsonAt& a, Draft& d) { return read_requested_addresses(a, d.from_runtime); }},
       {kPodAnnotationsCapability, [](const JsonAt& a, Draft& d) { return read_pod_annotations(a, d.wishes); }}}};
  return read_object<Draft>(at, kMembers, out);
}

// ---- ipam

constexpr std::array<JsonMember<Draft>, 1> kStoreMembers = {
    {{"store", [](const JsonAt& a, Draft& d) { return read_plain_text(a, kPathBytesMax, d.store); }}}};

constexpr std::array<JsonMember<Draft>, 5> kCommonMembers = {
    {{"type", [](const JsonAt& a, Draft& d) { return read_plain_text(a, kPathBytesMax, d.type); }},
     {"nodename", [](const JsonAt& a, Draft& d) { return read_nodename(a, d.ipam_nodename); }},
     {"log_file_path", [](const JsonAt& a, Draft& d) { return read_plain_text(a, kPathBytesMax, d.log_file); }},
     {"agent", [](const JsonAt& a, Draft& d) { return read_agent(a, d.agent); }},
     {"statusWhenFull", [](const JsonAt& a, Draft& d) { return read_boolean(a, d.config.ipam.status_when_full); }}}};

/// Where annotations come from besides the runtime.
MaybeFault read_source_of_annotations(const JsonAt& at, Draft& out) {
  std::string source;
  if (auto fault = read_plain_text(at, kPathBytesMax, source)) return fault;
  if (!source.empty() && source != "runtime" && source != "api") {
    return at.bad_value(echo(source) + R"( is neither "runtime" nor "api")");
  }
  out.asks_api = source == "api";
  return {};
}

constexpr std::array<JsonMember<Draft>, 8> kAssignmentMembers = {
    {{"pools", [](const JsonAt& a, Draft& d) { return read_pool_specs(a, d.config.ipam.pools); }},
     {"annotations", read_source_of_annotations},
     {"assign_ipv4", [](const JsonAt& a, Draft& d) { return read_switch(a, true, d.config.ipam.assign_v4); }},
     {"assign_ipv6", [](const JsonAt& a, Draft& d) { return read_switch(a, false, d.config.ipam.assign_v6); }},
     {"ipv4_pools",
      [](const JsonAt& a, Draft& d) { return read_asked_pools(a, net::Family::v4, d.config.ipam.asked_pools.v4); }},
     {"ipv6_pools",
      [](const JsonAt& a, Draft& d) { return read_asked_pools(a, net::Family::v6, d.config.ipam.asked_pools.v6); }},
     {"routes", [](const JsonAt& a,
                   Draft& d) { return read_list<Route>(a, kConfiguredRoutesMax, read_route, d.config.ipam.routes); }},
     {"ips", [](const JsonAt& a, Draft& d) { return read_requested_addresses(a, d.from_ipam); }}}};

std::vector<std::string> known_ipam_members() {
  std::vector<std::string> names;
  add_names<Draft>(kStoreMembers, names);
  add_names<Draft>(kCommonMembers, names);
  add_names<Draft>(kAssignmentMembers, names);
  return names;
}

MaybeFault read_ipam(const JsonAt& at, Draft& out) {
  if (at.value.is_null()) return {};
  out.has_ipam = true;
  if (auto fault = read_object<Draft>(at, kStoreMembers, out)) return fault;
  const ObjectRules rules{.on_fault = out.needs.lenient ? OnFault::skip : OnFault::stop};
  if (auto fault = read_object<Draft>(at, kCommonMembers, out, rules)) return fault;
  if (!out.needs.assignment) return {};
  if (auto fault = refuse_unknown_members(at, known_ipam_members())) return fault;
  return read_object<Draft>(at, kAssignmentMembers, out);
}

// ---- top level

MaybeFault read_top_level_nodename(const JsonAt& at, Draft& out) {
  auto fault = read_nodename(at, out.top_level_nodename);
  return out.needs.lenient ? MaybeFault() : fault;
}

constexpr std::array<JsonMember<Draft>, 2> kTopLevelMembers = {
    {{"ipam", read_ipam}, {"nodename", read_top_level_nodename}}};
constexpr std::array<JsonMember<Draft>, 2> kRequestMembers = {
    {{"args", read_args_member}, {"runtimeConfig", read_runtime_config}}};

MaybeFault read_top_level(const JsonAt& root, Draft& draft) {
  if (auto fault = read_object<Draft>(root, kTopLevelMembers, draft)) return fault;
  if (draft.needs.assignment) {
    if (auto fault = read_object<Draft>(root, kRequestMembers, draft)) return fault;
  }
  if (draft.needs.previous_result) {
    if (auto fault = read_previous_addresses(root, draft.config.previous_addresses)) return fault;
  }
  return draft.needs.attachments ? read_valid_attachments(root, draft.config.valid_attachments) : MaybeFault();
}

Error missing(std::string_view field) {
  return {Code::invalid_network_config, fmt::format("invalid network config: {} is missing", field), {}};
}

// ---- CNI_ARGS

/// Reads them. Where they are not needed whatever the runtime says of the pod stands in nobody's way: it is for the
/// log.
std::optional<Error> take_args(const std::string& text, bool are_needed, core::PodIdentity& pod,
                               std::vector<net::Address>& ips) {
  const auto args = parse_args(text, kCroftArgKeys);
  core::PodIdentity said;
  auto error = args ? take_pod(*args, said) : Error{Code::invalid_environment, args.error().message, "CNI_ARGS"};
  if (error) return are_needed ? error : std::nullopt;
  pod = std::move(said);
  ips = args->ips;
  return {};
}

std::optional<Error> gather_requested(Draft& draft) {
  std::vector<net::Address>& all = draft.config.requested_addresses;
  for (const auto* channel : std::initializer_list<const std::vector<net::Address>*>{
           &draft.from_args, &draft.from_args_member, &draft.from_runtime, &draft.wishes.addresses, &draft.from_ipam}) {
    for (const net::Address& address : *channel) {
      if (std::find(all.begin(), all.end(), address) == all.end()) all.push_back(address);
    }
  }
  if (all.size() <= kRequestedAddressesMax) return {};
  return Error{Code::invalid_network_config,
               fmt::format("{} addresses are requested, at most {} are allowed", all.size(), kRequestedAddressesMax),
               {}};
}

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace

ConfigNeeds needs_of(Command command) {
  ConfigNeeds needs;
  needs.assignment = command == Command::add || command == Command::status;
  needs.previous_result = command == Command::check;
  needs.attachments = command == Command::gc;
  needs.lenient = command == Command::del;
  return needs;
}

Checked<NetworkConfig> decode_croft_ipam_config(const Network& network, const std::string& args,
                                                const ConfigNeeds& needs) {
  Draft draft;
  draft.needs = needs;
  if (const auto fault = read_top_level(JsonAt{network.document.root(), nullptr, {}, {}}, draft))
    return config_error_of(*fault);
  if (!needs.lenient && !draft.has_ipam) return missing("ipam");
  if (!needs.lenient && draft.type.empty()) return missing("ipam.type");
  auto error = take_args(args, needs.assignment, draft.config.pod, draft.from_args);
  if (!error && needs.assignment) error = gather_requested(draft);
  if (error) return *std::move(error);
  NetworkConfig& config = draft.config;
  if (draft.asks_api) {
    const PodWishes& handed = draft.wishes;
    config.ipam.annotations =
        core::WishesWanted{{!handed.pools.v4, !handed.pools.v6}, handed.addresses.empty(), !handed.families};
  }
  for (const net::Family family : net::kFamilies) {
    if (draft.wishes.pools[family]) config.ipam.asked_pools[family] = *std::move(draft.wishes.pools[family]);
  }
  if (draft.wishes.families) {
    config.ipam.assign_v4 = draft.wishes.families->v4;
    config.ipam.assign_v6 = draft.wishes.families->v6;
  }
  config.name = network.name;
  config.nodename = unless_empty(draft.ipam_nodename.empty() ? draft.top_level_nodename : draft.ipam_nodename);
  config.ipam.store = unless_empty(draft.store);
  config.ipam.log_file = unless_empty(draft.log_file);
  config.ipam.agent = unless_empty(draft.agent);
  return std::move(config);
}

namespace {

constexpr std::string_view kCrofts = "ipam.croft.dev/";
constexpr std::string_view kCalicos = "cni.projectcalico.org/";

/// The value of an annotation, itself a JSON text.
template <class Read>
MaybeFault read_list_in(const JsonAt& at, Read read) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const auto document = parse_json(at.value.text());
  if (!document) return at.bad_value("it is no JSON list: " + document.error().message);
  // Elements are named as those of the annotation.
  return read(JsonAt{document->root(), at.parent, at.name, {}});
}

MaybeFault read_families(const JsonAt& at, std::optional<net::PerFamily<bool>>& out) {
  net::PerFamily<bool> read{false, false};
  auto fault = each_element(at, 2, [&](const JsonAt& element) -> MaybeFault {
    if (element.value.kind() != JsonKind::string) return element.wrong_type("a string");
    const std::string_view text = element.value.text();
    if (text != "IPv4" && text != "IPv6") return element.bad_value(echo(text) + " is neither IPv4 nor IPv6");
    read[text == "IPv4" ? net::Family::v4 : net::Family::v6] = true;
    return {};
  });
  if (fault) return fault;
  if (!read.v4 && !read.v6) return at.bad_value("it names no family");
  out = read;
  return {};
}

/// The wish of an annotation, without the prefix of its name.
MaybeFault read_wish(const JsonAt& at, std::string_view name, PodWishes& out) {
  if (name == "ipAddrs") {
    return read_list_in(at, [&](const JsonAt& list) { return read_requested_addresses(list, out.addresses); });
  }
  if (name == "ipFamilies") {
    return read_list_in(at, [&](const JsonAt& list) { return read_families(list, out.families); });
  }
  const net::Family family = name == "ipv4pools" ? net::Family::v4 : net::Family::v6;
  return read_list_in(at,
                      [&](const JsonAt& list) { return read_asked_pools(list, family, out.pools[family].emplace()); });
}

constexpr std::array<std::string_view, 4> kWishes = {"ipv4pools", "ipv6pools", "ipAddrs", "ipFamilies"};

MaybeFault read_annotations(const JsonAt& at, bool of_pod, PodWishes& out) {
  std::set<std::string_view> of_croft;
  const auto take_all = [&](std::string_view prefix) {
    return each_member(at, [&](const JsonAt& annotation) -> MaybeFault {
      if (!annotation.name.starts_with(prefix)) return {};
      const std::string_view name = annotation.name.substr(prefix.size());
      if (of_pod && prefix == kCalicos && name == "ipAddrsNoIpam") {
        return annotation.bad_value("an address past IPAM is not given by an IPAM plugin; remove the annotation");
      }
      if (std::ranges::find(kWishes, name) == kWishes.end() || (!of_pod && name == "ipAddrs")) return {};
      if (prefix == kCrofts) of_croft.insert(name);
      if (prefix == kCalicos && of_croft.contains(name)) return {};
      return read_wish(annotation, name, out);
    });
  };
  if (auto fault = take_all(kCrofts)) return fault;
  return take_all(kCalicos);
}

}  // namespace

MaybeFault read_pod_annotations(const JsonAt& at, PodWishes& out) { return read_annotations(at, true, out); }
MaybeFault read_namespace_annotations(const JsonAt& at, PodWishes& out) { return read_annotations(at, false, out); }

namespace {

struct VpcDraft {
  VpcConfig config;
  bool is_lenient = false;
  bool has_ipam = false;
  std::string type, log_file, nodename;
};

MaybeFault read_gateways(const JsonAt& at, VpcDraft& out) {
  std::vector<net::Address> gateways;
  if (at.value.kind() == JsonKind::string) {
    net::Address one;
    if (auto fault = read_requested_address(at, one)) return fault;
    gateways.push_back(one);
  } else if (auto fault = read_list<net::Address>(at, 2, read_requested_address, gateways)) {
    return fault;
  }
  for (const net::Address& gateway : gateways) {
    auto& place = out.config.gateways[gateway.family()];
    if (place) return at.bad_value("has two addresses of one family");
    place = gateway;
  }
  return {};
}

constexpr std::array<JsonMember<VpcDraft>, 14> kVpcMembers = {
    {{"type", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.type); }},
     {"agent", [](const JsonAt& a, VpcDraft& d) { return read_agent(a, d.config.agent); }},
     {"store", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.store); }},
     {"log_file_path", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.log_file); }},
     {"subnet", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.subnet); }},
     {"gateway", read_gateways},
     {"routes", [](const JsonAt& a,
                   VpcDraft& d) { return read_list<Route>(a, kConfiguredRoutesMax, read_route, d.config.routes); }},
     {"cooldownSeconds",
      [](const JsonAt& a, VpcDraft& d) {
        return read_integer(a, 0, core::kCooldownMax.count(), d.config.cooldown_seconds);
      }},
     {"api", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.api); }},
     {"metadata", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.metadata); }},
     {"interface", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.interface); }},
     {"probe", [](const JsonAt& a, VpcDraft& d) { return read_boolean(a, d.config.probe); }},
     {"probeUnitMilliseconds",
      [](const JsonAt& a, VpcDraft& d) { return read_integer(a, 10, 10'000, d.config.probe_unit_milliseconds); }},
     {"nodename", [](const JsonAt& a, VpcDraft& d) { return read_nodename(a, d.nodename); }}}};

MaybeFault read_vpc_ipam(const JsonAt& at, VpcDraft& out) {
  if (at.value.is_null()) return {};
  out.has_ipam = true;
  const ObjectRules rules{.on_fault = out.is_lenient ? OnFault::skip : OnFault::stop};
  if (!out.is_lenient) {
    std::vector<std::string> names;
    add_names<VpcDraft>(kVpcMembers, names);
    if (auto fault = refuse_unknown_members(at, names)) return fault;
  }
  return read_object<VpcDraft>(at, kVpcMembers, out, rules);
}

constexpr std::array<JsonMember<VpcDraft>, 1> kVpcTopLevel = {{{"ipam", read_vpc_ipam}}};

}  // namespace

Checked<VpcConfig> decode_vpc_config(const Network& network, const std::string& args, Command command) {
  VpcDraft draft;
  draft.is_lenient = command == Command::del;
  const JsonAt root{network.document.root(), nullptr, {}, {}};
  if (const auto fault = read_object<VpcDraft>(root, kVpcTopLevel, draft)) return config_error_of(*fault);
  if (!draft.is_lenient && (!draft.has_ipam || draft.type.empty())) {
    return missing(draft.has_ipam ? "ipam.type" : "ipam");
  }
  if (command == Command::check) {
    if (const auto fault = read_previous_addresses(root, draft.config.previous_addresses))
      return config_error_of(*fault);
  }
  if (command == Command::gc) {
    if (const auto fault = read_valid_attachments(root, draft.config.valid_attachments)) return config_error_of(*fault);
  }
  std::vector<net::Address> ips;  // which the cloud chooses
  if (auto error = take_args(args, command == Command::add, draft.config.pod, ips)) return *std::move(error);
  draft.config.name = network.name;
  if (!draft.log_file.empty()) draft.config.log_file = std::move(draft.log_file);
  if (draft.config.agent.empty()) draft.config.agent = kDefaultVpcSocket;
  if (draft.config.store.empty()) draft.config.store = kDefaultVpcStore;
  return std::move(draft.config);
}

}  // namespace croft::wire::cni
