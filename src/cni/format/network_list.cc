#include "cni/format/network_list.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/json/document.h"
#include "base/json/writer.h"
#include "base/net/echo.h"
#include "base/net/lenient.h"
#include "base/text/go_text.h"
#include "cni/format/config.h"
#include "cni/format/network.h"

namespace croft::wire::cni {
namespace {

/// What containerd 2 hands to plugins whose configuration asks for it: then annotations of pods need no access to the
/// API.
constexpr std::string_view kPodAnnotations = "io.kubernetes.cri.pod-annotations";

void member(JsonWriter& out, std::string_view name, std::string_view value) {
  out.key(name);
  out.text(value);
}

void write_names(JsonWriter& out, std::string_view name, const std::vector<std::string>& names) {
  if (names.empty()) return;
  out.key(name);
  out.begin_array();
  for (const std::string& one : names) out.text(one);
  out.end_array();
}

/// The plugin ptp makes the routes that it is told, and no default route of its own.
void write_default_routes(JsonWriter& out, const NetworkList& list) {
  out.key("routes");
  out.begin_array();
  const auto route = [&out](std::string_view destination) {
    out.begin_object();
    member(out, "dst", destination);
    out.end_object();
  };
  if (list.assign_v4) route("0.0.0.0/0");
  if (list.assign_v6) route("::/0");
  out.end_array();
}

void write_ipam(JsonWriter& out, const NetworkList& list) {
  out.key("ipam");
  out.begin_object();
  member(out, "type", ipam_name_of(list.main));
  member(out, "store", list.store);
  member(out, "nodename", list.node);
  // As Calico's plugin takes them: texts.
  member(out, "assign_ipv4", list.assign_v4 ? "true" : "false");
  member(out, "assign_ipv6", list.assign_v6 ? "true" : "false");
  write_names(out, "ipv4_pools", list.pools_v4);
  write_names(out, "ipv6_pools", list.pools_v6);
  if (list.main == MainPlugin::ptp) write_default_routes(out, list);
  out.end_object();
}

void write_capability(JsonWriter& out, std::string_view name) {
  out.key("capabilities");
  out.begin_object();
  out.key(name);
  out.boolean(true);
  out.end_object();
}

void write_mtu(JsonWriter& out, const NetworkList& list) {
  if (list.mtu <= 0) return;
  out.key("mtu");
  out.integer(list.mtu);
}

void write_own_main(JsonWriter& out, const NetworkList& list) {
  member(out, "type", list.main == MainPlugin::ptp ? "ptp" : "bridge");
  write_mtu(out, list);
  out.key("ipMasq");
  out.boolean(list.masquerades);
  if (list.main == MainPlugin::bridge) {
    member(out, "bridge", "cni0");
    out.key("isGateway");
    out.boolean(true);
    out.key("isDefaultGateway");
    out.boolean(true);
    out.key("hairpinMode");
    out.boolean(true);
  }
  write_ipam(out, list);
  write_capability(out, kPodAnnotations);
}

void write_calico(JsonWriter& out, const NetworkList& list) {
  member(out, "type", "calico");
  member(out, "datastore_type", "kubernetes");
  member(out, "nodename", list.node);
  write_mtu(out, list);
  write_ipam(out, list);
  out.key("policy");
  out.begin_object();
  member(out, "type", "k8s");
  out.end_object();
  out.key("kubernetes");
  out.begin_object();
  member(out, "kubeconfig", list.calico_kubeconfig);
  out.end_object();
  write_capability(out, kPodAnnotations);
}

void write_flannel(JsonWriter& out) {
  member(out, "type", "flannel");
  out.key("delegate");
  out.begin_object();
  out.key("hairpinMode");
  out.boolean(true);
  out.key("isDefaultGateway");
  out.boolean(true);
  out.end_object();
}

}  // namespace

std::vector<std::string> plugins_of(MainPlugin main) {
  switch (main) {
    case MainPlugin::ptp:
      return {"ptp", "portmap"};
    case MainPlugin::bridge:
      return {"bridge", "portmap"};
    case MainPlugin::calico:
      return {"calico", "portmap"};
    case MainPlugin::flannel:
      return {"flannel", "bridge", "portmap"};
  }
  return {};
}

std::string_view network_file_of(MainPlugin main) {
  return main == MainPlugin::calico ? "05-croft.conflist" : "10-croft.conflist";
}

std::string_view ipam_name_of(MainPlugin main) { return main == MainPlugin::flannel ? "host-local" : "croft-ipam"; }

std::string encode_network_list(const NetworkList& list) {
  JsonWriter out;
  out.begin_object();
  // As kube-flannel's own configuration has it: releases of its plugin up to 0.9.1 speak nothing newer than 0.4.0.
  member(out, "cniVersion", list.main == MainPlugin::flannel ? "0.3.1" : "1.0.0");
  member(out, "name", list.name);
  // Else libcni adds what is in the folder of this name: of a network, say, whose place this takes.
  out.key("loadOnlyInlinedPlugins");
  out.boolean(true);
  out.key("plugins");
  out.begin_array();
  out.begin_object();
  switch (list.main) {
    case MainPlugin::ptp:
    case MainPlugin::bridge:
      write_own_main(out, list);
      break;
    case MainPlugin::calico:
      write_calico(out, list);
      break;
    case MainPlugin::flannel:
      write_flannel(out);
      break;
  }
  out.end_object();
  out.begin_object();
  member(out, "type", "portmap");
  out.key("snat");
  out.boolean(true);
  write_capability(out, "portMappings");
  out.end_object();
  out.end_array();
  out.end_object();
  return std::move(out).take() + "\n";
}

namespace {

/// What of it people say.
[[nodiscard]] std::vector<const std::string*> texts_of(const NetworkList& list) {
  std::vector<const std::string*> texts{&list.name, &list.node, &list.store, &list.calico_kubeconfig};
  for (const auto* pools : {&list.pools_v4, &list.pools_v6}) {
    for (const std::string& pool : *pools) texts.push_back(&pool);
  }
  return texts;
}

[[nodiscard]] bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Rune rune = first_rune(text);
    if (!rune.valid) return false;
    text.remove_prefix(rune.size);
  }
  return true;
}

}  // namespace

Result<void> check_network_list(const NetworkList& list) {
  const auto refusal = [](const Error& error) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("Croft's plugin would refuse the network configuration: {}{}{}", error.msg,
                            error.details.empty() ? "" : ": ", error.details.empty() ? "" : net::echo(error.details)));
  };
  for (const std::string* text : texts_of(list)) {
    if (is_utf8(*text)) continue;
    // It would be written as U+FFFD: another name or path.
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is no UTF-8: the network configuration would name another", net::echo(*text)));
  }
  const auto whole = parse_json(encode_network_list(list));
  if (!whole) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the network configuration would be no JSON: {}", whole.error().message));
  }
  // As libcni makes it: the plugin's own members, and the list's name and version.
  JsonWriter out;
  out.begin_object();
  for (auto part = whole->root().first_child(); part; part = part->next_sibling()) {
    if (part->key() != "plugins") {
      out.key(part->key());
      copy_json(out, *part);
      continue;
    }
    const auto first = part->first_child();
    CROFT_ASSERT(first.has_value());
    for (auto member = first->first_child(); member; member = member->next_sibling()) {
      out.key(member->key());
      copy_json(out, *member);
    }
  }
  out.end_object();
  auto config = parse_network_config(std::move(out).take());
  if (!config) return refusal(config.error());
  const auto network = read_network(*std::move(config));
  if (!network) return refusal(network.error());
  if (list.main == MainPlugin::flannel) return {};
  const auto read = decode_network_config(*network, "", needs_of(Command::add));
  if (!read) return refusal(read.error());
  return {};
}

bool NetworkCalls::has(std::string_view type) const { return std::ranges::find(types, type) != types.end(); }

std::optional<std::string> NetworkCalls::name_with(std::string_view type) const {
  if (has(type)) return name;
  for (const NetworkCalls& delegate : delegates) {
    auto found = delegate.name_with(type);
    if (found) return found->empty() ? name : std::move(found);
  }
  return {};
}

bool NetworkCalls::needs(std::string_view program) const {
  return has(program) || std::ranges::find(givers, program, &AddressGiver::program) != givers.end() ||
         std::ranges::any_of(delegates, [&](const NetworkCalls& delegate) { return delegate.needs(program); });
}

std::vector<AddressGiver> NetworkCalls::all_givers() const {
  std::vector<AddressGiver> all = givers;
  for (const NetworkCalls& delegate : delegates) {
    for (AddressGiver& theirs : delegate.all_givers()) all.push_back(std::move(theirs));
  }
  for (AddressGiver& giver : all) {
    if (giver.network.empty()) giver.network = name;
  }
  return all;
}

bool NetworkCalls::is_of_croft() const {
  return std::ranges::any_of(types, [](const std::string& type) { return type.starts_with("croft-"); }) ||
         std::ranges::any_of(delegates, &NetworkCalls::is_of_croft);
}

namespace {

/// Of networks that call networks.
constexpr int kDelegatesDepthMax = 8;

enum class Names : bool { exact, in_any_case };

/// The last of this name: null says nothing.
[[nodiscard]] std::optional<JsonRef> last_member(JsonRef object, std::string_view name, Names names) {
  std::optional<JsonRef> last;
  if (object.kind() != JsonKind::object) return last;
  for (auto child = object.first_child(); child; child = child->next_sibling()) {
    const bool is_it = names == Names::exact ? child->key() == name : same_member_name(child->key(), name);
    if (is_it && !child->is_null()) last = child;
  }
  return last;
}

[[nodiscard]] std::string text_of(JsonRef object, std::string_view name, Names names) {
  const auto found = last_member(object, name, names);
  return found && found->kind() == JsonKind::string ? std::string(found->text()) : std::string();
}

void add_type(const std::optional<JsonRef>& object, NetworkCalls& calls) {
  if (!object) return;
  std::string type = text_of(*object, "type", Names::in_any_case);
  if (!type.empty()) calls.types.push_back(std::move(type));
}

/// Plugins that ask an IPAM plugin, or whose network has none of its own: without one they give no addresses.
constexpr std::array<std::string_view, 19> kGiveNone = {
    "bandwidth", "bridge",  "calico", "dummy", "firewall", "flannel", "host-device", "ipvlan", "loopback",   "macvlan",
    "multus",    "portmap", "ptp",    "sbr",   "tap",      "tuning",  "vlan",        "vrf",    "multus-shim"};

[[nodiscard]] bool gives_none(const std::string& type) {
  return type.empty() || std::ranges::find(kGiveNone, type) != kGiveNone.end();
}

/// `subnet` of an object; false: it is there and can't be read, as Calico's usePodCidr.
[[nodiscard]] bool add_subnet(JsonRef range, std::vector<net::Prefix>& ranges) {
  const auto subnet = last_member(range, "subnet", Names::in_any_case);
  if (!subnet) return range.kind() == JsonKind::object;
  const auto cidr = net::parse_prefix_leniently(subnet->text());
  if (cidr) ranges.push_back(*cidr);
  return cidr.has_value();
}

/// From which host-local gives. Not what the runtime tells it, nor a plugin that makes its configuration.
[[nodiscard]] std::optional<std::vector<net::Prefix>> ranges_of(JsonRef plugin, JsonRef ipam) {
  const auto capabilities = last_member(plugin, "capabilities", Names::exact);
  const auto asks = capabilities ? last_member(*capabilities, "ipRanges", Names::exact) : std::nullopt;
  const bool is_told = (asks && asks->boolean()) || last_member(plugin, "runtimeConfig", Names::in_any_case);
  const std::string type = text_of(plugin, "type", Names::in_any_case);
  if (is_told || type.empty() || !gives_none(type) || type == "flannel") return std::nullopt;
  std::vector<net::Prefix> ranges;
  if (!add_subnet(ipam, ranges)) return std::nullopt;
  const auto sets = last_member(ipam, "ranges", Names::in_any_case);
  if (!sets) return ranges;
  if (sets->kind() != JsonKind::array) return std::nullopt;
  for (auto set = sets->first_child(); set; set = set->next_sibling()) {
    if (set->kind() != JsonKind::array) return std::nullopt;
    for (auto range = set->first_child(); range; range = range->next_sibling()) {
      if (!add_subnet(*range, ranges)) return std::nullopt;
    }
  }
  return ranges;
}

/// Whether Calico's configuration leads to an etcd where it names no datastore (calico/datastore.h). Certificates
/// alone do not.
[[nodiscard]] bool names_etcd(JsonRef plugin) {
  constexpr std::array<std::string_view, 4> kOfEtcd = {"etcd_endpoints", "etcd_discovery_srv", "etcd_authority",
                                                       "etcd_scheme"};
  return std::ranges::any_of(kOfEtcd,
                             [&](std::string_view name) { return !text_of(plugin, name, Names::in_any_case).empty(); });
}

/// Whether an object has members that Go takes for one and the same.
[[nodiscard]] bool has_twice(JsonRef object, std::string_view name) {
  int count = 0;
  for (auto child = object.first_child(); child; child = child->next_sibling()) {
    if (same_member_name(child->key(), name)) ++count;
  }
  return count > 1;
}

/// The same of all that it has in it.
[[nodiscard]] bool has_anything_twice(JsonRef value) {
  std::set<std::string> names;
  for (auto child = value.first_child(); child; child = child->next_sibling()) {
    if (value.kind() == JsonKind::object && !names.insert(folded_member_name(child->key())).second) return true;
    if (has_anything_twice(*child)) return true;
  }
  return false;
}

/// Whether it can't be told who gives by a plugin's configuration, and what.
[[nodiscard]] bool is_unclear(JsonRef plugin, const std::optional<JsonRef>& ipam) {
  constexpr std::array<std::string_view, 10> kDeciding = {
      "type",           "ipam",           "delegate",           "capabilities",   "runtimeConfig",
      "datastore_type", "etcd_endpoints", "etcd_discovery_srv", "etcd_authority", "etcd_scheme"};
  return (ipam && has_anything_twice(*ipam)) ||
         std::ranges::any_of(kDeciding, [&](std::string_view name) { return has_twice(plugin, name); });
}

/// `is_first`: the one that makes the interface.
void add_giver(JsonRef plugin, bool is_first, NetworkCalls& calls) {
  if (plugin.kind() != JsonKind::object) return;
  const std::string type = text_of(plugin, "type", Names::in_any_case);
  const bool is_flannel = type == "flannel";
  auto ipam = last_member(plugin, "ipam", Names::in_any_case);
  const auto delegate = last_member(plugin, "delegate", Names::in_any_case);
  bool is_of_delegate = false;
  if (!ipam && delegate && !is_flannel) {
    ipam = last_member(*delegate, "ipam", Names::in_any_case);
    is_of_delegate = ipam.has_value();
  }
  const bool is_dark = is_unclear(plugin, ipam) || (delegate && has_twice(*delegate, "ipam"));
  std::string program = ipam ? text_of(*ipam, "type", Names::in_any_case) : std::string();
  // Flannel's plugin calls its delegate with host-local unless it is told another one.
  if (program.empty() && is_flannel) program = "host-local";
  if (program.empty() && is_dark) {
    calls.givers.push_back({type.empty() ? "not clear who" : type, {}});
    calls.givers.back().is_unclear = true;
    return;
  }
  if (program.empty()) {
    if (is_first && !gives_none(type)) calls.givers.push_back({type, {}});
    return;
  }
  AddressGiver giver{std::move(program), {}};
  if (giver.program == "host-local" && ipam) {
    giver.directory = text_of(*ipam, "dataDir", Names::in_any_case);
    if (!is_of_delegate) giver.ranges = ranges_of(plugin, *ipam);
  }
  // Under both names it may be Croft's.
  const bool has_register = giver.program == "croft-ipam" || giver.program == "calico-ipam";
  if (has_register && ipam) giver.store = text_of(*ipam, "store", Names::in_any_case);
  if (giver.program == "calico-ipam") {
    giver.datastore = text_of(plugin, "datastore_type", Names::in_any_case);
    if (giver.datastore.empty() && names_etcd(plugin)) giver.datastore = "etcdv3";
  }
  if (is_dark) {
    giver.is_unclear = true;
    giver.ranges = std::nullopt;
  }
  calls.givers.push_back(std::move(giver));
}

[[nodiscard]] Result<NetworkCalls> calls_of(JsonRef root, int depth);

[[nodiscard]] Result<void> add_plugin(JsonRef plugin, int depth, NetworkCalls& calls) {
  const auto delegate = last_member(plugin, "delegate", Names::in_any_case);
  add_giver(plugin, calls.types.empty(), calls);
  add_type(plugin, calls);
  add_type(last_member(plugin, "ipam", Names::in_any_case), calls);
  add_type(delegate, calls);
  if (delegate) add_type(last_member(*delegate, "ipam", Names::in_any_case), calls);
  // Multus' shim asks its daemon, which takes the next file.
  const bool is_shim = text_of(plugin, "type", Names::in_any_case) == "multus-shim";
  std::string other = text_of(plugin, "clusterNetwork", Names::in_any_case);
  if (is_shim || !other.empty()) calls.names_another = true;
  if (!other.empty()) calls.other = std::move(other);
  const auto networks = last_member(plugin, "delegates", Names::in_any_case);
  if (!networks || networks->kind() != JsonKind::array) return {};
  if (depth == kDelegatesDepthMax) {
    return fail(invalid_argument(fmt::format("delegates: in more than {} levels", kDelegatesDepthMax)));
  }
  for (auto network = networks->first_child(); network; network = network->next_sibling()) {
    TRY(NetworkCalls theirs, calls_of(*network, depth + 1));
    calls.delegates.push_back(std::move(theirs));
  }
  return {};
}

/// libcni takes the word too.
[[nodiscard]] bool is_true(JsonRef value) {
  return value.kind() == JsonKind::string && same_member_name(value.text(), "true");
}

[[nodiscard]] bool is_text(const std::optional<JsonRef>& value) { return !value || value->kind() == JsonKind::string; }

[[nodiscard]] bool are_texts(const std::optional<JsonRef>& value) {
  if (!value) return true;
  if (value->kind() != JsonKind::array) return false;
  for (auto one = value->first_child(); one; one = one->next_sibling()) {
    if (one->kind() != JsonKind::string) return false;
  }
  return true;
}

/// A version that plugins of all these years take: one of 1.1.0 asks for newer ones.
[[nodiscard]] bool is_common_version(const std::optional<JsonRef>& version) {
  constexpr std::array<std::string_view, 6> kCommon = {"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0"};
  return !version ||
         (version->kind() == JsonKind::string && std::ranges::find(kCommon, version->text()) != kCommon.end());
}

/// Whether libcni reads it into its structure of a plugin (types.PluginConf) without an error.
[[nodiscard]] bool is_plugin(JsonRef plugin) {
  const auto member = [&](std::string_view name) { return last_member(plugin, name, Names::in_any_case); };
  if (text_of(plugin, "type", Names::in_any_case).empty() || !is_text(member("name")) ||
      !is_text(member("cniVersion"))) {
    return false;
  }
  if (const auto capabilities = member("capabilities")) {
    if (capabilities->kind() != JsonKind::object) return false;
    for (auto one = capabilities->first_child(); one; one = one->next_sibling()) {
      if (one->kind() != JsonKind::boolean && !one->is_null()) return false;
    }
  }
  const auto ipam = member("ipam");
  if (ipam && (ipam->kind() != JsonKind::object || !is_text(last_member(*ipam, "type", Names::in_any_case))))
    return false;
  const auto result = member("prevResult");
  if (result && result->kind() != JsonKind::object) return false;
  const auto dns = member("dns");
  if (!dns) return true;
  const auto of_dns = [&](std::string_view name) { return last_member(*dns, name, Names::in_any_case); };
  return dns->kind() == JsonKind::object && is_text(of_dns("domain")) && are_texts(of_dns("nameservers")) &&
         are_texts(of_dns("search")) && are_texts(of_dns("options"));
}

/// libcni's readBool.
[[nodiscard]] bool is_switch(const std::optional<JsonRef>& value) {
  if (!value || value->kind() == JsonKind::boolean) return true;
  return value->kind() == JsonKind::string &&
         (same_member_name(value->text(), "true") || same_member_name(value->text(), "false"));
}

/// Whether libcni loads a network of this name, and its plugins take it (ConfListFromBytes, ConfFromBytes).
[[nodiscard]] bool is_whole(JsonRef root, const std::optional<JsonRef>& plugins, const std::string& name) {
  const auto version = last_member(root, "cniVersion", plugins ? Names::exact : Names::in_any_case);
  if (name.empty() || !is_common_version(version)) return false;
  if (!plugins) return is_plugin(root);
  for (const char* one : {"disableCheck", "disableGC", "loadOnlyInlinedPlugins"}) {
    if (!is_switch(last_member(root, one, Names::exact))) return false;
  }
  if (!are_texts(last_member(root, "cniVersions", Names::exact))) return false;
  auto plugin = plugins->first_child();
  if (plugins->kind() != JsonKind::array || !plugin) return false;
  for (; plugin; plugin = plugin->next_sibling()) {
    if (!is_plugin(*plugin)) return false;
  }
  return true;
}

/// libcni reads a list as a map, and the one plugin of a .conf into a structure.
[[nodiscard]] Result<NetworkCalls> calls_of(JsonRef root, int depth) {
  if (root.kind() != JsonKind::object) return fail(invalid_argument("it is no JSON object"));
  const auto plugins = last_member(root, "plugins", Names::exact);
  NetworkCalls calls{text_of(root, "name", plugins ? Names::exact : Names::in_any_case), {}};
  const auto only_inlined = last_member(root, "loadOnlyInlinedPlugins", Names::exact);
  calls.only_inlined = only_inlined && (only_inlined->boolean() || is_true(*only_inlined));
  calls.is_list = plugins.has_value();
  calls.is_whole = is_whole(root, plugins, calls.name);
  if (!plugins) {
    TRY_VOID(add_plugin(root, depth, calls));
    return calls;
  }
  if (plugins->kind() != JsonKind::array) return fail(invalid_argument("plugins: it is no list"));
  for (auto plugin = plugins->first_child(); plugin; plugin = plugin->next_sibling()) {
    TRY_VOID(add_plugin(*plugin, depth, calls));
  }
  // In a .conf the list is nothing to libcni.
  if (!text_of(root, "type", Names::in_any_case).empty()) TRY_VOID(add_plugin(root, depth, calls));
  return calls;
}

/// Of a file of somebody else.
[[nodiscard]] Result<JsonDocument> parse_as_go(std::string_view text) {
  if (text.size() > kNetworkBytesMax) {
    return fail(invalid_argument(fmt::format("it is larger than {} bytes", kNetworkBytesMax)));
  }
  return parse_json(text_as_go_reads_it(text), {.bytes_max = 3 * kNetworkBytesMax});
}

}  // namespace

Result<NetworkCalls> read_network_calls(std::string_view text) {
  TRY(const JsonDocument document, parse_as_go(text));
  return calls_of(document.root(), 0);
}

Result<void> add_plugin_of_folder(NetworkCalls& calls, std::string_view text) {
  TRY(const JsonDocument document, parse_as_go(text));
  const JsonRef plugin = document.root();
  if (plugin.kind() != JsonKind::object) return fail(invalid_argument("it is no JSON object"));
  if (text_of(plugin, "type", Names::in_any_case).empty()) return fail(invalid_argument("type: is missing"));
  return add_plugin(plugin, 0, calls);
}

namespace {

[[nodiscard]] std::string type_of(JsonRef plugin) {
  const auto type = member_of(plugin, "type");
  return type && type->kind() == JsonKind::string ? std::string(type->text()) : std::string();
}

/// Of a list, or the one plugin of a .conf.
[[nodiscard]] std::vector<JsonRef> plugins_in(JsonRef root) {
  const auto list = member_of(root, "plugins");
  if (!list) return {root};
  std::vector<JsonRef> plugins;
  if (list->kind() != JsonKind::array) return plugins;
  for (auto plugin = list->first_child(); plugin; plugin = plugin->next_sibling()) plugins.push_back(*plugin);
  return plugins;
}

[[nodiscard]] bool says_nothing(JsonRef value) {
  switch (value.kind()) {
    case JsonKind::null:
      return true;
    case JsonKind::boolean:
      return !value.boolean();
    case JsonKind::integer:
    case JsonKind::number:
      return value.text() == "0";
    case JsonKind::string:
      return value.text().empty();
    case JsonKind::array:
    case JsonKind::object:
      return !value.first_child();
  }
  return false;
}

void add_lost(std::string_view path, JsonRef ours, JsonRef theirs, std::vector<std::string>& lost) {
  for (auto child = theirs.first_child(); child; child = child->next_sibling()) {
    const bool is_of_list = path.empty() && (child->key() == "name" || child->key() == "cniVersion");
    if (is_of_list || child->key() == "type" || says_nothing(*child)) continue;
    const std::string name = fmt::format("{}{}", path, child->key());
    const auto same = member_of(ours, child->key());
    if (same && same->kind() == JsonKind::object && child->kind() == JsonKind::object) {
      add_lost(name + ".", *same, *child, lost);
    } else if (!same) {
      lost.push_back(child->kind() == JsonKind::integer ? fmt::format("{} {}", name, child->text()) : name);
    }
  }
}

}  // namespace

std::vector<std::string> members_lost(std::string_view ours, std::string_view theirs) {
  std::vector<std::string> lost;
  const auto our_document = parse_json(ours);
  const auto their_document = parse_as_go(theirs);
  if (!our_document || !their_document || their_document->root().kind() != JsonKind::object) return lost;
  const std::vector<JsonRef> our_plugins = plugins_in(our_document->root());
  for (const JsonRef plugin : plugins_in(their_document->root())) {
    if (plugin.kind() != JsonKind::object) continue;
    const std::string type = type_of(plugin);
    const auto same = std::ranges::find(our_plugins, type, type_of);
    if (same == our_plugins.end()) {
      lost.push_back("the plugin " + type);
    } else {
      add_lost("", *same, plugin, lost);
    }
  }
  return lost;
}

bool is_network_file(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEndings = {".conf", ".conflist", ".json"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace croft::wire::cni
