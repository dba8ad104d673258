#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "register/service.h"

namespace croft::core {

/// Why a Service was not made, changed or found: an answer, not a fault. Nothing was allocated then. Texts are those of
/// Kubernetes' API.
struct ServiceRefusal {
  std::string reason;   ///< Kubernetes' word for it: Invalid, InternalError, NotFound, AlreadyExists, Conflict
  std::string message;  ///< for `Invalid` the whole of it: `The Service "a" is invalid: spec.ports: Required value`

  /// As kubectl prints it.
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const ServiceRefusal&, const ServiceRefusal&) = default;
};

/// A value of a field that cannot be: `value` as it is to be printed.
[[nodiscard]] ServiceRefusal refuse_value(const Service& service, std::string_view field, std::string_view value,
                                          std::string_view why);
/// A field that is missing or must not be there: `what` is `Required value`, `Forbidden: …`.
[[nodiscard]] ServiceRefusal refuse_field(const Service& service, std::string_view field, std::string_view what);
/// No field is to blame.
[[nodiscard]] ServiceRefusal refuse_internal(std::string_view message);
[[nodiscard]] ServiceRefusal refuse_not_found(const ServiceName& name);
[[nodiscard]] ServiceRefusal refuse_existing(const ServiceName& name);
/// The caller read another version than the one that is stored now.
[[nodiscard]] ServiceRefusal refuse_stale(const ServiceName& name);

/// A list as it stands in such a text: like JSON, empty as `null`.
[[nodiscard]] std::string printed(const std::vector<std::string>& texts);

}  // namespace croft::core
