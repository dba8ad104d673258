#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "register/service.h"
#include "register/snapshot.h"
#include "services/decide/service_bitmap.h"

namespace croft::core {

/// The ranges that a change goes by: kube-apiserver's flags. A value that is not given is as the record says, or
/// without a record as kube-apiserver has it without flags: 10.0.0.0/24, no second family, 30000-32767. A record whose
/// range differs from the flag is not written: the repair moves a range.
struct ServiceRanges {
  std::optional<service::ServiceCidrs> cidrs;
  std::optional<service::NodePortRange> node_ports;
  /// The first use makes a range without a record, from what the stored Services of either kind hold. Not where
  /// somebody else claims its addresses (register/address_claims.h), nor where Kubernetes keeps them as objects or
  /// makes the ranges itself.
  bool may_make = false;
};

/// Reads kube-apiserver's flags; one that is empty leaves its range not given. Errors: those of the flags.
[[nodiscard]] Result<ServiceRanges> read_service_ranges(std::string_view cidrs_flag, std::string_view ports_flag);

// Changes of a Service and of the ranges when one is made, changed or deleted
// (docs/notes/service-ranges.md#service): one plan, one commit. So nothing is ever allocated for a Service that is
// not there, and nothing has to be taken back; Kubernetes' own order, allocate first and store later, leaks when
// something fails between.

/// Why a Service was not made, changed or found: an answer, not a fault. Nothing was allocated then. Texts are those of
/// Kubernetes' API.
struct ServiceRefusal {
  std::string reason;   ///< Kubernetes' word for it: Invalid, InternalError, NotFound, AlreadyExists, Conflict
  std::string message;  ///< for `Invalid` the whole of it: `The Service "a" is invalid: spec.ports: Required value`

  /// As kubectl prints it.
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const ServiceRefusal&, const ServiceRefusal&) = default;
};

[[nodiscard]] ServiceRefusal refuse_not_found(const ServiceName& name);
/// The caller read another version than the one that is stored now.
[[nodiscard]] ServiceRefusal refuse_stale(const ServiceName& name);
/// Whether a Service may have this name in this namespace.
[[nodiscard]] std::optional<ServiceRefusal> check_service_name(const ServiceName& name);

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
