#include "store/kube/calico_cluster.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/net/echo.h"
#include "store/format/seal.h"
#include "store/kube/format/own_kinds.h"
#include "store/kube/format/requests.h"
#include "store/kube/refusals.h"

namespace croft::store::kube {
namespace {

using wire::calico::ApiGroup;

constexpr std::string_view kSealAnnotation = "ipam.croft.dev/seal";

bool is_known(const Objects& objects, CalicoReadiness& readiness, std::chrono::nanoseconds age_max) {
  const std::chrono::nanoseconds now = objects.clock().now().since_boot;
  const std::lock_guard lock(readiness.mutex);
  // Who works under a seal looks each time: once that is gone others may write.
  return readiness.worker.empty() && readiness.ready_at && now - *readiness.ready_at < age_max;
}

/// What the older group said counts for as long as it would have counted had it said more.
bool is_to_ask_newer(const Objects& objects, CalicoReadiness& readiness) {
  const std::chrono::nanoseconds now = objects.clock().now().since_boot;
  const std::lock_guard lock(readiness.mutex);
  return readiness.absent_at && now - *readiness.absent_at < kReadyAskedAfter;
}

[[nodiscard]] Result<wire::kube::ApiResource> resource_of_readiness(const Objects& objects) {
  TRY(const Form* form, objects.form_of(Kind::block));
  auto resource = form->resource_of(Kind::block);
  resource.resource = "clusterinformations";
  return resource;
}

[[nodiscard]] Result<Request> request_of_readiness(const Objects& objects) {
  TRY(const auto resource, resource_of_readiness(objects));
  Request request;
  TRY(request.path, wire::kube::object_path(resource, {}, "default"));
  return request;
}

/// An answer that is one object, as bounded as any.
[[nodiscard]] auto parsed(const Answer& answer) {
  return wire::parse_json(answer.body, {.bytes_max = wire::kube::kApiAnswerBytesMax});
}

[[nodiscard]] std::string_view text_of(wire::JsonRef object, std::string_view member) {
  const auto found = member_of(object, member);
  return found && found->kind() == wire::JsonKind::string ? found->text() : std::string_view();
}

/// That there is no such object, or that the kind is not served. The latter, of a group that is not served at all, is
/// said in plain text.
[[nodiscard]] bool is_not_found(const Answer& answer) {
  return answer.outcome == Answer::Outcome::refused && answer.status.code == 404 &&
         (answer.status.reason == "NotFound" || answer.status.message == "404 page not found");
}
[[nodiscard]] bool is_forbidden(const Answer& answer) {
  return answer.outcome == Answer::Outcome::refused && answer.status.code == 403 && answer.status.reason == "Forbidden";
}
/// Of an answer that says nothing of what was asked.
[[nodiscard]] Error unreadable(const Answer& answer) {
  Error error = answer.error.in("ClusterInformation default");
  const bool is_of_others = answer.outcome == Answer::Outcome::refused && answer.status.reason.empty();
  if (is_of_others) error.code = ErrorCode::unavailable;
  return error;
}

/// What the object says; without one nobody is kept from writing.
struct Said {
  bool is_ready = true;
  std::optional<core::Seal> seal;
  std::string resource_version;  ///< empty: there is no object
};

[[nodiscard]] Result<Said> said_in(const Objects& objects, const Answer& answer) {
  Said said;
  const auto document = parsed(answer);
  TRY(const auto resource, resource_of_readiness(objects));
  const bool is_it = document && text_of(document->root(), "kind") == "ClusterInformation" &&
                     text_of(document->root(), "apiVersion") == fmt::format("{}/{}", resource.group, resource.version);
  if (!is_it) {
    return fail(ErrorCode::unavailable,
                "what was answered as Calico's ClusterInformation default is none, so that nobody knows whether its "
                "data may be written: look at what answers for the API server (a proxy or cache before it)");
  }
  const auto spec = member_of(document->root(), "spec");
  const auto ready = spec ? member_of(*spec, "datastoreReady") : std::nullopt;
  said.is_ready = !(ready && ready->kind() == wire::JsonKind::boolean && !ready->boolean());
  const auto meta = member_of(document->root(), "metadata");
  const auto version = meta ? member_of(*meta, "resourceVersion") : std::nullopt;
  if (version) said.resource_version = version->text();
  const auto annotations = meta ? member_of(*meta, "annotations") : std::nullopt;
  const auto text = annotations ? member_of(*annotations, kSealAnnotation) : std::nullopt;
  if (text) {
    auto seal = wire::decode_seal(text->text());
    if (!seal) return fail(seal.error().in(fmt::format("ClusterInformation default, {}", kSealAnnotation)));
    said.seal = *std::move(seal);
  }
  return said;
}

[[nodiscard]] Result<Said> look(Objects& objects, Deadline deadline) {
  TRY(const Request request, request_of_readiness(objects));
  const Answer answer = objects.api().call(request, deadline);
  if (is_not_found(answer)) return Said{};
  if (answer.outcome != Answer::Outcome::done) return fail(unreadable(answer));
  return said_in(objects, answer);
}

/// Asks the newer group, where the older has none any more.
[[nodiscard]] Result<Request> request_of_newer(const Objects& objects) {
  TRY(auto resource, resource_of_readiness(objects));
  const auto newer = wire::calico::crd_kind_of(Kind::block, ApiGroup::v3);
  resource.group = newer.group;
  resource.version = newer.version;
  Request request;
  TRY(request.path, wire::kube::object_path(resource, {}, "default"));
  return request;
}

[[nodiscard]] bool is_in_older_group(const Objects& objects) {
  const auto resource = resource_of_readiness(objects);
  return resource && resource->group == wire::calico::crd_kind_of(Kind::block, ApiGroup::crd_v1).group;
}

[[nodiscard]] Result<void> note_newer(CalicoReadiness& readiness, const Answer& answer) {
  const bool is_there = answer.outcome == Answer::Outcome::done;
  if (!is_there && !is_not_found(answer) && !is_forbidden(answer)) {
    return fail(answer.error.in("ClusterInformation default of projectcalico.org"));
  }
  const std::lock_guard lock(readiness.mutex);
  // A moment later the older one may be there again.
  const auto absent_at = std::exchange(readiness.absent_at, std::nullopt);
  if (is_there) {
    readiness.ready_at.reset();
    return fail(
        ErrorCode::unavailable,
        "Calico's ClusterInformation default is gone from the group that is used here, and so is what said that "
        "nothing may be written there, as when the older group is deleted after a migration to "
        "projectcalico.org/v3: nothing is written until its other kinds are gone too. Where both groups are to stay, "
        "make one in crd.projectcalico.org/v1");
  }
  if (absent_at) readiness.ready_at = absent_at;
  return {};
}

/// Error: nothing may be written. Where it is ready as far as the older group says, and that has none, the newer one
/// has to be asked (absent_at).
[[nodiscard]] Result<void> note_readiness(const Objects& objects, CalicoReadiness& readiness, const Answer& answer) {
  // Neither the object nor its kind has to be there; who may not read it is told so by its first write.
  const bool is_unknown = is_not_found(answer) || is_forbidden(answer);
  Said said;
  if (!is_unknown) {
    if (answer.outcome != Answer::Outcome::done) return fail(unreadable(answer));
    TRY(said, said_in(objects, answer));
  }
  const bool may_have_moved = is_not_found(answer) && is_in_older_group(objects);
  const std::chrono::nanoseconds now = objects.clock().now().since_boot;
  const std::lock_guard lock(readiness.mutex);
  readiness.absent_at.reset();
  if (said.seal || !readiness.worker.empty()) {
    readiness.ready_at.reset();
    TRY_VOID(check_seal(said.seal, readiness.worker));
  } else if (!said.is_ready) {
    readiness.ready_at.reset();
    return fail(ErrorCode::unavailable,
                "Calico's ClusterInformation default says datastoreReady: false, as while Calico is upgraded or its "
                "data is moved; nothing is written until that is over. A migration to projectcalico.org/v3 leaves the "
                "older group so for good: name the new one then (CALICO_API_GROUP, or ?group=projectcalico.org/v3 in "
                "the store's URL)");
  }
  if (may_have_moved) {
    readiness.ready_at.reset();
    readiness.absent_at = now;
    return {};
  }
  readiness.ready_at = now;
  return {};
}

/// The objects of a kind on the first page, by name and version.
struct Listed {
  std::set<std::pair<std::string, std::string>> objects;
  std::set<std::string> names;
};

[[nodiscard]] Result<Request> list_of(Kind kind, ApiGroup group, std::int64_t limit) {
  const auto crd = wire::calico::crd_kind_of(kind, group);
  TRY(const std::string path, wire::kube::collection_path({crd.group, crd.version, crd.plural}));
  wire::kube::ApiListQuery query;
  query.limit = limit;
  Request request;
  request.path = wire::kube::list_path(path, query);
  return request;
}

/// Of whom may not ask, or where nothing is served, there is nothing.
[[nodiscard]] Result<Listed> listed_in(const Answer& answer, Kind kind, ApiGroup group) {
  Listed listed;
  if (answer.outcome == Answer::Outcome::refused && (answer.status.code == 403 || answer.status.code == 404)) {
    return listed;
  }
  if (answer.outcome != Answer::Outcome::done) return fail(answer.error.in("which of Calico's API groups to use"));
  const auto crd = wire::calico::crd_kind_of(kind, group);
  TRY(const auto page,
      wire::kube::decode_list(answer.body, {fmt::format("{}/{}", crd.group, crd.version), std::string(crd.kind)}));
  for (const std::string_view text : page.items) {
    TRY(const auto item, wire::kube::decode_item(text, {}));
    listed.objects.insert({item.meta.name, item.meta.resource_version});
    listed.names.insert(item.meta.name);
  }
  return listed;
}

constexpr std::string_view kNameTheGroup =
    "name the group that counts, on every node and for every program: ?group=projectcalico.org/v3 or "
    "?group=crd.projectcalico.org/v1 in the store's URL, calico_api_group in the network configuration, or "
    "CALICO_API_GROUP";

/// Calico takes v1 then. Most often v3 is a view of it there, by Calico's own API server. Otherwise whoever began
/// before v1 was there works in v3 still, and who begins now would give the same addresses again.
[[nodiscard]] Result<ApiGroup> group_of_both(Api& api, Deadline deadline) {
  constexpr std::int64_t kPoolsMax = 500;
  std::vector<Request> requests(3);
  TRY(requests[0], list_of(Kind::pool, ApiGroup::crd_v1, kPoolsMax));
  TRY(requests[1], list_of(Kind::pool, ApiGroup::v3, kPoolsMax));
  TRY(requests[2], list_of(Kind::block, ApiGroup::v3, 1));
  const auto answers = api.call_all(requests, deadline);
  TRY(const Listed v1, listed_in(answers[0], Kind::pool, ApiGroup::crd_v1));
  TRY(const Listed v3, listed_in(answers[1], Kind::pool, ApiGroup::v3));
  TRY(const Listed blocks, listed_in(answers[2], Kind::block, ApiGroup::v3));
  if (v3.objects.empty()) return ApiGroup::crd_v1;
  if (v1.objects.empty()) {
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("the register's pools ({}, …) are in projectcalico.org/v3, but the kinds of "
                            "crd.projectcalico.org/v1, which count where both are there, are there too and have none: "
                            "delete their definitions, or {}",
                            net::echo(*v3.names.begin()), kNameTheGroup));
  }
  if (blocks.objects.empty() || v1.objects == v3.objects) return ApiGroup::crd_v1;
  return fail(
      ErrorCode::refused_by_configuration,
      fmt::format("Calico's kinds are there in crd.projectcalico.org/v1 and in projectcalico.org/v3, with pools "
                  "of their own in each ({}, … and {}, …) and blocks in the newer: two registers, of which one "
                  "would give addresses of the other; {}",
                  net::echo(*v1.names.begin()), net::echo(*v3.names.begin()), kNameTheGroup));
}

}  // namespace

Result<ApiGroup> discover_calico_group(Api& api, Deadline deadline) {
  Request request;
  request.path = "/apis";
  const Answer answer = api.call(request, deadline);
  if (answer.outcome == Answer::Outcome::not_done) return fail(answer.error);
  // Whoever may not ask takes what most clusters have. What is no answer of the API must not choose the register.
  if (answer.outcome != Answer::Outcome::done) return ApiGroup::crd_v1;
  const auto document = parsed(answer);
  const auto groups = document && text_of(document->root(), "kind") == "APIGroupList"
                          ? member_of(document->root(), "groups")
                          : std::nullopt;
  if (!groups || groups->kind() != wire::JsonKind::array) {
    return fail(ErrorCode::unavailable,
                "what was answered as the API's groups (GET /apis) is none, so that nobody knows which of Calico's "
                "groups has the register: look at what answers for the API server (a proxy or cache before it)");
  }
  bool has_v3 = false, has_v1 = false;
  for (auto group = groups->first_child(); group; group = group->next_sibling()) {
    const auto name = member_of(*group, "name");
    has_v3 |= name && name->text() == "projectcalico.org";
    has_v1 |= name && name->text() == "crd.projectcalico.org";
  }
  if (!has_v3 || !has_v1) return has_v3 ? ApiGroup::v3 : ApiGroup::crd_v1;
  return group_of_both(api, deadline);
}

Result<bool> may_read_own_kinds(Api& api, const OwnDenied& denied, Deadline deadline) {
  const auto* own = wire::kube::own_kind_of(Kind::pool_set);
  TRY(const std::string path, wire::kube::collection_path(own->resource()));
  wire::kube::ApiListQuery query;
  query.limit = 1;
  std::vector<Request> requests(2);
  requests[0].path = fmt::format("/apis/{}/{}", wire::kube::kOwnGroup, wire::kube::kOwnVersion);
  requests[1].path = wire::kube::list_path(path, query);
  const auto answers = api.call_all(requests, deadline);
  if (answers[0].outcome == Answer::Outcome::not_done) return fail(answers[0].error);
  if (is_not_found(answers[0])) return false;
  if (!lacks_right(answers[1])) return true;  // what else is wrong with them the first read says
  denied(answers[1].error);
  return false;
}

std::optional<ReadinessQuestion> readiness_question(const Objects& objects, CalicoReadiness& readiness) {
  if (is_known(objects, readiness, kReadyAskedAfter)) return {};
  const bool of_newer_group = is_to_ask_newer(objects, readiness);
  auto request = of_newer_group ? request_of_newer(objects) : request_of_readiness(objects);
  return request ? std::optional(ReadinessQuestion{*std::move(request), of_newer_group}) : std::nullopt;
}

void take_readiness(const Objects& objects, CalicoReadiness& readiness, const ReadinessQuestion& asked,
                    const Answer& answer) {
  static_cast<void>(asked.of_newer_group ? note_newer(readiness, answer) : note_readiness(objects, readiness, answer));
}

Result<void> check_calico_is_ready(Objects& objects, CalicoReadiness& readiness, Deadline deadline) {
  if (is_known(objects, readiness, kReadyFor)) return {};
  if (!is_to_ask_newer(objects, readiness)) {
    TRY(const Request request, request_of_readiness(objects));
    TRY_VOID(note_readiness(objects, readiness, objects.api().call(request, deadline)));
    if (!is_to_ask_newer(objects, readiness)) return {};
  }
  TRY(const Request request, request_of_newer(objects));
  return note_newer(readiness, objects.api().call(request, deadline));
}

Result<std::optional<StoredSeal>> read_seal(Objects& objects, Deadline deadline) {
  TRY(Said said, look(objects, deadline));
  if (!said.seal) return std::optional<StoredSeal>();
  TRY(const Revision revision, revision_of(said.resource_version));
  return std::optional(StoredSeal{*std::move(said.seal), revision.value});
}

Result<void> change_seal(Objects& objects, const std::optional<StoredSeal>& there,
                         const std::optional<core::Seal>& seal, Deadline deadline) {
  TRY(const Said said, look(objects, deadline));
  TRY(const Revision now,
      said.resource_version.empty() ? Result<Revision>(Revision()) : revision_of(said.resource_version));
  const bool is_as_said = there ? said.seal && now.value == there->revision : !said.seal;
  if (!is_as_said) {
    return fail(ErrorCode::conflict,
                "the register's seal was changed by somebody else; look with `croft migrate status`");
  }
  if (!there && !said.is_ready) {
    return fail(
        ErrorCode::unavailable,
        "Calico's ClusterInformation default says datastoreReady: false: somebody is upgrading Calico or moving "
        "its data; try again when that is over");
  }
  TRY(const auto resource, resource_of_readiness(objects));
  Request request;
  wire::JsonWriter out(wire::JsonWriter::Layout::compact);
  out.begin_object();
  if (said.resource_version.empty()) {
    request.method = Request::Method::post;
    TRY(request.path, wire::kube::collection_path(resource));
    out.key("apiVersion");
    out.text(fmt::format("{}/{}", resource.group, resource.version));
    out.key("kind");
    out.text("ClusterInformation");
  } else {
    request.method = Request::Method::patch;
    request.content_type = "application/merge-patch+json";
    TRY(request.path, wire::kube::object_path(resource, {}, "default"));
  }
  out.key("metadata");
  out.begin_object();
  if (said.resource_version.empty()) {
    out.key("name");
    out.text("default");
  } else {
    out.key("resourceVersion");
    out.text(said.resource_version);
  }
  out.key("annotations");
  out.begin_object();
  out.key(kSealAnnotation);
  if (seal) {
    out.text(wire::encode_seal(*seal));
  } else {
    out.null();
  }
  out.end_object();
  out.end_object();
  out.key("spec");
  out.begin_object();
  out.key("datastoreReady");
  out.boolean(!seal);
  out.end_object();
  out.end_object();
  request.body = std::move(out).take();
  const Answer answer = objects.api().call(request, deadline);
  if (answer.outcome == Answer::Outcome::done) return {};
  const ErrorCode code = answer.error.code;
  if (code == ErrorCode::conflict || code == ErrorCode::already_exists) {
    // Somebody in between may have sent it twice, and the first answer was lost: then what is there is what was sent.
    const auto then = look(objects, deadline);
    if (!then) {
      return fail(ErrorCode::unknown_outcome,
                  fmt::format("{}; whether the seal is as was just written is not known: {}", answer.error.message,
                              then.error().message));
    }
    const bool is_own = seal ? then->seal && wire::encode_seal(*then->seal) == wire::encode_seal(*seal) : !then->seal;
    if (is_own) return {};
  }
  Error error = answer.error.in("ClusterInformation default");
  if (error.code == ErrorCode::not_found) {
    return fail(
        ErrorCode::refused_by_configuration,
        error.message +
            ": the API does not know Calico's kinds; kubectl apply -f deploy/kubernetes/crds-calico.yaml makes them");
  }
  if (error.code == ErrorCode::already_exists) error.code = ErrorCode::conflict;
  return fail(std::move(error));
}

}  // namespace croft::store::kube
