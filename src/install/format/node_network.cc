#include "install/format/node_network.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

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

}  // namespace croft::wire
