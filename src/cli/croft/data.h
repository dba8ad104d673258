#pragma once

#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

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

}  // namespace croft::app
