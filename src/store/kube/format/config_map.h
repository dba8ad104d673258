#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::wire::kube {

/// What a ConfigMap, as the API answers it, has under `data.KEY`; empty where that is absent or null. Errors: of
/// decode_object, for another object too; corrupt, naming the member, for what is no text.
[[nodiscard]] Result<std::string> text_in_config_map(std::string_view json, const std::string& name_space,
                                                     const std::string& name, std::string_view key);

}  // namespace croft::wire::kube
