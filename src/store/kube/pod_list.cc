#include "store/kube/pod_list.h"

#include <fmt/format.h>

#include "net/echo.h"
#include "store/kube/object_list.h"
#include "wire/kube/pod.h"
#include "wire/kube/requests.h"

namespace croft::store::kube {
namespace {

/// Six times what Kubernetes is made for.
constexpr std::size_t kPodsMax = 1'000'000;

[[nodiscard]] Result<void> list_pods(Api& api, const Clock& clock, const ListLimits& limits,
                                     const std::function<void()>& begin,
                                     const std::function<void(const core::collect::PodFact&)>& take) {
  TRY(const std::string path, wire::kube::collection_path({"", "v1", "pods"}));
  std::size_t pods = 0;
  const auto begin_anew = [&] {
    pods = 0;
    begin();
  };
  const auto take_page = [&](const std::string& body, std::int64_t limit) -> Result<std::string> {
    TRY(wire::kube::PodPage page, wire::kube::decode_pods(body, limit));
    pods += page.pods.size();
    if (pods > kPodsMax) {
      return fail(ErrorCode::corrupt, fmt::format("the API server tells of more than {} pods", kPodsMax));
    }
    for (const auto& pod : page.pods) take(pod);
    return std::move(page.continue_token);
  };
  return for_each_page(api, clock, path, wire::kube::kAcceptPods, "list pods", begin_anew, take_page, limits);
}

}  // namespace

Result<void> for_each_pod(Api& api, const Clock& clock, const std::function<void()>& begin,
                          const std::function<void(const core::collect::PodFact&)>& take) {
  return list_pods(api, clock, {}, begin, take);
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
  return list_pods(api, clock, limits, begin, [&](const core::collect::PodFact& pod) {
    if (pod.node == node) take(pod);
  });
}

}  // namespace croft::store::kube
