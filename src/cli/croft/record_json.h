#pragma once

#include <nlohmann/json.hpp>

#include "register/block.h"
#include "register/pool.h"

namespace croft::app {

/// A record as it is shown: the member names and texts of its stored form (docs/formats/records.md), without the
/// version. Sequence numbers are texts, as all numbers of 64 bits are (number_64_json).
[[nodiscard]] nlohmann::ordered_json record_json(const core::Pool& pool);
[[nodiscard]] nlohmann::ordered_json record_json(const core::Block& block);

}  // namespace croft::app
