#include "install/format/node_network.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/letters.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "store/kube/format/yaml.h"

namespace croft::wire {
namespace {

using Json = nlohmann::json;
using core::NetworkGiver;
using core::NodeNetwork;

constexpr const char* kDefaultStore = "sqlite:/var/lib/croft/croft.db";
constexpr const char* kHostLocals = "/var/lib/cni/networks";
/// Plugins that give no addresses themselves.
constexpr std::array<std::string_view, 13> kInterfaces = {"bridge", "calico",   "dummy",      "flannel", "host-device",
                                                          "ipvlan", "loopback", "macvlan",    "ptp",     "tap",
                                                          "vlan",   "multus",   "multus-shim"};

[[nodiscard]] std::string text_of(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

[[nodiscard]] const Json& member_of(const Json& object, const char* name) {
  static const Json kNone;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kNone : *found;
}

/// Where Calico's own IPAM keeps its records.
[[nodiscard]] std::string datastore_of(const Json& plugin) {
  const std::string said = text_of(plugin, "datastore_type");
  if (!said.empty()) return said == "kubernetes" ? "kube:" : "etcd:";
  for (const char* name : {"etcd_endpoints", "etcd_discovery_srv", "etcd_authority", "etcd_scheme"}) {
    if (!text_of(plugin, name).empty()) return "etcd:";
  }
  return "kube:";
}

[[nodiscard]] NetworkGiver giver_of(const Json& plugin, const std::string& network) {
  const std::string main = text_of(plugin, "type");
  const bool is_flannel = main == "flannel";
  const Json& own = member_of(plugin, "ipam");
  const Json& ipam = own.is_object() && !is_flannel ? own : member_of(member_of(plugin, "delegate"), "ipam");
  NetworkGiver giver{text_of(ipam, "type"), text_of(ipam, "store")};
  // Flannel's plugin has its delegate ask host-local unless it is told another.
  if (giver.program.empty() && is_flannel) giver.program = "host-local";
  if (giver.program.empty() && std::ranges::find(kInterfaces, main) == kInterfaces.end()) giver.program = main;
  if (giver.program == "host-local") {
    const std::string directory = text_of(ipam, "dataDir");
    giver.records = directory.empty() || directory == kHostLocals ? network : directory + "/" + network;
  }
  if (giver.records.empty() && giver.program == "croft-ipam") giver.records = kDefaultStore;
  if (giver.records.empty() && giver.program == "calico-ipam") giver.records = datastore_of(plugin);
  return giver;
}

[[nodiscard]] NodeNetwork read(const std::string& file, const Json& root, const Json& ours, bool is_inside) {
  NodeNetwork network{.file = file};
  const Json& list = member_of(root, "plugins");
  const bool is_list = list.is_array();
  if (!root.is_object() || (!is_list && text_of(root, "type").empty())) {
    network.trouble = "it is no network configuration";
    return network;
  }
  network.name = text_of(root, "name");
  network.is_as_wanted = root == ours;
  const Json& only_inlined = member_of(root, "loadOnlyInlinedPlugins");
  const Json plugins = is_list ? list : Json::array({root});
  if (!plugins.empty()) network.main = text_of(plugins.front(), "type");
  for (const Json& plugin : plugins) {
    // Behind the first, only one with an `ipam` gives any.
    if (network.giver.program.empty() && (&plugin == &plugins.front() || member_of(plugin, "ipam").is_object())) {
      network.giver = giver_of(plugin, network.name);
      network.node = text_of(member_of(plugin, "ipam"), "nodename");
    }
    const Json& delegates = member_of(plugin, "delegates");
    if (network.other.empty()) network.other = text_of(plugin, "clusterNetwork");
    network.calls_others = network.calls_others || delegates.is_array() || !network.other.empty() ||
                           text_of(plugin, "type").starts_with("multus");
    if (is_inside || !delegates.is_array()) continue;
    for (const Json& one : delegates) network.delegates.push_back(read("", one, ours, true));
  }
  // Flannel's own configuration lacks that member, and Croft's calls nothing of Croft by name.
  network.is_of_croft = network.giver.program.starts_with("croft-") ||
                        (network.main == "flannel" && only_inlined.is_boolean() && only_inlined.get<bool>());
  return network;
}

}  // namespace

NodeNetwork read_node_network(const std::string& file, std::string_view text, std::string_view ours) {
  const Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded()) return {.file = file, .trouble = "it is no JSON"};
  return read(file, root, Json::parse(ours, nullptr, false), false);
}

namespace {

/// One CIDR, or two of different families with a comma between.
[[nodiscard]] Result<std::vector<net::Prefix>> subnets(const Json& networking, const char* name) {
  std::vector<net::Prefix> all;
  const Json& value = member_of(networking, name);
  if (value.is_null()) return all;
  const std::string field = fmt::format("networking.{}", name);
  if (!value.is_string()) return fail(ErrorCode::invalid_argument, field + " is no text");
  std::string_view rest = value.get_ref<const std::string&>();
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string_view text = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    const auto cidr = net::parse_prefix_leniently(text);
    if (!cidr) return fail(ErrorCode::invalid_argument, "{}: {} is no CIDR", field, echo(text));
    for (const net::Prefix& other : all) {
      if (other.family() == cidr->family()) {
        return fail(ErrorCode::invalid_argument, "{} has two subnets of one family: {} and {}", field, other, *cidr);
      }
    }
    all.push_back(*cidr);
  }
  return all;
}

/// Whether a document is the configuration that kubeadm reads: it says so, or says no kind and is the first.
[[nodiscard]] bool is_of_cluster(const Json& document, bool is_first) {
  if (!document.is_object()) return false;
  const Json& kind = member_of(document, "kind");
  if (kind.is_null()) return is_first;
  const Json& version = member_of(document, "apiVersion");
  const bool is_kubeadms = version.is_null() || text_of(document, "apiVersion").starts_with("kubeadm.k8s.io/");
  return kind == "ClusterConfiguration" && is_kubeadms;
}

[[nodiscard]] Result<KubeadmNetworking> networking_of(const Json& document) {
  KubeadmNetworking said;
  const Json& networking = member_of(document, "networking");
  if (networking.is_null()) return said;
  if (!networking.is_object()) return fail(ErrorCode::invalid_argument, "networking is no object");
  TRY(said.pod_subnets, subnets(networking, "podSubnet"));
  TRY(said.service_subnets, subnets(networking, "serviceSubnet"));
  return said;
}

}  // namespace

Result<KubeadmNetworking> parse_kubeadm_config(std::string_view yaml) {
  TRY(const auto documents, parse_yaml_documents(yaml));
  for (const Json& document : documents) {
    if (is_of_cluster(document, &document == documents.data())) return networking_of(document);
  }
  return KubeadmNetworking();
}

namespace {

constexpr int kVersion = 1;
constexpr std::size_t kNameBytesMax = 200;
constexpr const char* kKubeconfigKind = "kubeconfig";
constexpr std::array<std::pair<const char*, std::set<std::string> InstallRecord::*>, 2> kKinds = {
    {{"program", &InstallRecord::programs}, {"network", &InstallRecord::networks}}};

}  // namespace

bool is_install_name(std::string_view name) {
  const auto is_plain = [](char c) { return is_alphanumeric(c) || c == '.' || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= kNameBytesMax && name.front() != '.' && std::ranges::all_of(name, is_plain);
}

std::string encode(const InstallRecord& record) {
  Json files = Json::array();
  for (const auto& [kind, names] : kKinds) {
    for (const std::string& name : record.*names) files.push_back({{"kind", kind}, {"name", name}});
  }
  if (record.kubeconfig) files.push_back({{"kind", kKubeconfigKind}, {"name", kKubeconfigName}});
  const Json json{{"version", kVersion}, {"files", files}, {"network", record.network}, {"mainPlugin", record.main}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<InstallRecord> decode_install_record(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("version") || !json["version"].is_number_integer()) {
    return fail(ErrorCode::corrupt, "it is no record of an installation");
  }
  if (json["version"] > kVersion) {
    return fail(ErrorCode::newer_version, "version: {} is newer than this program, which knows {}",
                json["version"].dump(), kVersion);
  }
  InstallRecord record;
  record.network = text_of(json, "network");
  record.main = text_of(json, "mainPlugin");
  for (const Json& file : json.value("files", Json::array())) {
    const std::string kind = text_of(file, "kind"), name = text_of(file, "name");
    if (kind == kKubeconfigKind) {
      record.kubeconfig = true;
      continue;
    }
    const auto known = std::ranges::find_if(kKinds, [&](const auto& one) { return one.first == kind; });
    if (known == kKinds.end() || !is_install_name(name)) {
      return fail(ErrorCode::corrupt, "files: one has no plain name, or an unknown kind");
    }
    (record.*(known->second)).insert(name);
  }
  return record;
}

}  // namespace croft::wire
