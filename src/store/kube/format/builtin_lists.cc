#include "store/kube/format/builtin_lists.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <kube/kube.pb.h>

#include "base/json/writer.h"
#include "base/net/echo.h"
#include "base/time_text.h"
#include "store/kube/format/api.h"
#include "store/kube/format/message_fields.h"

namespace croft::wire::kube {
namespace {

namespace pb = croft::kube;

void write(JsonWriter& out, std::string_view name, const std::string& value) {
  if (value.empty()) return;
  out.key(name);
  out.text(value);
}

void write(JsonWriter& out, std::string_view name, const pb::Time& time) {
  // Kubernetes' years end with 9999, ours with 2261. What is set stays so.
  constexpr std::int64_t kSecondsMin = -9'214'560'000, kSecondsMax = 9'214'646'399;
  out.key(name);
  out.text(rfc3339_exact(WallTime(std::chrono::seconds(std::clamp(time.seconds(), kSecondsMin, kSecondsMax)))));
}

template <class Entries>
void write_map(JsonWriter& out, std::string_view name, const Entries& entries) {
  if (entries.empty()) return;
  out.key(name);
  out.begin_object();
  for (const auto& entry : entries) {
    out.key(entry.key());
    out.text(entry.value());
  }
  out.end_object();
}

template <class Texts>
void write_texts(JsonWriter& out, std::string_view name, const Texts& texts) {
  if (texts.empty()) return;
  out.key(name);
  out.begin_array();
  for (const auto& text : texts) out.text(text);
  out.end_array();
}

/// What all metadata has; the object stays open.
template <class Meta>
void begin_metadata(JsonWriter& out, const Meta& meta) {
  out.key("metadata");
  out.begin_object();
  write(out, "name", meta.name());
  write(out, "uid", meta.uid());
  write(out, "resourceVersion", meta.resource_version());
  if (meta.has_creation_timestamp()) write(out, "creationTimestamp", meta.creation_timestamp());
  if (meta.has_deletion_timestamp()) write(out, "deletionTimestamp", meta.deletion_timestamp());
  write_map(out, "labels", meta.labels());
  write_map(out, "annotations", meta.annotations());
}
void write_metadata(JsonWriter& out, const pb::ObjectMeta& meta) {
  begin_metadata(out, meta);
  write(out, "namespace", meta.namespace_());
  out.end_object();
}

void write_members(JsonWriter& out, const pb::Node& node) {
  begin_metadata(out, node.metadata());
  out.key("managedFields");
  out.begin_array();
  for (const auto& entry : node.metadata().managed_fields()) {
    const auto fields = parse_json(entry.fields_v1().raw(), {.bytes_max = kApiObjectBytesMax});
    if (!fields) continue;  // who wrote something is then not known
    out.begin_object();
    write(out, "manager", entry.manager());
    out.key("fieldsV1");
    copy_json(out, fields->root());
    out.end_object();
  }
  out.end_array();
  out.end_object();
  out.key("spec");
  out.begin_object();
  write(out, "podCIDR", node.spec().pod_cidr());
  write_texts(out, "podCIDRs", node.spec().pod_cidrs());
  out.end_object();
  out.key("status");
  out.begin_object();
  out.key("addresses");
  out.begin_array();
  for (const auto& address : node.status().addresses()) {
    out.begin_object();
    write(out, "type", address.type());
    write(out, "address", address.address());
    out.end_object();
  }
  out.end_array();
  out.end_object();
}

void write_members(JsonWriter& out, const pb::Namespace& name_space) { write_metadata(out, name_space.metadata()); }

void write_port(JsonWriter& out, const pb::ServicePort& port) {
  out.begin_object();
  write(out, "name", port.name());
  write(out, "protocol", port.protocol());
  out.key("port");
  out.integer(port.port());
  if (port.has_target_port()) {
    out.key("targetPort");
    if (port.target_port().type() == 1) {
      out.text(port.target_port().str_val());
    } else {
      out.integer(port.target_port().int_val());
    }
  }
  if (port.node_port() != 0) {
    out.key("nodePort");
    out.integer(port.node_port());
  }
  write(out, "appProtocol", port.app_protocol());
  out.end_object();
}

void write_members(JsonWriter& out, const pb::Service& service) {
  write_metadata(out, service.metadata());
  const pb::ServiceSpec& spec = service.spec();
  out.key("spec");
  out.begin_object();
  out.key("ports");
  out.begin_array();
  for (const auto& port : spec.ports()) write_port(out, port);
  out.end_array();
  write_map(out, "selector", spec.selector());
  write(out, "clusterIP", spec.cluster_ip());
  write_texts(out, "clusterIPs", spec.cluster_ips());
  write_texts(out, "ipFamilies", spec.ip_families());
  write(out, "ipFamilyPolicy", spec.ip_family_policy());
  write(out, "type", spec.type());
  write(out, "externalName", spec.external_name());
  write(out, "externalTrafficPolicy", spec.external_traffic_policy());
  write(out, "loadBalancerClass", spec.load_balancer_class());
  if (spec.health_check_node_port() != 0) {
    out.key("healthCheckNodePort");
    out.integer(spec.health_check_node_port());
  }
  if (spec.has_allocate_load_balancer_node_ports()) {
    out.key("allocateLoadBalancerNodePorts");
    out.boolean(spec.allocate_load_balancer_node_ports());
  }
  out.end_object();
}

void write_members(JsonWriter& out, const pb::IPAddress& address) {
  write_metadata(out, address.metadata());
  out.key("spec");
  out.begin_object();
  if (address.spec().has_parent_ref()) {
    const pb::ParentReference& parent = address.spec().parent_ref();
    out.key("parentRef");
    out.begin_object();
    write(out, "group", parent.group());
    write(out, "resource", parent.resource());
    write(out, "namespace", parent.namespace_());
    write(out, "name", parent.name());
    out.end_object();
  }
  out.end_object();
}

void write_members(JsonWriter& out, const pb::ServiceCIDR& cidr) {
  write_metadata(out, cidr.metadata());
  out.key("spec");
  out.begin_object();
  write_texts(out, "cidrs", cidr.spec().cidrs());
  out.end_object();
  out.key("status");
  out.begin_object();
  out.key("conditions");
  out.begin_array();
  for (const auto& condition : cidr.status().conditions()) {
    out.begin_object();
    write(out, "type", condition.type());
    write(out, "status", condition.status());
    out.end_object();
  }
  out.end_array();
  out.end_object();
}

template <class Message>
[[nodiscard]] bool write_item(JsonWriter& out, std::string_view bytes) {
  Message item;
  if (!item.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  out.begin_object();
  write_members(out, item);
  out.end_object();
  return true;
}

constexpr std::array kMetaBounds = {
    FieldBound{11, "metadata.labels", kMapEntriesMax},
    FieldBound{12, "metadata.annotations", kMapEntriesMax},
    FieldBound{17, "metadata.managedFields", kManagedFieldsMax},
};
constexpr std::array kNodeSpecBounds = {FieldBound{7, "spec.podCIDRs", kCidrsMax}};
constexpr std::array kNodeStatusBounds = {FieldBound{5, "status.addresses", kNodeAddressesMax}};
constexpr std::array kNodeBounds = {
    FieldBound{1, "metadata", 0, kMetaBounds},
    FieldBound{2, "spec", 0, kNodeSpecBounds},
    FieldBound{3, "status", 0, kNodeStatusBounds},
};
constexpr std::array kNamespaceBounds = {FieldBound{1, "metadata", 0, kMetaBounds}};
constexpr std::array kServiceSpecBounds = {
    FieldBound{1, "spec.ports", kPortsMax},
    FieldBound{2, "spec.selector", kMapEntriesMax},
    FieldBound{18, "spec.clusterIPs", kCidrsMax},
    FieldBound{19, "spec.ipFamilies", kCidrsMax},
};
constexpr std::array kServiceBounds = {
    FieldBound{1, "metadata", 0, kMetaBounds},
    FieldBound{2, "spec", 0, kServiceSpecBounds},
};
constexpr std::array kServiceCidrSpecBounds = {FieldBound{1, "spec.cidrs", kCidrsMax}};
constexpr std::array kServiceCidrStatusBounds = {FieldBound{1, "status.conditions", kConditionsMax}};
constexpr std::array kServiceCidrBounds = {
    FieldBound{1, "metadata", 0, kMetaBounds},
    FieldBound{2, "spec", 0, kServiceCidrSpecBounds},
    FieldBound{3, "status", 0, kServiceCidrStatusBounds},
};

struct Kind {
  std::string_view name;
  std::span<const FieldBound> bounds;
  bool (*write_item)(JsonWriter& out, std::string_view bytes);
};
constexpr std::array kKinds = {
    Kind{"Node", kNodeBounds, write_item<pb::Node>},
    Kind{"Namespace", kNamespaceBounds, write_item<pb::Namespace>},
    Kind{"Service", kServiceBounds, write_item<pb::Service>},
    Kind{"IPAddress", kNamespaceBounds, write_item<pb::IPAddress>},
    Kind{"ServiceCIDR", kServiceCidrBounds, write_item<pb::ServiceCIDR>},
};

Error no_list(std::string_view kind) {
  return {ErrorCode::corrupt,
          fmt::format("what the API answered as a list, {}, is no such list in protobuf, or it is cut off",
                      kind.empty() ? "of no kind" : net::echo(std::string(kind))),
          {}};
}

}  // namespace

Result<std::string> json_of_builtin_list(std::string body, std::int64_t limit) {
  if (!body.starts_with(kProtobufMark)) return body;
  TRY(const ProtobufList list, open_protobuf_list("a list", body, limit));
  const Kind* found = nullptr;
  for (const Kind& known : kKinds) {
    if (list.kind.ends_with("List") && list.kind.substr(0, list.kind.size() - 4) == known.name) found = &known;
  }
  if (found == nullptr) return fail(no_list(list.kind));
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  write(out, "kind", list.kind);
  write(out, "apiVersion", list.api_version);
  out.key("metadata");
  out.begin_object();
  write(out, "resourceVersion", list.resource_version);
  write(out, "continue", list.continue_token);
  if (list.remaining) {
    out.key("remainingItemCount");
    out.integer(*list.remaining);
  }
  out.end_object();
  out.key("items");
  out.begin_array();
  std::size_t size = 0;
  for (const std::string_view item : list.items) {
    TRY_VOID(check_counts(found->name, item, found->bounds));
    JsonWriter one(JsonWriter::Layout::compact);
    if (!found->write_item(one, item)) return fail(no_list(list.kind));
    const std::string text = std::move(one).take();
    // What is escaped takes six times as much.
    size += text.size();
    if (size > kApiListBytesMax) return fail(kTooLarge, "a list of the API server is too long in JSON");
    out.raw(text);
  }
  out.end_array();
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::kube
