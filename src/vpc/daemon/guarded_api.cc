#include "vpc/daemon/guarded_api.h"

namespace croft::app {
namespace {

bool is_answer(const store::kube::Answer& answer) {
  using Outcome = store::kube::Answer::Outcome;
  return answer.http_status != 0 || answer.outcome == Outcome::done || answer.outcome == Outcome::refused;
}

}  // namespace

store::kube::Answer GuardedApi::call(const store::kube::Request& request, Deadline deadline) {
  const auto begun = clock_.now().since_boot;
  {
    const std::lock_guard lock(mutex_);
    if (away_ && begun < ask_again_) {
      store::kube::Answer answer;
      answer.error = *away_;
      return answer;
    }
  }
  auto answer = beneath_.call(request, deadline);
  const auto now = clock_.now().since_boot;
  const bool is_silence = answer.error.code == ErrorCode::unavailable || now - begun >= kIsSilence;
  const std::lock_guard lock(mutex_);
  if (is_answer(answer)) {
    away_.reset();
  } else if (is_silence) {
    away_ = Error{ErrorCode::unavailable, "the API server did not answer just now: " + answer.error.message, {}};
    ask_again_ = now + kAwayFor;
  }
  return answer;
}

}  // namespace croft::app
