#include "calico/conflist_switch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/letters.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "base/texts.h"
#include "cni/format/config.h"

namespace croft::wire::cni {
namespace {

constexpr std::size_t kDepthMax = 64;
constexpr std::array<std::string_view, 4> kKept = {"assign_ipv4", "assign_ipv6", "ipv4_pools", "ipv6_pools"};

[[nodiscard]] bool is_named(JsonRef child, std::string_view name) { return same_member_name(child.key(), name); }

/// As Go's encoding/json reads it for the plugins: in whatever letters, and of several the last.
[[nodiscard]] std::optional<JsonRef> member(JsonRef object, std::string_view name) {
  std::optional<JsonRef> found;
  if (object.kind() != JsonKind::object) return found;
  for (auto child = object.first_child(); child; child = child->next_sibling()) {
    if (is_named(*child, name)) found = child;
  }
  return found;
}
[[nodiscard]] std::string text(JsonRef object, std::string_view name) {
  const auto found = member(object, name);
  return found && found->kind() == JsonKind::string ? std::string(found->text()) : std::string();
}

[[nodiscard]] bool is_calicos(JsonRef plugin) {
  const auto ipam = member(plugin, "ipam");
  return ipam && text(*ipam, "type") == "calico-ipam";
}

/// Where the plugin's own configuration says that the register is.
[[nodiscard]] Result<DatastoreChoice> datastore_of(JsonRef plugin) {
  DatastoreMembers members;
  DatastoreChoice choice;
  auto fault = read_datastore_members({plugin, nullptr, {}, {}}, OnFault::stop, members);
  if (!fault) fault = datastore_of_members(members, choice);
  if (fault) return fail(invalid_argument(fault->to_string()));
  return choice;
}

[[nodiscard]] Result<std::string> store_of(JsonRef plugin, const DatastoreChoice& datastore) {
  if (datastore.kind == DatastoreChoice::Kind::etcd) {
    const bool has_files = !text(plugin, "etcd_key_file").empty() || !text(plugin, "etcd_ca_cert_file").empty();
    if (!datastore.endpoints.empty() && !has_files) return url_of(datastore);
    return fail(invalid_argument(
        "the plugin's etcd needs files that a store's URL names in its own way, or has no endpoints in "
        "etcd_endpoints: give the URL with --plugin-store"));
  }
  const std::string& kubeconfig = datastore.kubeconfig;
  if (kubeconfig.starts_with('/')) {
    // As Calico's plugin reads it: what is not v3 is v1.
    const std::string group = lowered(text(plugin, "calico_api_group"));
    if (group.empty()) return "kube:" + kubeconfig;
    return fmt::format("kube:{}?group={}", kubeconfig,
                       group == "projectcalico.org/v3" ? group : "crd.projectcalico.org/v1");
  }
  return fail(
      invalid_argument("the configuration names no kubeconfig: give the URL of the register with --plugin-store"));
}

class PluginSwitch {
 public:
  PluginSwitch(std::string store, std::string node) : store_(std::move(store)), node_(std::move(node)) {}

  [[nodiscard]] Result<void> write(JsonRef plugin) {
    if (!is_calicos(plugin)) {
      copy_json(out, plugin);
      return {};
    }
    TRY(const DatastoreChoice datastore, datastore_of(plugin));
    std::string store = store_;
    if (store.empty()) {
      TRY(store, store_of(plugin, datastore));
    }
    // Calico's operator writes none: its plugins find the name in a file.
    const bool is_named_there = !text(plugin, "nodename").empty();
    if (!is_named_there && node_.empty()) {
      return fail(
          invalid_argument("the configuration has no nodename: give the one of Calico's blocks with --node, as "
                           "/var/lib/calico/nodename has it"));
    }
    const std::string node = is_named_there ? std::string() : node_;
    ++result.plugins;
    result.store = store;
    result.datastores.push_back(datastore);
    out.begin_object();
    for (auto child = plugin.first_child(); child; child = child->next_sibling()) {
      out.key(child->key());
      if (is_named(*child, "ipam")) {
        write_ipam(*child, store, node);
      } else {
        copy_json(out, *child);
      }
    }
    out.end_object();
    return {};
  }

  JsonWriter out;
  SwitchedConflist result;

 private:
  void write_ipam(JsonRef ipam, const std::string& store, const std::string& node) {
    out.begin_object();
    out.text("type", "croft-ipam");
    out.text("store", store);
    if (!node.empty()) {
      out.text("nodename", node);
    }
    for (auto child = ipam.first_child(); child; child = child->next_sibling()) {
      if (is_named(*child, "type") || is_named(*child, "store") || (is_named(*child, "nodename") && !node.empty())) {
        continue;
      }
      if (std::ranges::none_of(kKept, [&](const std::string_view name) { return is_named(*child, name); })) {
        result.dropped.emplace_back(child->key());
        continue;
      }
      copy_json(out, child->key(), *child);
    }
    out.end_object();
  }

  const std::string store_;
  const std::string node_;
};

[[nodiscard]] Result<Network> as_croft_reads_it(const std::string& config) {
  const auto refusal = [](const cni::Error& error) {
    return fail(ErrorCode::invalid_argument, "croft-ipam would refuse it: {}{}{}", error.msg,
                error.details.empty() ? "" : ": ", error.details.empty() ? "" : echo(error.details));
  };
  auto document = parse_network_config(config);
  if (!document) return refusal(document.error());
  auto network = read_network(*std::move(document));
  if (!network) return refusal(network.error());
  const auto read = decode_croft_ipam_config(*network, "", needs_of(Command::add));
  if (!read) return refusal(read.error());
  return *std::move(network);
}

}  // namespace

Result<std::vector<Network>> read_switched(std::string_view conflist) {
  TRY(const JsonDocument document,
      parse_json(conflist, {.bytes_max = 2 * kConflistBytesMax, .depth_max = kDepthMax, .is_secret = true}));
  const JsonRef root = document.root();
  std::vector<Network> all;
  const auto read = [&](JsonRef plugin) -> Result<void> {
    const auto ipam = member(plugin, "ipam");
    if (!ipam || text(*ipam, "type") != "croft-ipam") return {};
    TRY(all.emplace_back(), as_croft_reads_it(as_called(root, plugin)));
    return {};
  };
  const auto plugins = member(root, "plugins");
  if (!plugins) {
    TRY_VOID(read(root));
    return all;
  }
  for (auto plugin = plugins->first_child(); plugin; plugin = plugin->next_sibling()) TRY_VOID(read(*plugin));
  return all;
}

Result<SwitchedConflist> switch_to_croft(std::string_view conflist, const std::string& store, const std::string& node) {
  // Calico's policy may have a token.
  auto document = parse_json(conflist, {.bytes_max = kConflistBytesMax, .depth_max = kDepthMax, .is_secret = true});
  if (!document) return fail(document.error());
  const JsonRef root = document->root();
  if (root.kind() != JsonKind::object) return fail(invalid_argument("it is no JSON object"));
  PluginSwitch work(store, node);
  const auto plugins = member(root, "plugins");
  if (!plugins) {
    TRY_VOID(work.write(root));
  } else {
    if (plugins->kind() != JsonKind::array) return fail(invalid_argument("plugins: it is no list"));
    work.out.begin_object();
    for (auto child = root.first_child(); child; child = child->next_sibling()) {
      work.out.key(child->key());
      if (!is_named(*child, "plugins")) {
        copy_json(work.out, *child);
        continue;
      }
      work.out.begin_array();
      for (auto plugin = child->first_child(); plugin; plugin = plugin->next_sibling()) TRY_VOID(work.write(*plugin));
      work.out.end_array();
    }
    work.out.end_object();
  }
  if (work.result.plugins == 0) {
    work.result.text = conflist;
    return std::move(work.result);
  }
  work.result.text = std::move(work.out).take() + "\n";
  return std::move(work.result);
}

}  // namespace croft::wire::cni
