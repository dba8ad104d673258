#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/net/count.h"
#include "base/net/prefix.h"

namespace croft::app {

/// The output of `-o json` and `-o yaml`: a value that is built once and written in either form, the members in the
/// order in which they were put. Bytes that are no UTF-8, which a record of others may have, become U+FFFD: one of them
/// must not keep all the rest from being shown. Cheap to copy.
class Data {
 public:
  /// Nothing, where a table is printed instead; it has no text.
  Data() = default;
  explicit Data(nlohmann::ordered_json value);

  /// Indented by two, and a newline.
  [[nodiscard]] std::string json() const;
  /// In block style.
  [[nodiscard]] std::string yaml() const;

 private:
  std::shared_ptr<const nlohmann::ordered_json> value_;
};

/// JSON as it is printed. Bytes that are no UTF-8, which a record of others may have, become U+FFFD: one of them must
/// not keep all the rest from being shown.
[[nodiscard]] inline std::string printed_json(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Values in it.

[[nodiscard]] inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}
/// Up to here every reader of JSON keeps a whole number as it is; jq and JavaScript round those above.
inline constexpr std::uint64_t kExactNumberMax = (std::uint64_t{1} << 53) - 1;
/// A number where every reader keeps it exactly, else its digits as text.
[[nodiscard]] inline nlohmann::ordered_json count_json(const net::Count& count) {
  const bool is_exact = count.fits_64() && count.as_64() <= kExactNumberMax;
  return is_exact ? nlohmann::ordered_json(count.as_64()) : nlohmann::ordered_json(count.to_string());
}
/// A number of 64 bits, whatever its value is: its digits as text.
[[nodiscard]] inline nlohmann::ordered_json number_64_json(std::uint64_t number) {
  return nlohmann::ordered_json(std::to_string(number));
}
/// An array of what `json_of` makes of each.
template <class T, class F>
[[nodiscard]] nlohmann::ordered_json array_json(const std::vector<T>& items, F json_of) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const T& item : items) array.push_back(json_of(item));
  return array;
}
[[nodiscard]] inline nlohmann::ordered_json prefixes_json(const std::vector<net::Prefix>& prefixes) {
  return array_json(prefixes, [](const net::Prefix& prefix) { return prefix.to_string(); });
}

}  // namespace croft::app
