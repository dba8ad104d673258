#include "store/kube/vpc_objects.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/printable.h"
#include "base/texts.h"
#include "store/kube/format/api.h"
#include "store/kube/object_list.h"

namespace croft::wire::kube {
namespace {

constexpr std::size_t kVpcTextMax = 4096;
constexpr std::int64_t kVpcCountMax = INT32_MAX;
constexpr std::string_view kAttachedLabel = "attached";

/// A member of an object, read into a record and written from it.
template <class T>
struct VpcField {
  std::string_view part;  ///< "spec", "status", "labels"
  std::string_view name;
  std::variant<std::string T::*, std::int64_t T::*, bool T::*> member;
  bool unless_empty = false;  ///< a text: written only where there is one
};

/// The parts that differ by kind.
template <class Record>
struct Of;
template <>
struct Of<IpamdRecord> {
  using T = IpamdRecord;
  static constexpr VpcKind kKind{{"vpc.uk8s.ucloud.cn", "v1beta1", "ipamds"}, "Ipamd", "kube-system"};
  static constexpr auto kFields = std::to_array<VpcField<T>>({{"spec", "node", &T::node},
                                                              {"spec", "addr", &T::address},
                                                              {"spec", "subnet", &T::subnet},
                                                              {"status", "current", &T::current},
                                                              {"status", "high", &T::high},
                                                              {"status", "low", &T::low},
                                                              {"status", "status", &T::status}});
};
template <>
struct Of<VpcIpClaimRecord> {
  using T = VpcIpClaimRecord;
  static constexpr VpcKind kKind{{"vpc.uk8s.ucloud.cn", "v1beta1", "vpcipclaims"}, "VpcIpClaim", ""};
  static constexpr auto kFields =
      std::to_array<VpcField<T>>({{"spec", "ip", &T::ip},
                                  {"spec", "mask", &T::mask},
                                  {"spec", "gateway", &T::gateway},
                                  {"spec", "subnetId", &T::subnet},
                                  {"spec", "vpcId", &T::vpc},
                                  {"status", "attached", &T::attached},
                                  {"status", "lastDetachtime", &T::last_detach_time},
                                  {"status", "releaseTime", &T::release_time},
                                  {"status", "sandboxId", &T::sandbox},
                                  {"status", "mac", &T::mac},
                                  {"status", "zone", &T::zone},
                                  {"status", "node", &T::node, true},
                                  {"labels", "owner-statefulset", &T::owner_stateful_set, true}});
};

template <class T>
[[nodiscard]] const VpcField<T>* field_of(std::string_view part, std::string_view name) {
  const auto& fields = Of<T>::kFields;
  const auto found =
      std::ranges::find_if(fields, [&](const auto& one) { return one.part == part && one.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

MaybeFault read_value(const JsonAt& at, std::string& out) { return read_text(at, kVpcTextMax, out); }
MaybeFault read_value(const JsonAt& at, bool& out) { return read_boolean(at, out); }
MaybeFault read_value(const JsonAt& at, std::int64_t& out) {
  return read_integer(at, -kVpcCountMax, kVpcCountMax, out);
}
template <class T>
MaybeFault read_part(const JsonAt& at, T& out) {
  return each_member(at, [&](const JsonAt& member) -> MaybeFault {
    const VpcField<T>* const field = field_of<T>(at.name, member.name);
    if (field == nullptr || member.value.is_null()) return {};
    return std::visit([&](auto pointer) { return read_value(member, out.*pointer); }, field->member);
  });
}

void write_scalar(JsonWriter& out, const std::string& text) { out.text(text); }
void write_scalar(JsonWriter& out, bool value) { out.boolean(value); }
void write_scalar(JsonWriter& out, std::int64_t number) { out.integer(number); }
/// Writes an object with what `write` adds, and the members it had that are not replaced. `before`: nothing was there.
void merge(JsonWriter& out, std::optional<JsonRef> before, const std::function<bool(std::string_view)>& is_replaced,
           const std::function<void()>& write) {
  out.begin_object();
  for (auto member = before ? before->first_child() : std::nullopt; member; member = member->next_sibling()) {
    if (is_replaced(member->key())) continue;
    copy_json(out, member->key(), *member);
  }
  write();
  out.end_object();
}

template <class T>
void write_fields(JsonWriter& out, std::string_view part, const T& record) {
  for (const VpcField<T>& field : Of<T>::kFields) {
    const auto* text = std::get_if<std::string T::*>(&field.member);
    const bool is_left_out = field.unless_empty && text != nullptr && (record.**text).empty();
    if (field.part != part || is_left_out) continue;
    out.key(field.name);
    std::visit([&](auto pointer) { write_scalar(out, record.*pointer); }, field.member);
  }
}
/// Spec and status, with what others have in them.
template <class T>
void write_parts(JsonWriter& out, std::optional<JsonRef> before, const T& record) {
  for (const std::string_view part : {"spec", "status"}) {
    out.key(part);
    merge(
        out, member_of(before, part), [&](std::string_view name) { return field_of<T>(part, name) != nullptr; },
        [&] { write_fields(out, part, record); });
  }
}

/// The labels and finalizers of a claim, with those of others.
void write_meta(JsonWriter& out, std::optional<JsonRef> meta, const VpcIpClaimRecord& record) {
  out.key("labels");
  merge(
      out, member_of(meta, "labels"),
      [](std::string_view name) {
        return name == kAttachedLabel || field_of<VpcIpClaimRecord>("labels", name) != nullptr;
      },
      [&] {
        out.text(kAttachedLabel, record.attached ? "true" : "false");
        write_fields(out, "labels", record);
      });
  out.begin_array("finalizers");
  const auto before = member_of(meta, "finalizers");
  for (auto one = before ? before->first_child() : std::nullopt; one; one = one->next_sibling()) {
    if (one->text() != kClaimFinalizer) copy_json(out, *one);
  }
  if (record.attached) out.text(kClaimFinalizer);
  out.end_array();
}

}  // namespace

template <class Record>
const VpcKind& vpc_kind() {
  return Of<Record>::kKind;
}

template <class Record>
Result<Record> decode_vpc(JsonRef object) {
  Record record;
  const auto fault = each_member(JsonAt{object, nullptr, {}, {}}, [&](const JsonAt& at) -> MaybeFault {
    if (at.name == "spec" || at.name == "status") return read_part(at, record);
    if (at.name != "metadata") return {};
    return each_member(
        at, [&](const JsonAt& inner) { return inner.name == "labels" ? read_part(inner, record) : MaybeFault(); });
  });
  if (!fault) return record;
  return fail(ErrorCode::corrupt, "an object {} of the API server: {}", vpc_kind<Record>().kind, fault->to_string());
}

template <class Record>
std::string encode_vpc(const std::optional<VpcObject<Record>>& before, std::string_view name_space,
                       std::string_view name, const Record& record) {
  const auto root = before ? std::optional(before->whole->root()) : std::nullopt;
  constexpr bool kWritesMeta = std::is_same_v<Record, VpcIpClaimRecord>;
  JsonWriter out(JsonWriter::Layout::compact);
  const auto is_replaced = [](std::string_view member) {
    return (kWritesMeta && member == "metadata") || member == "spec" || member == "status";
  };
  merge(out, root, is_replaced, [&] {
    if (!root) {
      out.text("apiVersion", vpc_kind<Record>().resource.api_version());
      out.text("kind", vpc_kind<Record>().kind);
    }
    if (!root || kWritesMeta) {
      const auto meta = member_of(root, "metadata");
      out.key("metadata");
      merge(
          out, meta, [](std::string_view member) { return member == "labels" || member == "finalizers"; },
          [&] {
            if (!root) out.text("name", name);
            if (!root) out.text("namespace", name_space);
            if constexpr (kWritesMeta) write_meta(out, meta, record);
          });
    }
    write_parts(out, root, record);
  });
  return std::move(out).take();
}

#define CROFT_VPC_KIND(Record)                                                                                 \
  template const VpcKind& vpc_kind<Record>();                                                                  \
  template Result<Record> decode_vpc(JsonRef object);                                                          \
  template std::string encode_vpc(const std::optional<VpcObject<Record>>& before, std::string_view name_space, \
                                  std::string_view name, const Record& record)
CROFT_VPC_KIND(IpamdRecord);
CROFT_VPC_KIND(VpcIpClaimRecord);
#undef CROFT_VPC_KIND

std::string encode_pod_address_patch(std::string_view uid, const net::Address& address) {
  const std::string text = fmt::format("{}/{}", address.to_string(), address.is_v4() ? 32 : 128);
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.begin_object("metadata");
  out.text("uid", uid);
  out.begin_object("annotations");
  out.text("cni.projectcalico.org/podIP", address.to_string());  // as UK8S' agent writes it
  out.text("cni.projectcalico.org/podIPs", text);
  out.end_object();
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::kube

namespace croft::store::kube {
namespace {

using Outcome = Answer::Outcome;
using wire::kube::ApiResource;

constexpr ApiResource kVpcNodes{"", "v1", "nodes"};
constexpr ApiResource kVpcPods{"", "v1", "pods"};
constexpr int kHttpUnprocessable = 422;

std::string full_name(const ApiResource& resource) {
  return resource.group.empty() ? std::string(resource.resource)
                                : fmt::format("{}.{}", resource.resource, resource.group);
}

/// `name` empty: of a list.
Error vpc_error(const Answer& answer, const ApiResource& resource, std::string_view name) {
  const std::string what = name.empty() ? full_name(resource) : fmt::format("{} {}", full_name(resource), echo(name));
  Error error = error_in(answer, what, "kubectl apply -f deploy/kubernetes/cni-vpc-ipamd.yml allows it");
  if (answer.http_status == 404 && !resource.group.empty() && answer.status.name.empty()) {
    error.message += fmt::format(
        "; is the CustomResourceDefinition {} missing? kubectl apply -f "
        "deploy/kubernetes/crds-vpc.yaml makes it",
        full_name(resource));
  }
  return error;
}

[[nodiscard]] Result<void> list(Api& api, const ListAsked& asked, const ApiResource& resource, Deadline deadline,
                                ListUse use) {
  use.until = [&] { return deadline; };
  use.error_of = [&](const Answer& answer) { return vpc_error(answer, resource, {}); };
  TRY_VOID(read_list(api, asked, use));
  return {};
}

template <class Record>
[[nodiscard]] Result<wire::kube::VpcObject<Record>> whole(wire::kube::ApiObject object) {
  TRY(Record record, wire::kube::decode_vpc<Record>(object.value));
  return wire::kube::VpcObject<Record>{std::move(record), std::move(object.meta), std::move(object.document)};
}

}  // namespace

template <class Record>
Result<std::vector<wire::kube::VpcObject<Record>>> VpcObjects<Record>::all(Deadline deadline) {
  const wire::kube::VpcKind& kind = wire::kube::vpc_kind<Record>();
  ListAsked asked;
  TRY(asked.collection, wire::kube::collection_path(kind.resource, kind.name_space));
  asked.of = {kind.resource.api_version(), std::string(kind.kind)};
  std::vector<Object> found;
  ListUse use;
  use.begin = [&] { found.clear(); };
  use.take = [&](const wire::kube::ApiObject& item) -> Result<void> {
    auto record = wire::kube::decode_vpc<Record>(item.value);
    if (record) found.push_back({*std::move(record), item.meta, nullptr});
    const bool must_be_read = std::is_same_v<Record, wire::kube::VpcIpClaimRecord>;
    return record || !must_be_read ? Result<void>() : fail(record.error());
  };
  TRY_VOID(list(api_, asked, kind.resource, deadline, std::move(use)));
  return found;
}

template <class Record>
Result<std::optional<wire::kube::VpcObject<Record>>> VpcObjects<Record>::find(const std::string& name_space,
                                                                              const std::string& name,
                                                                              Deadline deadline) {
  const ApiResource& resource = wire::kube::vpc_kind<Record>().resource;
  TRY(auto object, find_object(api_, resource, name_space, name, deadline,
                               [&](const Answer& answer) { return vpc_error(answer, resource, name); }));
  if (!object) return std::nullopt;
  TRY(Object one, whole<Record>(*std::move(object)));
  return std::optional(std::move(one));
}

template <class Record>
Result<wire::kube::VpcObject<Record>> VpcObjects<Record>::write(const std::optional<Object>& before,
                                                                const std::string& name_space, const std::string& name,
                                                                const Record& record, Deadline deadline) {
  const ApiResource& resource = wire::kube::vpc_kind<Record>().resource;
  Request request;
  request.method = before ? Request::Method::put : Request::Method::post;
  TRY(request.path,
      before ? wire::kube::object_path(resource, name_space, name) : wire::kube::collection_path(resource, name_space));
  request.body = wire::kube::encode_vpc(before, name_space, name, record);
  const Answer answer = api_.call(request, deadline);
  if (answer.outcome != Outcome::done) return fail(vpc_error(answer, resource, name));
  TRY(auto object, wire::kube::decode_object(answer.body));
  return whole<Record>(std::move(object));
}

template <class Record>
Result<void> VpcObjects<Record>::remove(const wire::kube::ApiMeta& seen, Deadline deadline) {
  const ApiResource& resource = wire::kube::vpc_kind<Record>().resource;
  TRY(const std::string path, wire::kube::object_path(resource, seen.name_space, seen.name));
  const std::string options = wire::kube::encode_delete_options({seen.uid, seen.resource_version});
  const Answer answer = api_.call({Request::Method::delete_object, path, options}, deadline);
  if (answer.outcome == Outcome::done || is_absent(answer)) return {};
  return fail(vpc_error(answer, resource, seen.name));
}

template class VpcObjects<wire::kube::IpamdRecord>;
template class VpcObjects<wire::kube::VpcIpClaimRecord>;

Result<std::set<std::string>> node_names(Api& api, Deadline deadline) {
  std::set<std::string> names;
  ListUse use;
  use.begin = [&] { names.clear(); };
  use.take = [&](const wire::kube::ApiObject& item) -> Result<void> {
    names.insert(item.meta.name);
    return {};
  };
  TRY_VOID(list(api, {"/api/v1/nodes", {"v1", "Node", true}}, kVpcNodes, deadline, std::move(use)));
  return names;
}

Result<std::optional<wire::kube::ApiObject>> pod_of_stock(Api& api, const std::string& name_space,
                                                          const std::string& pod, Deadline deadline) {
  return find_object(api, kVpcPods, name_space, pod, deadline,
                     [&](const Answer& answer) { return vpc_error(answer, kVpcPods, pod); });
}

Result<std::vector<core::PodIdentity>> pods_with(Api& api, const net::Address& address, Deadline deadline) {
  std::vector<core::PodIdentity> pods;
  ListUse use;
  use.begin = [&] { pods.clear(); };
  use.take = [&](const wire::kube::ApiObject& item) -> Result<void> {
    const bool is_in_node_network = wire::kube::is_true_in(member_of(item.value, "spec"), "hostNetwork");
    if (!is_in_node_network) pods.push_back({item.meta.name, item.meta.name_space, item.meta.uid});
    return {};
  };
  const std::string select =
      fmt::format("status.podIP={},status.phase!=Succeeded,status.phase!=Failed", address.to_string());
  TRY_VOID(list(api, {"/api/v1/pods", {"v1", "Pod"}, {{}, select}}, kVpcPods, deadline, std::move(use)));
  return pods;
}

Result<void> annotate_pod(Api& api, const std::string& name_space, const std::string& pod, const std::string& uid,
                          const net::Address& address, Deadline deadline) {
  TRY(const std::string path, wire::kube::object_path(kVpcPods, name_space, pod));
  const std::string patch = wire::kube::encode_pod_address_patch(uid, address);
  const Answer answer = api.call({Request::Method::patch, path, patch, "application/merge-patch+json"}, deadline);
  if (answer.outcome == Outcome::done) return {};
  // A UID does not change: the server refuses the patch of another pod as invalid, and names the member.
  if (answer.http_status == kHttpUnprocessable && answer.status.message.find("metadata.uid") != std::string::npos) {
    return fail(ErrorCode::conflict, "pod {}/{}: it is another one by now", echo(name_space), echo(pod));
  }
  return fail(vpc_error(answer, kVpcPods, fmt::format("{}/{}", name_space, pod)));
}

}  // namespace croft::store::kube
