#include "store/kube/pod_list.h"

#include <fmt/format.h>

#include "base/net/echo.h"
#include "store/kube/form.h"
#include "store/kube/format/pod.h"
#include "store/kube/format/requests.h"
#include "store/kube/object_list.h"
#include "store/kube/refusals.h"

namespace croft::store::kube {
namespace {

[[nodiscard]] Result<std::string> list_pods(Api& api, const Clock& clock, const wire::kube::ApiSelection& select,
                                            ObjectUse use,
                                            const std::function<void(const core::collect::PodFact&)>& take) {
  ListAsked asked{"/api/v1/pods", wire::kube::list_of_pods(), select};
  use.what = "list pods";
  use.take = [&](wire::JsonRef object, const wire::kube::ApiMeta& meta) -> Result<void> {
    TRY(const auto pod, wire::kube::pod_fact(object, meta));
    take(pod);
    return {};
  };
  return for_each_object(api, clock, asked, use);
}

}  // namespace

Result<std::optional<std::uint64_t>> for_each_pod(Api& api, const Clock& clock, const std::function<void()>& begin,
                                                  const std::function<void(const core::collect::PodFact&)>& take) {
  ObjectUse use;
  use.begin = begin;
  TRY(const std::string resource_version, list_pods(api, clock, {}, use, take));
  const auto revision = revision_of(resource_version);
  return revision ? std::optional(revision->value) : std::nullopt;
}

Result<std::optional<core::collect::PodFact>> find_pod(Api& api, const std::string& namespace_name,
                                                       const std::string& name, Deadline deadline) {
  constexpr std::string_view kWhat = "get a pod";
  // What can be no name is no pod's.
  if (!wire::kube::is_path_segment(namespace_name) || !wire::kube::is_path_segment(name)) return std::nullopt;
  Request request;
  TRY(request.path, wire::kube::object_path({"", "v1", "pods"}, namespace_name, name));
  const Answer answer = api.call(request, deadline);
  // An API server names what it has not; who does not may know nothing of pods.
  if (is_absent(answer) && answer.status.name == name) return std::nullopt;
  if (answer.outcome != Answer::Outcome::done) {
    Error error = Error(answer.error).in(kWhat);
    if (lacks_right(answer)) {
      error.message += "; " + std::string(ObjectUse().remedy) + ": `get` and `list` of pods";
    }
    return fail(std::move(error));
  }
  TRY(const auto object, wire::kube::decode_object(answer.body, {"v1", "Pod", namespace_name, name}));
  TRY(auto pod, wire::kube::pod_fact(object.value, object.meta));
  return std::optional(std::move(pod));
}

Result<void> for_each_pod_of_node(Api& api, const Clock& clock, const std::string& node, Deadline deadline,
                                  const std::function<void()>& begin,
                                  const std::function<void(const core::collect::PodFact&)>& take) {
  // What a selector is made of would be no name.
  const bool is_name = wire::kube::is_path_segment(node) && node.find_first_of(",=!\\") == std::string::npos;
  if (!is_name) {
    return fail(invalid_argument(fmt::format("{} can be no node's name; set the name of this node", net::echo(node))));
  }
  ObjectUse use;
  use.begin = begin;
  use.deadline = deadline;
  use.remedy = "the agent of this node needs to list pods, in all namespaces";
  TRY_VOID(list_pods(api, clock, {{}, "spec.nodeName=" + node}, use, take));
  return {};
}

}  // namespace croft::store::kube
