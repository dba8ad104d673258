#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "register/service.h"

namespace croft::core {

/// One thing that is wrong with a Service, as Kubernetes' API reports it.
struct FieldError {
  enum class Type : std::uint8_t { invalid, required, forbidden, duplicate };
  Type type = Type::invalid;
  std::string field;   ///< spec.ports[0].nodePort
  std::string value;   ///< the bad value as printed; empty for `required` and `forbidden`
  std::string detail;  ///< may be empty

  /// `Invalid value: 80: provided port is already allocated`
  [[nodiscard]] std::string body() const;
  /// `spec.ports[0].nodePort: Invalid value: 80: provided port is already allocated`
  [[nodiscard]] std::string to_string() const { return field + ": " + body(); }
  friend bool operator==(const FieldError&, const FieldError&) = default;
};
using FieldErrors = std::vector<FieldError>;

[[nodiscard]] FieldError invalid(std::string field, std::string value, std::string detail);
[[nodiscard]] FieldError required(std::string field, std::string detail = {});
[[nodiscard]] FieldError forbidden(std::string field, std::string detail);
[[nodiscard]] FieldError duplicate(std::string field, std::string value);

// Values as they stand in such a report: like JSON, absent lists as `null`.
[[nodiscard]] std::string printed(std::string_view text);
[[nodiscard]] std::string printed(const std::vector<std::string>& texts);
[[nodiscard]] std::string printed(const std::vector<net::Family>& families);
[[nodiscard]] std::string printed(net::Family family);
[[nodiscard]] std::string printed(const std::optional<IpFamilyPolicy>& policy);

/// The words of Kubernetes' API.
[[nodiscard]] std::string_view word_of(ServiceType type);
[[nodiscard]] std::string_view word_of(IpFamilyPolicy policy);
[[nodiscard]] std::string_view word_of(ServiceProtocol protocol);
[[nodiscard]] std::string_view word_of(TrafficPolicy policy);
[[nodiscard]] std::string_view word_of(net::Family family);

/// Why a Service was not made, changed or found: an answer, not a fault. Nothing was allocated then.
struct ServiceRefusal {
  int status = 422;    ///< as HTTP would say it
  std::string reason;  ///< Kubernetes' word for it: Invalid, InternalError, NotFound, AlreadyExists, Conflict; or none
  std::string name;    ///< of the Service
  FieldErrors causes{};  ///< of status 422
  std::string message;   ///< of all others

  /// As kubectl prints it: `The Service "a" is invalid: spec.ports: Required value`.
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const ServiceRefusal&, const ServiceRefusal&) = default;
};

[[nodiscard]] ServiceRefusal refuse_invalid(const Service& service, FieldErrors causes);
/// Status 500: what no field can be blamed for.
[[nodiscard]] ServiceRefusal refuse_internal(const Service& service, std::string message);
[[nodiscard]] ServiceRefusal refuse_not_found(const ServiceName& name);
[[nodiscard]] ServiceRefusal refuse_existing(const ServiceName& name);
/// The caller read another version than the one that is stored now.
[[nodiscard]] ServiceRefusal refuse_stale(const ServiceName& name);

}  // namespace croft::core
