#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace croft::wire {

/// What a person writes by hand is short; a text is refused before it is parsed when it is longer.
inline constexpr std::size_t kYamlBytesMax = std::size_t{4} << 20;
inline constexpr int kYamlDepthMax = 64;
inline constexpr std::size_t kYamlNodesMax = 200'000;
inline constexpr std::size_t kYamlDocumentsMax = 10'000;

struct YamlLimits {
  std::size_t bytes_max = kYamlBytesMax;
  int depth_max = kYamlDepthMax;
  std::size_t nodes_max = kYamlNodesMax;
};

/// Reads YAML, of which JSON is a part, as kubectl does: one or more documents behind `---`, empty ones left out.
/// Scalars without quotes become null, booleans and numbers where they look like it (YAML 1.1: also `yes` and `on`).
/// Aliases, tags of one's own, and keys that are no text or come twice are refused. Error: invalid_argument with the
/// line, which repeats nothing of the text: a kubeconfig's path may lead to any file.
[[nodiscard]] Result<std::vector<nlohmann::json>> parse_yaml(std::string_view text, const YamlLimits& limits = {});

/// A kubeconfig in YAML as the JSON text that store/kube/format/kubeconfig.h reads. Error: invalid_argument, as
/// parse_yaml, and where there is not exactly one document.
[[nodiscard]] Result<std::string> kubeconfig_json(std::string_view yaml);

}  // namespace croft::wire
