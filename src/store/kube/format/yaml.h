#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace croft::wire {

/// A text by hand is short; a longer one is refused before it is parsed.
inline constexpr std::size_t kYamlBytesMax = std::size_t{4} << 20;

/// Reads YAML, of which JSON is a part, as kubectl does: one or more documents behind `---`, empty ones left out.
/// Scalars without quotes become null, booleans and decimal integers where they look like it (YAML 1.1: also `yes` and
/// `on`); other numbers stay texts. Aliases, tags of one's own, and keys that are no text or come twice are refused.
/// Error: invalid_argument with the line, which repeats nothing of the text: a kubeconfig's path may lead to any file.
[[nodiscard]] Result<std::vector<nlohmann::json>> parse_yaml_documents(std::string_view text);

/// A kubeconfig in YAML as the JSON text that store/kube/format/kubeconfig.h reads. Error: invalid_argument, as
/// parse_yaml_documents, and where there is not exactly one document.
[[nodiscard]] Result<std::string> kubeconfig_json(std::string_view yaml);

}  // namespace croft::wire
