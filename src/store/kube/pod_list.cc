#include "store/kube/pod_list.h"

#include <fmt/format.h>

#include "base/net/echo.h"
#include "store/kube/form.h"
#include "store/kube/format/pod.h"
#include "store/kube/format/requests.h"
#include "store/kube/missing_right.h"
#include "store/kube/object_list.h"
#include "store/kube/objects.h"

namespace croft::store::kube {
namespace {

/// Six times what Kubernetes is made for.
constexpr std::size_t kPodsMax = 1'000'000;

[[nodiscard]] Result<std::string> list_pods(Api& api, const Clock& clock, const ListLimits& limits,
                                            const std::function<void()>& begin,
                                            const std::function<void(const core::collect::PodFact&)>& take) {
  TRY(const std::string path, wire::kube::collection_path({"", "v1", "pods"}));
  std::size_t pods = 0;
  const auto begin_anew = [&] {
    pods = 0;
    begin();
  };
  const auto take_page = [&](const std::string& body, std::int64_t limit) -> Result<ListPage> {
    TRY(wire::kube::PodPage page, wire::kube::decode_pods(body, limit));
    pods += page.pods.size();
    if (pods > kPodsMax) {
      return fail(ErrorCode::corrupt, fmt::format("the API server tells of more than {} pods", kPodsMax));
    }
    ListPage said{std::move(page.resource_version), std::move(page.continue_token), {}};
    said.objects.reserve(page.pods.size());
    for (const auto& pod : page.pods) {
      said.objects.push_back(name_in_list(pod.namespace_name, pod.name));
      take(pod);
    }
    return said;
  };
  return for_each_page(api, clock, path, wire::kube::kAcceptPods, "list pods", begin_anew, take_page, limits);
}

}  // namespace

Result<std::optional<std::uint64_t>> for_each_pod(Api& api, const Clock& clock, const std::function<void()>& begin,
                                                  const std::function<void(const core::collect::PodFact&)>& take) {
  TRY(const std::string resource_version, list_pods(api, clock, {}, begin, take));
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
  request.answer_bytes_max = wire::kube::kApiObjectBytesMax;
  const Answer answer = api.call(request, deadline);
  // An API server names what it has not; who does not may know nothing of pods.
  if (is_absent(answer) && answer.status.name == name) return std::nullopt;
  if (answer.outcome != Answer::Outcome::done) {
    Error error = Error(answer.error).in(kWhat);
    if (lacks_right(answer)) {
      error.message += "; " + std::string(ListLimits().remedy) + ": `get` and `list` of pods";
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
  ListLimits limits;
  limits.select.field_selector = "spec.nodeName=" + node;
  limits.deadline = deadline;
  limits.remedy = "the agent of this node needs to list pods, in all namespaces";
  TRY_VOID(list_pods(api, clock, limits, begin, [&](const core::collect::PodFact& pod) {
    if (pod.node == node) take(pod);
  }));
  return {};
}

}  // namespace croft::store::kube
