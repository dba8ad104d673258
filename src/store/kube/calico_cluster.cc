#include "store/kube/calico_cluster.h"

#include <utility>

namespace croft::store::kube {
namespace {

using wire::calico::ApiGroup;

constexpr std::chrono::seconds kReadyFor{10};

bool is_known(const Objects& objects, CalicoReadiness& readiness, std::chrono::nanoseconds age_max) {
  const std::chrono::nanoseconds now = objects.clock().now().since_boot;
  const std::lock_guard lock(readiness.mutex);
  return readiness.ready_at && now - *readiness.ready_at < age_max;
}

[[nodiscard]] Result<Request> request_of_readiness(const Objects& objects) {
  TRY(const Form* form, objects.form_of(Kind::block));
  auto resource = form->resource_of(Kind::block);
  resource.resource = "clusterinformations";
  Request request;
  TRY(request.path, wire::kube::object_path(resource, {}, "default"));
  return request;
}

[[nodiscard]] Result<void> note_readiness(const Objects& objects, CalicoReadiness& readiness, const Answer& answer) {
  // Neither the object nor its kind has to be there; who may not read it is told so by its first write.
  const bool is_unknown =
      answer.outcome == Answer::Outcome::refused && (answer.status.code == 404 || answer.status.code == 403);
  if (!is_unknown) {
    if (answer.outcome != Answer::Outcome::done) return fail(answer.error);
    const auto document = wire::parse_json(answer.body, {.bytes_max = wire::kube::kApiObjectBytesMax});
    const auto spec = document ? member_of(document->root(), "spec") : std::nullopt;
    const auto ready = spec ? member_of(*spec, "datastoreReady") : std::nullopt;
    if (ready && ready->kind() == wire::JsonKind::boolean && !ready->boolean()) {
      const std::lock_guard lock(readiness.mutex);
      readiness.ready_at.reset();
      return fail(
          ErrorCode::unavailable,
          "Calico's ClusterInformation default says datastoreReady: false, as while Calico is upgraded or its "
          "data is moved; nothing is written until that is over. A migration to projectcalico.org/v3 leaves the "
          "older group so for good: name the new one then (CALICO_API_GROUP, or ?group=projectcalico.org/v3 in "
          "the store's URL)");
    }
  }
  const std::lock_guard lock(readiness.mutex);
  readiness.ready_at = objects.clock().now().since_boot;
  return {};
}

}  // namespace

Result<ApiGroup> discover_calico_group(Api& api, Deadline deadline) {
  Request request;
  request.path = "/apis";
  const Answer answer = api.call(request, deadline);
  if (answer.outcome == Answer::Outcome::not_done) return fail(answer.error);
  if (answer.outcome != Answer::Outcome::done) return ApiGroup::crd_v1;
  const auto document = wire::parse_json(answer.body, {.bytes_max = wire::kube::kApiListBytesMax});
  if (!document) return ApiGroup::crd_v1;
  bool has_v3 = false, has_v1 = false;
  const auto groups = member_of(document->root(), "groups");
  for (auto group = groups ? groups->first_child() : std::nullopt; group; group = group->next_sibling()) {
    const auto name = member_of(*group, "name");
    has_v3 |= name && name->text() == "projectcalico.org";
    has_v1 |= name && name->text() == "crd.projectcalico.org";
  }
  return has_v3 && !has_v1 ? ApiGroup::v3 : ApiGroup::crd_v1;
}

std::optional<Request> readiness_request(const Objects& objects, CalicoReadiness& readiness) {
  if (is_known(objects, readiness, kReadyFor / 2)) return {};
  auto request = request_of_readiness(objects);
  return request ? std::optional(*std::move(request)) : std::nullopt;
}

void take_readiness(const Objects& objects, CalicoReadiness& readiness, const Answer& answer) {
  static_cast<void>(note_readiness(objects, readiness, answer));
}

Result<void> check_calico_is_ready(Objects& objects, CalicoReadiness& readiness, Deadline deadline) {
  if (is_known(objects, readiness, kReadyFor)) return {};
  TRY(const Request request, request_of_readiness(objects));
  return note_readiness(objects, readiness, objects.api().call(request, deadline));
}

}  // namespace croft::store::kube
