#include "store/kube/pod_list.h"

#include <utility>

#include "wire/kube/pod.h"
#include "wire/kube/requests.h"

namespace croft::store::kube {
namespace {

using Outcome = Answer::Outcome;

constexpr std::int64_t kPagePods = 500;
constexpr int kListTries = 5;
/// A page each: a large cluster's list takes as long as it takes.
constexpr std::chrono::seconds kPageTime{15};

}  // namespace

Result<void> for_each_pod(Api& api, const Clock& clock, const std::function<void()>& begin,
                          const std::function<void(const core::collect::PodFact&)>& take) {
  TRY(const std::string path, wire::kube::collection_path({"", "v1", "pods"}));
  wire::kube::ApiListQuery query;
  query.limit = kPagePods;
  begin();
  for (int tries = 1;;) {
    Request request;
    request.path = wire::kube::list_path(path, query);
    const Answer answer = api.call(request, Deadline::after(clock.now(), kPageTime));
    const bool is_lost = answer.outcome == Outcome::refused && answer.status.code == 410;
    if (is_lost && tries++ < kListTries) {
      query.continue_token.clear();
      begin();
      continue;
    }
    if (answer.outcome != Outcome::done) {
      Error error = Error(answer.error).in("list pods");
      if (error.code == ErrorCode::permission_denied) {
        error.message += "; the collector needs get, list and watch of pods (deploy/kubernetes/access.yaml)";
      }
      return fail(std::move(error));
    }
    TRY(const auto page, wire::kube::decode_list(answer.body));
    for (const auto& item : page.items) {
      TRY(const auto pod, wire::kube::pod_fact(item.value, item.meta));
      take(pod);
    }
    query.continue_token = page.continue_token;
    if (query.continue_token.empty()) return {};
  }
}

}  // namespace croft::store::kube
