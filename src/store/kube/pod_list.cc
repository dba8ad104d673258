#include "store/kube/pod_list.h"

#include <fmt/format.h>

#include "store/kube/object_list.h"
#include "wire/kube/pod.h"
#include "wire/kube/requests.h"

namespace croft::store::kube {
namespace {

/// Six times what Kubernetes is made for.
constexpr std::size_t kPodsMax = 1'000'000;

}  // namespace

Result<void> for_each_pod(Api& api, const Clock& clock, const std::function<void()>& begin,
                          const std::function<void(const core::collect::PodFact&)>& take) {
  TRY(const std::string path, wire::kube::collection_path({"", "v1", "pods"}));
  std::size_t pods = 0;
  const auto begin_anew = [&] {
    pods = 0;
    begin();
  };
  return for_each_page(api, clock, path, wire::kube::kAcceptPods, "list pods", begin_anew,
                       [&](const std::string& body) -> Result<std::string> {
                         TRY(wire::kube::PodPage page, wire::kube::decode_pods(body));
                         pods += page.pods.size();
                         if (pods > kPodsMax) {
                           return fail(ErrorCode::corrupt,
                                       fmt::format("the API server tells of more than {} pods", kPodsMax));
                         }
                         for (const auto& pod : page.pods) take(pod);
                         return std::move(page.continue_token);
                       });
}

}  // namespace croft::store::kube
