#pragma once

#include "store/kube/api.h"

namespace croft::store::kube {

/// Whether an answer is a refusal for want of a right, which it helps to give. A certificate or a token that is refused
/// has the same code, permission_denied, and another remedy.
[[nodiscard]] inline bool lacks_right(const Answer& answer) {
  return answer.http_status == 403 && answer.error.code == ErrorCode::permission_denied;
}

}  // namespace croft::store::kube
