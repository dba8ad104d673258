#include "store/kube/vpc_objects.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "store/kube/format/api.h"
#include "store/kube/object_list.h"

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
  const std::string what =
      name.empty() ? full_name(resource) : fmt::format("{} {}", full_name(resource), net::echo(name));
  Error error = Error(answer.error).in(what);
  if (lacks_right(answer)) {
    error.message += "; kubectl apply -f deploy/kubernetes/cni-vpc-ipamd.yml allows it";
  } else if (answer.http_status == 404 && !resource.group.empty() && answer.status.name.empty()) {
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
  asked.of = {fmt::format("{}/{}", kind.resource.group, kind.resource.version), std::string(kind.kind)};
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
    const auto host_network = member_of(member_of(item.value, "spec"), "hostNetwork");
    const bool is_in_node_network = host_network && host_network->boolean();
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
    return fail(ErrorCode::conflict,
                fmt::format("pod {}/{}: it is another one by now", net::echo(name_space), net::echo(pod)));
  }
  return fail(vpc_error(answer, kVpcPods, fmt::format("{}/{}", name_space, pod)));
}

}  // namespace croft::store::kube
