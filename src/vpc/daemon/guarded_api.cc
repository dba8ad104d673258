#include "vpc/daemon/guarded_api.h"

namespace croft::app {
namespace {

bool is_answer(const store::kube::Answer& answer) {
  using Outcome = store::kube::Answer::Outcome;
  return answer.http_status != 0 || answer.outcome == Outcome::done || answer.outcome == Outcome::refused;
}

}  // namespace

std::optional<Error> GuardedApi::begin() {
  const std::lock_guard lock(mutex_);
  if (!away_) return std::nullopt;
  if (is_asking_ || clock_.now().since_boot < ask_again_) return away_;
  is_asking_ = true;
  return std::nullopt;
}

void GuardedApi::end(const store::kube::Answer& answer, std::chrono::nanoseconds begun) {
  const auto now = clock_.now().since_boot;
  const std::lock_guard lock(mutex_);
  is_asking_ = false;
  if (is_answer(answer)) return away_.reset();
  const bool is_silence = answer.error.code == ErrorCode::unavailable || now - begun >= kIsSilence;
  if (!is_silence) return;
  away_ = Error{ErrorCode::unavailable, "the API server did not answer just now: " + answer.error.message, {}};
  ask_again_ = now + kAwayFor;
}

store::kube::Answer GuardedApi::call(const store::kube::Request& request, Deadline deadline) {
  if (auto why = begin()) {
    store::kube::Answer answer;
    answer.error = *std::move(why);
    return answer;
  }
  const auto begun = clock_.now().since_boot;
  auto answer = beneath_.call(request, deadline);
  end(answer, begun);
  return answer;
}

}  // namespace croft::app
