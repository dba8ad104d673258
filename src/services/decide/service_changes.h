#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "register/service.h"
#include "register/snapshot.h"
#include "services/decide/range_changes.h"

// Changes of a Service and of the ranges when one is made, changed or deleted
// (docs/notes/service-ranges.md#service): one plan, one commit. So nothing is ever allocated for a Service that is
// not there, and nothing has to be taken back; Kubernetes' own order, allocate first and store later, leaks when
// something fails between.

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

/// Kubernetes bounds the bytes of an object only; this is far beyond any use, and keeps a decision short.
inline constexpr std::size_t kServicePortsMax = 2000;

/// Whether a Service may have this name in this namespace.
[[nodiscard]] std::optional<ServiceRefusal> check_service_name(const ServiceName& name);

/// Completes a Service: checks what concerns addresses and ports, settles its families, takes the addresses and node
/// ports that it names and the next free ones for the others (docs/notes/service-ranges.md#service).
///
/// `before` is the Service that it replaces, held by `changes` (RangeChanges::hold); null for a new one. Values
/// that it held and the new one does not name stay, so that a manifest can be applied again. Values without a use for
/// the new type go. All else may change: an update is a deletion and a creation in one commit.
[[nodiscard]] std::optional<ServiceRefusal> complete_service(Service& service, const Service* before,
                                                             RangeChanges& changes);

struct ServiceChanged {
  Service service;
  std::vector<std::string> notes;  ///< what a person should know besides
};
using ServiceAnswer = std::variant<ServiceChanged, ServiceRefusal>;

/// Decides the creation of a Service as a caller wants it: values that are not named are defaulted or allocated. Its
/// UID and time are new.
[[nodiscard]] Step<ServiceAnswer> plan_create_service(const Snapshot& snapshot, const Service& wanted,
                                                      const ServiceRanges& ranges, const Instant& now, Random& random);

/// Decides the replacement of a Service by what a caller wants it to be (PUT): values that were allocated and are not
/// named stay. With `as_read`, only if it still is what the caller read.
[[nodiscard]] Step<ServiceAnswer> plan_update_service(const Snapshot& snapshot, const Service& wanted,
                                                      const std::optional<Service>& as_read,
                                                      const ServiceRanges& ranges, Random& random);

/// Decides the deletion of a Service: what it holds becomes free in the same commit, in the ranges that the records
/// tell of, also where another Service says to hold the same. The repair finds that.
[[nodiscard]] Step<ServiceAnswer> plan_delete_service(const Snapshot& snapshot, const ServiceName& name,
                                                      Random& random);

}  // namespace croft::core
