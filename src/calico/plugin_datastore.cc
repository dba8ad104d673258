#include "calico/plugin_datastore.h"

#include "base/json/document.h"
#include "base/text/go_text.h"
#include "cni/format/network_list.h"

namespace croft::wire::cni {
namespace {

/// Of several with one name the last counts.
[[nodiscard]] std::optional<JsonRef> member(JsonRef object, std::string_view name) {
  std::optional<JsonRef> found;
  if (object.kind() != JsonKind::object) return found;
  for (auto child = object.first_child(); child; child = child->next_sibling()) {
    if (same_member_name(child->key(), name)) found = child;
  }
  return found;
}

[[nodiscard]] bool is_calico(JsonRef plugin) {
  const auto type = member(plugin, "type");
  return type && type->kind() == JsonKind::string && type->text() == "calico";
}

[[nodiscard]] std::optional<DatastoreChoice> datastore_of(JsonRef plugin) {
  DatastoreMembers members;
  DatastoreChoice choice;
  auto fault = read_datastore_members({plugin, nullptr, {}, {}}, OnFault::stop, members);
  if (!fault) fault = datastore_as_said(members, choice);
  if (fault) return {};
  return choice;
}

}  // namespace

std::optional<DatastoreChoice> datastore_of_calicos_plugin(std::string_view network) {
  if (network.size() > kNetworkBytesMax) return {};
  const auto document = parse_json(text_as_go_reads_it(network), {.bytes_max = 3 * kNetworkBytesMax});
  if (!document || document->root().kind() != JsonKind::object) return {};
  const JsonRef root = document->root();
  const auto plugins = member(root, "plugins");
  if (!plugins) return is_calico(root) ? datastore_of(root) : std::nullopt;
  if (plugins->kind() != JsonKind::array) return {};
  for (auto plugin = plugins->first_child(); plugin; plugin = plugin->next_sibling()) {
    if (is_calico(*plugin)) return datastore_of(*plugin);
  }
  return {};
}

}  // namespace croft::wire::cni
