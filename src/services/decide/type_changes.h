#pragma once

#include "register/service.h"

namespace croft::core {

/// What Kubernetes' API fills in before anything else looks at a Service: target ports, the traffic policy, whether a
/// load balancer gets node ports.
void apply_defaults(Service& service);

/// Values that were allocated and that the caller does not repeat stay: a manifest without them can be applied again
/// (docs/notes/service-ranges.md#patch).
void keep_allocated_values(Service& service, const Service& before);

/// Wipes what the new type has no use for, unless the caller changed it at the same time
/// (docs/notes/service-ranges.md#type-changes).
void drop_values_of_type(Service& service, const Service& before);

}  // namespace croft::core
