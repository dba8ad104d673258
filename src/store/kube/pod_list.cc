#include "store/kube/pod_list.h"

#include <fmt/format.h>

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
  // A text that can be no name is no pod's.
  if (!wire::kube::is_path_segment(namespace_name) || !wire::kube::is_path_segment(name)) return std::nullopt;
  TRY(const auto object,
      find_object(api, {"", "v1", "pods"}, {"v1", "Pod", namespace_name, name}, deadline, [](const Answer& answer) {
        Error error = Error(answer.error).in("get a pod");
        if (!lacks_right(answer)) return error;
        error.message += fmt::format("; {}: `get` and `list` of pods", ObjectUse().remedy);
        return error;
      }));
  if (!object) return std::nullopt;
  TRY(auto pod, wire::kube::pod_fact(object->value, object->meta));
  return std::optional(std::move(pod));
}

Result<void> for_each_pod_of_node(Api& api, const Clock& clock, const std::string& node, Deadline deadline,
                                  const std::function<void()>& begin,
                                  const std::function<void(const core::collect::PodFact&)>& take) {
  ObjectUse use;
  use.begin = begin;
  use.deadline = deadline;
  use.remedy = "the agent of this node needs to list pods, in all namespaces";
  TRY_VOID(list_pods(api, clock, {{}, "spec.nodeName=" + node}, use, take));
  return {};
}

}  // namespace croft::store::kube
