#pragma once

#include <string>
#include <vector>

#include "core/block/pool.h"
#include "engine/audit.h"
#include "engine/inspect.h"

namespace croft::app {

// `-o json`: one array of objects and a newline. Member names are a promise to scripts (docs/formats/cli-json.md).

[[nodiscard]] std::string json_of(const std::vector<engine::PoolView>& pools);
[[nodiscard]] std::string json_of(const std::vector<engine::BlockView>& blocks);
[[nodiscard]] std::string json_of(const std::vector<engine::AddressView>& addresses);
[[nodiscard]] std::string json_of(const std::vector<engine::Finding>& findings);

}  // namespace croft::app
