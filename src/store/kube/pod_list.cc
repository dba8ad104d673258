#include "store/kube/pod_list.h"

#include "store/kube/object_list.h"
#include "wire/kube/pod.h"
#include "wire/kube/requests.h"

namespace croft::store::kube {

Result<void> for_each_pod(Api& api, const Clock& clock, const std::function<void()>& begin,
                          const std::function<void(const core::collect::PodFact&)>& take) {
  TRY(const std::string path, wire::kube::collection_path({"", "v1", "pods"}));
  return for_each_object(api, clock, path, "list pods", begin,
                         [&](wire::JsonRef object, const wire::kube::ApiMeta& meta) -> Result<void> {
                           TRY(const auto pod, wire::kube::pod_fact(object, meta));
                           take(pod);
                           return {};
                         });
}

}  // namespace croft::store::kube
