#include "wire/kube/builtin_lists.h"

#include <array>
#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <kube/kube.pb.h>

#include "base/time_text.h"
#include "net/echo.h"
#include "wire/json/writer.h"
#include "wire/kube/api.h"

namespace croft::wire::kube {
namespace {

namespace pb = croft::kube;

/// What an object in protobuf begins with.
constexpr std::string_view kMark{"k8s\0", 4};

void write(JsonWriter& out, std::string_view name, const std::string& value) {
  if (value.empty()) return;
  out.key(name);
  out.text(value);
}

void write(JsonWriter& out, std::string_view name, const pb::Time& time) {
  // Kubernetes' years end with 9999, ours earlier.
  constexpr std::int64_t kSecondsMax = 9'223'372'036;
  if (time.seconds() < -kSecondsMax || time.seconds() > kSecondsMax) return;
  out.key(name);
  out.text(rfc3339_exact(WallTime(std::chrono::seconds(time.seconds()))));
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
[[nodiscard]] bool write_item(JsonWriter& out, const std::string& bytes) {
  Message item;
  if (!item.ParseFromString(bytes)) return false;
  out.begin_object();
  write_members(out, item);
  out.end_object();
  return true;
}

struct Kind {
  std::string_view list;
  bool (*write_item)(JsonWriter& out, const std::string& bytes);
};
constexpr std::array kKinds = {
    Kind{"NodeList", write_item<pb::Node>},
    Kind{"NamespaceList", write_item<pb::Namespace>},
    Kind{"ServiceList", write_item<pb::Service>},
    Kind{"IPAddressList", write_item<pb::IPAddress>},
    Kind{"ServiceCIDRList", write_item<pb::ServiceCIDR>},
};

Error no_list(std::string_view kind) {
  return {ErrorCode::corrupt,
          fmt::format("what the API answered as a list, {}, is no such list in protobuf, or it is cut off",
                      kind.empty() ? "of no kind" : net::echo(std::string(kind))),
          {}};
}

}  // namespace

Result<std::string> json_of_builtin_list(std::string body) {
  if (!body.starts_with(kMark)) return body;
  if (body.size() > kApiListBytesMax) return fail(kTooLarge, "a list of the API server is too long");
  pb::Unknown envelope;
  pb::AnyList list;
  const std::size_t begin = kMark.size();
  const bool is_read = envelope.ParseFromArray(body.data() + begin, static_cast<int>(body.size() - begin)) &&
                       list.ParseFromString(envelope.raw()) && !list.metadata().resource_version().empty();
  const std::string kind = envelope.type_meta().kind();
  if (!is_read) return fail(no_list(kind));
  const Kind* found = nullptr;
  for (const Kind& known : kKinds) {
    if (known.list == kind) found = &known;
  }
  if (found == nullptr) return fail(no_list(kind));
  body = {};
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  write(out, "kind", kind);
  write(out, "apiVersion", envelope.type_meta().api_version());
  out.key("metadata");
  out.begin_object();
  write(out, "resourceVersion", list.metadata().resource_version());
  write(out, "continue", list.metadata().continue_());
  if (list.metadata().has_remaining_item_count()) {
    out.key("remainingItemCount");
    out.integer(list.metadata().remaining_item_count());
  }
  out.end_object();
  out.key("items");
  out.begin_array();
  for (const std::string& item : list.items()) {
    if (!found->write_item(out, item)) return fail(no_list(kind));
  }
  out.end_array();
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::kube
