#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "net/count.h"
#include "net/prefix.h"

namespace croft::app {

/// JSON as it is printed. Bytes that are no UTF-8, which a record of others may have, become U+FFFD: one of them must
/// not keep all the rest from being shown.
[[nodiscard]] inline std::string printed_json(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Values in it.

[[nodiscard]] inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}
/// A number where JSON's readers keep one of 64 bits exactly, else its digits as text.
[[nodiscard]] inline nlohmann::ordered_json count_json(const net::Count& count) {
  return count.fits_64() ? nlohmann::ordered_json(count.as_64()) : nlohmann::ordered_json(count.to_string());
}
[[nodiscard]] inline nlohmann::ordered_json prefixes_json(const std::vector<net::Prefix>& prefixes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const net::Prefix& prefix : prefixes) json.push_back(prefix.to_string());
  return json;
}

}  // namespace croft::app
