#pragma once

#include <string>

#include "ipam/use/inspect.h"

namespace croft::app {

/// Whether a pod is the one that an operator named: "pod" or "namespace/pod".
[[nodiscard]] inline bool is_pod(const std::string& name_space, const std::string& pod, const std::string& wanted) {
  return pod == wanted || (!pod.empty() && name_space + "/" + pod == wanted);
}

/// Whether an address is, or was, of that pod.
[[nodiscard]] inline bool is_pod(const engine::AddressView& a, const std::string& wanted) {
  return is_pod(a.namespace_name, a.pod, wanted);
}

}  // namespace croft::app
