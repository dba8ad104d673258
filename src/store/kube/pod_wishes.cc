#include "store/kube/pod_wishes.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "cni/format/pod_annotations.h"
#include "store/kube/format/requests.h"
#include "store/kube/refusals.h"

namespace croft::store::kube {
namespace {

[[nodiscard]] Result<core::PodWishes> wishes_of(Annotated kind, const Answer& answer, const std::string& name,
                                                const wire::kube::ApiObjectOf& of) {
  if (is_absent(answer)) return core::PodWishes{};
  if (answer.outcome == Answer::Outcome::done) {
    TRY(const auto object, wire::kube::decode_object(answer.body, of));
    return wishes_in(kind, object.value, name);
  }
  Error error = Error(answer.error).in("annotations of " + name);
  if (lacks_right(answer)) {
    error.message +=
        "; allow to get pods and namespaces (deploy/kubernetes/annotations.yaml), or leave ipam.annotations out";
  }
  return fail(std::move(error));
}

}  // namespace

Result<core::PodWishes> wishes_in(Annotated kind, wire::JsonRef object, const std::string& name) {
  core::PodWishes wishes;
  const auto annotations = member_of(member_of(object, "metadata"), "annotations");
  if (!annotations || annotations->is_null()) return wishes;
  const auto read = kind == Annotated::pod ? wire::cni::read_pod_annotations : wire::cni::read_namespace_annotations;
  const auto fault = read(wire::JsonAt{*annotations, nullptr, {}, {}}, wishes);
  if (!fault) return wishes;
  return fail(invalid_argument(
      fmt::format("annotations of {} {}: {}", kind == Annotated::pod ? "pod" : "namespace", name, fault->to_string())));
}

Result<core::AnnotatedWishes> ask_for_wishes(Api& api, const core::PodIdentity& pod, Deadline deadline) {
  std::array<Request, 2> requests;
  TRY(requests[0].path, wire::kube::object_path({"", "v1", "pods"}, pod.namespace_name, pod.name));
  TRY(requests[1].path, wire::kube::object_path({"", "v1", "namespaces"}, {}, pod.namespace_name));
  const auto answers = api.call_all(requests, deadline);
  core::AnnotatedWishes wishes;
  TRY(wishes.pod, wishes_of(Annotated::pod, answers[0], net::echo(fmt::format("{}/{}", pod.namespace_name, pod.name)),
                            {"v1", "Pod", pod.namespace_name, pod.name}));
  TRY(wishes.name_space, wishes_of(Annotated::name_space, answers[1], net::echo(pod.namespace_name),
                                   {"v1", "Namespace", {}, pod.namespace_name}));
  return wishes;
}

}  // namespace croft::store::kube
