#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace croft::app {

/// JSON as it is printed. Bytes that are no UTF-8, which a record of others may have, become U+FFFD: one of them must
/// not keep all the rest from being shown.
[[nodiscard]] inline std::string printed_json(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace croft::app
