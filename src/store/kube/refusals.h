#pragma once

#include "store/kube/api.h"

// The meaning of a refusal.
namespace croft::store::kube {

/// A right is missing, which it helps to give. A certificate or a token that is refused has the same code,
/// permission_denied, and another remedy.
[[nodiscard]] inline bool lacks_right(const Answer& answer) {
  return answer.http_status == 403 && answer.error.code == ErrorCode::permission_denied;
}

/// There is no such object.
[[nodiscard]] inline bool is_absent(const Answer& answer) {
  return answer.outcome == Answer::Outcome::refused && answer.status.code == 404 && !answer.status.name.empty();
}

/// The API does not know what was asked for: a CustomResourceDefinition is missing, or not served.
[[nodiscard]] inline bool is_unknown(const Answer& answer) {
  return answer.outcome == Answer::Outcome::refused && answer.status.code == 404 && answer.status.name.empty();
}

}  // namespace croft::store::kube
