#include "store/kube/calico_cluster.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "store/format/pause.h"
#include "store/kube/format/own_kinds.h"
#include "store/kube/format/requests.h"

namespace croft::store::kube {
namespace {

using wire::calico::ApiGroup;

constexpr std::string_view kPauseAnnotation = "ipam.croft.dev/pause";
constexpr std::string_view kInformation = "ClusterInformation default";

/// In the group that is used here, or in the newer one.
[[nodiscard]] wire::kube::ApiResource informations(const Objects& objects, bool of_newer_group = false) {
  const auto newer = wire::calico::crd_kind_of(Kind::block, ApiGroup::v3);
  wire::kube::ApiResource resource{newer.group, newer.version, {}};
  if (!of_newer_group) resource = objects.form_of(Kind::block).value()->resource_of(Kind::block);
  resource.resource = "clusterinformations";
  return resource;
}

[[nodiscard]] std::string path_of(const wire::kube::ApiResource& resource) {
  return wire::kube::object_path(resource, {}, "default").value();
}

/// There is no such object, or the kind is not served.
[[nodiscard]] bool is_not_found(const Answer& answer) { return is_absent(answer) || is_unknown(answer); }

/// The object's statement; without one, writes are open to all.
struct Said {
  bool is_ready = true;
  std::optional<core::Pause> pause;
  std::string resource_version;  ///< empty: there is no object
};

[[nodiscard]] Result<Said> said_in(const Answer& answer) {
  if (is_not_found(answer)) return Said{};
  if (answer.outcome != Answer::Outcome::done) return fail(Error(answer.error).in(kInformation));
  const auto object = wire::kube::decode_object(answer.body);
  if (!object) return fail(ErrorCode::unavailable, Error(object.error()).in(kInformation).message);
  Said said;
  said.resource_version = object->meta.resource_version;
  const auto ready = member_of(member_of(object->value, "spec"), "datastoreReady");
  said.is_ready = !(ready && ready->kind() == wire::JsonKind::boolean && !ready->boolean());
  const auto annotations = member_of(member_of(object->value, "metadata"), "annotations");
  if (const auto text = member_of(annotations, kPauseAnnotation)) {
    auto pause = wire::decode_pause(text->text());
    if (!pause) return fail(pause.error().in(fmt::format("{}, {}", kInformation, kPauseAnnotation)));
    said.pause = *std::move(pause);
  }
  return said;
}

[[nodiscard]] Result<Said> look(Objects& objects, Deadline deadline) {
  Request request;
  request.path = path_of(informations(objects));
  return said_in(objects.api().call(request, deadline));
}

[[nodiscard]] Result<void> note_newer(CalicoReadiness& readiness, const Answer& answer) {
  const bool is_there = answer.outcome == Answer::Outcome::done;
  if (!is_there && !is_not_found(answer) && !lacks_right(answer)) return fail(Error(answer.error).in(kInformation));
  const std::lock_guard lock(readiness.mutex);
  // A moment later the older one may be there again.
  const auto absent_at = std::exchange(readiness.absent_at, std::nullopt);
  if (!is_there) {
    if (absent_at) readiness.ready_at = absent_at;
    return {};
  }
  return fail(
      ErrorCode::unavailable,
      "Calico's ClusterInformation default is gone from crd.projectcalico.org/v1 and is there in "
      "projectcalico.org/v3, as when the older group is deleted after a migration: nothing is written until its "
      "other kinds are gone too. Where both groups are to stay, make one in crd.projectcalico.org/v1");
}

}  // namespace

Result<ApiGroup> discover_calico_group(Api& api, Deadline deadline) {
  Request request;
  request.path = "/apis";
  const Answer answer = api.call(request, deadline);
  // An account that may not ask takes what most clusters have. An answer that is not the API's must not choose the
  // register, nor must a server that has no time.
  if (lacks_right(answer) || is_not_found(answer)) return ApiGroup::crd_v1;
  if (answer.outcome != Answer::Outcome::done) return fail(answer.error);
  const auto document = wire::parse_json(answer.body, {.bytes_max = wire::kube::kApiAnswerBytesMax});
  const auto groups = document ? member_of(document->root(), "groups") : std::nullopt;
  if (!groups || groups->kind() != wire::JsonKind::array) {
    return fail(ErrorCode::unavailable,
                "what was answered as the API's groups (GET /apis) is none, so that nobody knows which of Calico's "
                "groups has the register: look at what answers for the API server (a proxy or cache before it)");
  }
  bool has_v3 = false, has_v1 = false;
  for (auto group = groups->first_child(); group; group = group->next_sibling()) {
    const auto name = member_of(group, "name");
    has_v3 |= name && name->text() == "projectcalico.org";
    has_v1 |= name && name->text() == "crd.projectcalico.org";
  }
  return has_v3 && !has_v1 ? ApiGroup::v3 : ApiGroup::crd_v1;
}

Result<bool> may_read_own_kinds(Api& api, const OwnDenied& denied, Deadline deadline) {
  TRY(const std::string path, wire::kube::collection_path(wire::kube::own_kind_of(Kind::pool_set)->resource()));
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

std::optional<ReadinessQuestion> readiness_question(const Objects& objects, CalicoReadiness& readiness,
                                                    std::chrono::nanoseconds age_max) {
  const std::chrono::nanoseconds now = objects.clock().now().since_boot;
  ReadinessQuestion question;
  {
    const std::lock_guard lock(readiness.mutex);
    if (readiness.is_filling) return {};
    if (readiness.ready_at && now - *readiness.ready_at < age_max) return {};
    // The older group's answer counts for as long as it would have counted had it said more.
    question.of_newer_group = readiness.absent_at && now - *readiness.absent_at < kReadyAskedAfter;
  }
  question.request.path = path_of(informations(objects, question.of_newer_group));
  return question;
}

Result<void> take_readiness(const Objects& objects, CalicoReadiness& readiness, const ReadinessQuestion& asked,
                            const Answer& answer) {
  if (asked.of_newer_group) return note_newer(readiness, answer);
  const auto resource = informations(objects);
  Said said;
  // A program that may not read it is told so by its first write.
  if (!lacks_right(answer)) {
    TRY(said, said_in(answer));
  }
  const std::chrono::nanoseconds now = objects.clock().now().since_boot;
  const std::lock_guard lock(readiness.mutex);
  readiness.absent_at.reset();
  readiness.ready_at.reset();
  if (said.pause) return fail(paused(*said.pause));
  if (!said.is_ready) {
    return fail(ErrorCode::unavailable,
                "Calico's ClusterInformation default says datastoreReady: false, as while Calico is upgraded or its "
                "data is moved; nothing is written until that is over. A migration to projectcalico.org/v3 leaves the "
                "older group so for good: name the new one then (CALICO_API_GROUP, or ?group=projectcalico.org/v3 in "
                "the store's URL)");
  }
  const bool is_older = resource.group == wire::calico::crd_kind_of(Kind::block, ApiGroup::crd_v1).group;
  (is_older && is_not_found(answer) ? readiness.absent_at : readiness.ready_at) = now;
  return {};
}

Result<void> check_calico_is_ready(Objects& objects, CalicoReadiness& readiness, Deadline deadline) {
  bool asked_newer = false;
  while (!asked_newer) {
    const auto question = readiness_question(objects, readiness, kReadyFor);
    if (!question) return {};
    TRY_VOID(take_readiness(objects, readiness, *question, objects.api().call(question->request, deadline)));
    asked_newer = question->of_newer_group;
    const std::lock_guard lock(readiness.mutex);
    if (!readiness.absent_at) return {};
  }
  return {};
}

Result<std::optional<StoredPause>> read_pause(Objects& objects, Deadline deadline) {
  TRY(Said said, look(objects, deadline));
  if (!said.pause) return std::optional<StoredPause>();
  TRY(const Revision revision, revision_of(said.resource_version));
  return std::optional(StoredPause{*std::move(said.pause), revision.value});
}

Result<void> change_pause(Objects& objects, const std::optional<StoredPause>& there,
                          const std::optional<core::Pause>& next, Deadline deadline) {
  TRY(const Said said, look(objects, deadline));
  const bool is_new = said.resource_version.empty();
  TRY(const Revision now, is_new ? Result<Revision>(Revision()) : revision_of(said.resource_version));
  const bool is_as_said = there ? said.pause && now.value == there->revision : !said.pause;
  if (!is_as_said) {
    return fail(ErrorCode::conflict, "the register's pause was changed by somebody else");
  }
  if (!there && !said.is_ready) {
    return fail(
        ErrorCode::unavailable,
        "Calico's ClusterInformation default says datastoreReady: false: somebody is upgrading Calico or moving "
        "its data; try again when that is over");
  }
  const auto resource = informations(objects);
  wire::JsonWriter text(wire::JsonWriter::Layout::compact);
  next ? text.text(wire::encode_pause(*next)) : text.null();
  Request request;
  request.method = is_new ? Request::Method::post : Request::Method::patch;
  if (!is_new) request.content_type = "application/merge-patch+json";
  TRY(request.path, is_new ? wire::kube::collection_path(resource) : path_of(resource));
  request.body = fmt::format(
      R"({{"apiVersion":"{}/{}","kind":"ClusterInformation","metadata":{{"name":"default",{}"annotations":{{"{}":{}}}}},)"
      R"("spec":{{"datastoreReady":{}}}}})",
      resource.group, resource.version,
      is_new ? std::string() : fmt::format(R"("resourceVersion":"{}",)", said.resource_version), kPauseAnnotation,
      std::move(text).take(), !next);
  const Answer answer = objects.api().call(request, deadline);
  if (answer.outcome == Answer::Outcome::done) return {};
  Error error = Error(answer.error).in(kInformation);
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
