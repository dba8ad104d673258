#include "store/kube/vpc_objects.h"

#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "store/kube/format/requests.h"
#include "store/kube/object_list.h"
#include "store/kube/refusals.h"

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

struct Place {
  const ApiResource& resource;
  std::string_view name_space, name;
};

[[nodiscard]] Result<std::optional<std::string>> read_one(Api& api, const Place& place, Deadline deadline) {
  Request request;
  TRY(request.path, wire::kube::object_path(place.resource, place.name_space, place.name));
  Answer answer = api.call(request, deadline);
  if (is_absent(answer)) return std::optional<std::string>();
  if (answer.outcome != Outcome::done) return fail(vpc_error(answer, place.resource, place.name));
  return std::optional(std::move(answer.body));
}

[[nodiscard]] Result<std::string> write_one(Api& api, Request::Method method, const Place& place, std::string body,
                                            Deadline deadline) {
  Request request;
  request.method = method;
  request.body = std::move(body);
  if (method == Request::Method::post) {
    TRY(request.path, wire::kube::collection_path(place.resource, place.name_space));
  } else {
    TRY(request.path, wire::kube::object_path(place.resource, place.name_space, place.name));
  }
  Answer answer = api.call(request, deadline);
  if (answer.outcome != Outcome::done) return fail(vpc_error(answer, place.resource, place.name));
  return std::move(answer.body);
}

/// What came of a write that was refused because something else is there by now. That may be what was just written:
/// somebody between us and the API server sent the request twice, and the first answer was lost. So it is looked at;
/// what is there with all that was sent, under the UID that was changed (empty: made), is the success it was.
template <class Record, class Look>
[[nodiscard]] auto settled(const Error& refusal, const Record& record, const std::string& uid, Look look)
    -> Result<typename decltype(look())::value_type::value_type> {
  if (refusal.code != ErrorCode::conflict && refusal.code != ErrorCode::already_exists) return fail(refusal);
  auto found = look();
  if (!found) {
    return fail(ErrorCode::unknown_outcome, fmt::format("{}; whether that is what was just written is not known: {}",
                                                        refusal.message, found.error().message));
  }
  const bool is_own = *found && (*found)->record == record && (uid.empty() || (*found)->meta.uid == uid);
  if (!is_own) return fail(refusal);
  return **std::move(found);
}

}  // namespace

Result<void> VpcObjects::each(const ApiResource& resource, std::string_view kind, const std::string& name_space,
                              const std::function<Result<void>(const wire::kube::ApiObject&)>& take,
                              const std::function<void()>& begin, Deadline deadline) {
  const bool is_node = kind == "Node";
  ListAsked asked;
  TRY(asked.collection, wire::kube::collection_path(resource, name_space));
  asked.of = {
      resource.group.empty() ? std::string(resource.version) : fmt::format("{}/{}", resource.group, resource.version),
      std::string(kind), !is_node, is_node};
  ListUse use;
  use.begin = begin;
  use.until = [&] { return deadline; };
  use.error_of = [&](const Answer& answer) { return vpc_error(answer, resource, {}); };
  use.take = [&](const wire::kube::ApiListPage& page) -> Result<bool> {
    for (const std::string_view item : page.items) {
      TRY(const auto object, wire::kube::decode_item(item, asked.of));
      TRY_VOID(take(object));
    }
    return true;
  };
  TRY_VOID(read_list(api_, asked, use));
  return {};
}

Result<std::vector<VpcObjects::NamedIpamd>> VpcObjects::ipamds(Deadline deadline) {
  std::vector<NamedIpamd> all;
  TRY_VOID(each(
      wire::kube::kIpamds, "Ipamd", std::string(wire::kube::kIpamdNamespace),
      [&](const wire::kube::ApiObject& item) -> Result<void> {
        auto record = wire::kube::decode_ipamd_record(item.value);
        if (record) all.push_back({item.meta, *std::move(record)});
        return {};
      },
      [&] { all.clear(); }, deadline));
  return all;
}

Result<std::optional<wire::kube::Ipamd>> VpcObjects::ipamd(const std::string& name, Deadline deadline) {
  TRY(auto body, read_one(api_, {wire::kube::kIpamds, wire::kube::kIpamdNamespace, name}, deadline));
  if (!body) return std::optional<wire::kube::Ipamd>();
  TRY(wire::kube::Ipamd one, wire::kube::decode_ipamd(*std::move(body), name));
  return std::optional(std::move(one));
}

Result<wire::kube::Ipamd> VpcObjects::create(const std::string& name, const wire::kube::IpamdRecord& record,
                                             Deadline deadline) {
  const auto written = write_one(api_, Request::Method::post, {wire::kube::kIpamds, wire::kube::kIpamdNamespace, name},
                                 wire::kube::encode_new(name, record), deadline);
  if (written) return wire::kube::decode_ipamd(*written, name);
  return settled(written.error(), record, {}, [&] { return ipamd(name, deadline); });
}

Result<wire::kube::Ipamd> VpcObjects::update(const wire::kube::Ipamd& before, const wire::kube::IpamdRecord& record,
                                             Deadline deadline) {
  TRY(std::string changed, wire::kube::encode_changed(before, record));
  const auto written =
      write_one(api_, Request::Method::put, {wire::kube::kIpamds, wire::kube::kIpamdNamespace, before.meta.name},
                std::move(changed), deadline);
  if (written) return wire::kube::decode_ipamd(*written, before.meta.name);
  return settled(written.error(), record, before.meta.uid, [&] { return ipamd(before.meta.name, deadline); });
}

Result<void> VpcObjects::remove_ipamd(const wire::kube::ApiMeta& seen, Deadline deadline) {
  Request request;
  request.method = Request::Method::delete_object;
  TRY(request.path, wire::kube::object_path(wire::kube::kIpamds, wire::kube::kIpamdNamespace, seen.name));
  request.body = wire::kube::encode_delete_options({seen.uid, seen.resource_version});
  const Answer answer = api_.call(request, deadline);
  if (answer.outcome == Outcome::done || is_absent(answer)) return {};
  return fail(vpc_error(answer, wire::kube::kIpamds, seen.name));
}

Result<std::set<std::string>> VpcObjects::node_names(Deadline deadline) {
  std::set<std::string> names;
  TRY_VOID(each(
      kVpcNodes, "Node", {},
      [&](const wire::kube::ApiObject& item) -> Result<void> {
        names.insert(item.meta.name);
        return {};
      },
      [&] { names.clear(); }, deadline));
  return names;
}

Result<std::vector<VpcObjects::NamedClaim>> VpcObjects::claims(const std::string& name_space, Deadline deadline) {
  std::vector<NamedClaim> all;
  TRY_VOID(each(
      wire::kube::kVpcIpClaims, "VpcIpClaim", name_space,
      [&](const wire::kube::ApiObject& item) -> Result<void> {
        TRY(wire::kube::VpcIpClaimRecord record, wire::kube::decode_vpc_ip_claim_record(item.value));
        all.push_back({item.meta, std::move(record)});
        return {};
      },
      [&] { all.clear(); }, deadline));
  return all;
}

Result<std::optional<wire::kube::VpcIpClaim>> VpcObjects::claim(const std::string& name_space, const std::string& pod,
                                                                Deadline deadline) {
  TRY(auto body, read_one(api_, {wire::kube::kVpcIpClaims, name_space, pod}, deadline));
  if (!body) return std::optional<wire::kube::VpcIpClaim>();
  TRY(wire::kube::VpcIpClaim one, wire::kube::decode_vpc_ip_claim(*std::move(body), name_space, pod));
  return std::optional(std::move(one));
}

Result<wire::kube::VpcIpClaim> VpcObjects::create(const std::string& name_space, const std::string& pod,
                                                  const wire::kube::VpcIpClaimRecord& record, Deadline deadline) {
  const auto written = write_one(api_, Request::Method::post, {wire::kube::kVpcIpClaims, name_space, pod},
                                 wire::kube::encode_new(name_space, pod, record), deadline);
  if (written) return wire::kube::decode_vpc_ip_claim(*written, name_space, pod);
  return settled(written.error(), record, {}, [&] { return claim(name_space, pod, deadline); });
}

Result<wire::kube::VpcIpClaim> VpcObjects::update(const wire::kube::VpcIpClaim& before,
                                                  const wire::kube::VpcIpClaimRecord& record, Deadline deadline) {
  TRY(std::string changed, wire::kube::encode_changed(before, record));
  const std::string& name_space = before.meta.name_space;
  const std::string& pod = before.meta.name;
  const auto written =
      write_one(api_, Request::Method::put, {wire::kube::kVpcIpClaims, name_space, pod}, std::move(changed), deadline);
  if (written) return wire::kube::decode_vpc_ip_claim(*written, name_space, pod);
  return settled(written.error(), record, before.meta.uid, [&] { return claim(name_space, pod, deadline); });
}

Result<std::optional<wire::kube::NotedPod>> VpcObjects::pod(const std::string& name_space, const std::string& pod,
                                                            Deadline deadline) {
  TRY(const auto body, read_one(api_, {kVpcPods, name_space, pod}, deadline));
  if (!body) return std::optional<wire::kube::NotedPod>();
  TRY(wire::kube::NotedPod noted, wire::kube::decode_noted_pod(*body, name_space, pod));
  return std::optional(std::move(noted));
}

Result<void> VpcObjects::annotate_pod(const std::string& name_space, const std::string& pod, const std::string& uid,
                                      const std::vector<net::Address>& addresses, Deadline deadline) {
  Request request;
  request.method = Request::Method::patch;
  request.content_type = "application/merge-patch+json";
  TRY(request.path, wire::kube::object_path(kVpcPods, name_space, pod));
  request.body = wire::kube::encode_pod_addresses_patch(uid, addresses);
  const Answer answer = api_.call(request, deadline);
  if (answer.outcome == Outcome::done) return {};
  // A UID does not change: the server refuses the patch of another pod as invalid.
  if (answer.http_status == kHttpUnprocessable) {
    for (const auto& cause : answer.status.causes) {
      if (cause.field != "metadata.uid") continue;
      return fail(ErrorCode::conflict,
                  fmt::format("pod {}/{}: it is another one by now", net::echo(name_space), net::echo(pod)));
    }
  }
  return fail(vpc_error(answer, kVpcPods, fmt::format("{}/{}", name_space, pod)));
}

}  // namespace croft::store::kube
