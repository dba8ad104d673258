#pragma once

#include <string>

#include "engine/inspect.h"

namespace croft::app {

/// Whether an address is, or was, of the pod that an operator named: "pod" or "namespace/pod".
[[nodiscard]] inline bool is_pod(const engine::AddressView& a, const std::string& wanted) {
  return a.pod == wanted || (!a.pod.empty() && a.namespace_name + "/" + a.pod == wanted);
}

}  // namespace croft::app
