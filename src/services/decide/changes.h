#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "register/service.h"
#include "register/snapshot.h"
#include "services/decide/range_changes.h"
#include "services/decide/service_refusal.h"

// Changes of a Service and of the ranges when one is made, changed or deleted
// (docs/notes/service-ranges.md#service): one plan, one commit. So nothing is ever allocated for a Service that is
// not there, and nothing has to be taken back; Kubernetes' own order, allocate first and store later, leaks when
// something fails between.

namespace croft::core {

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
