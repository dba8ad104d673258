#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::wire {

/// A kubeconfig in YAML, of which JSON is a part, as the JSON text that store/kube/format/kubeconfig.h reads. Error:
/// invalid_argument, as parse_yaml, and where there is not exactly one document; nothing of the text is repeated, which
/// may hold keys.
[[nodiscard]] Result<std::string> kubeconfig_json(std::string_view yaml);

}  // namespace croft::wire
