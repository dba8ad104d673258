#pragma once

#include <string>
#include <vector>

#include "core/block/pool.h"
#include "engine/audit.h"
#include "engine/inspect.h"

namespace croft::app {

/// The same data as YAML, in block style; the text must be one that json_of() printed.
[[nodiscard]] std::string yaml_of(const std::string& json_text);

// `-o json`: one array of objects and a newline. Member names are a promise to scripts (docs/formats/cli-json.md).

[[nodiscard]] std::string json_of(const std::vector<engine::PoolView>& pools);
[[nodiscard]] std::string json_of(const std::vector<engine::BlockView>& blocks);
[[nodiscard]] std::string json_of(const std::vector<engine::AddressView>& addresses);
[[nodiscard]] std::string json_of(const std::vector<engine::Finding>& findings);

}  // namespace croft::app
