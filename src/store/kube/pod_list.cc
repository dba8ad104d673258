#include "store/kube/pod_list.h"

#include "store/kube/object_list.h"
#include "wire/kube/pod.h"
#include "wire/kube/requests.h"

namespace croft::store::kube {

Result<void> for_each_pod(Api& api, const Clock& clock, const std::function<void()>& begin,
                          const std::function<void(const core::collect::PodFact&)>& take) {
  TRY(const std::string path, wire::kube::collection_path({"", "v1", "pods"}));
  return for_each_page(api, clock, path, wire::kube::kAcceptPods, "list pods", begin,
                       [&](const std::string& body) -> Result<std::string> {
                         TRY(wire::kube::PodPage page, wire::kube::decode_pods(body));
                         for (const auto& pod : page.pods) take(pod);
                         return std::move(page.continue_token);
                       });
}

}  // namespace croft::store::kube
