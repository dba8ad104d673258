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

// What becomes of a Service and of the ranges when one is made, changed or deleted
// (docs/notes/service-ranges.md#service): one plan, one commit. So nothing is ever allocated for a Service that is
// not there, and nothing has to be taken back; Kubernetes' own order, allocate first and store later, leaks when
// something fails between.

namespace croft::core {

struct ServiceChanged {
  Service service;
  std::vector<std::string> notes;  ///< what a person should know besides
};
using ServiceAnswer = std::variant<ServiceChanged, ServiceRefusal>;

/// How a change is made.
struct ServiceOptions {
  bool dry_run = false;  ///< the answer only
  /// When this change makes the range of the default family, Service `default/kubernetes` comes with it and has its
  /// first address, as in a cluster that kube-apiserver starts.
  bool with_kubernetes_service = false;
};

/// Decides the creation of a Service as a caller wants it: values that are not named are defaulted or allocated. `uid`
/// and the time become the Service's.
[[nodiscard]] Step<ServiceAnswer> plan_create_service(const Snapshot& snapshot, const Service& wanted,
                                                      const ServiceRanges& ranges, const ServiceOptions& options,
                                                      const Instant& now, Random& random);

/// Decides the replacement of a Service by what a caller wants it to be (PUT): values that were allocated and are not
/// named stay. With `as_read`, only if it still is what the caller read.
[[nodiscard]] Step<ServiceAnswer> plan_update_service(const Snapshot& snapshot, const Service& wanted,
                                                      const std::optional<Service>& as_read,
                                                      const ServiceRanges& ranges, const ServiceOptions& options,
                                                      Random& random);

/// Decides the deletion of a Service: what it holds by its record becomes free in the same commit, in the ranges that
/// the records tell of. As in Kubernetes nobody asks whether another Service says to hold the same; where ranges and
/// Services change only together, as here, that does not happen.
[[nodiscard]] Step<ServiceAnswer> plan_delete_service(const Snapshot& snapshot, const ServiceName& name,
                                                      const ServiceOptions& options, Random& random);

/// A random (version 4) UUID.
[[nodiscard]] std::string new_uid(Random& random);

}  // namespace croft::core
