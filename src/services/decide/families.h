#pragma once

#include <optional>
#include <vector>

#include "register/service.h"
#include "services/decide/service_refusal.h"

namespace croft::core {

/// Settles the policy and the families of a Service that is made, or changed from `before`, on a cluster that has
/// addresses of `cluster` (one or two families, the default first); docs/notes/service-ranges.md#families.
/// `service` must have been normalized (cluster_ips.h).
[[nodiscard]] FieldErrors settle_families(Service& service, const Service* before,
                                          const std::vector<net::Family>& cluster);

/// A Service that preferred two families and still does, with the addresses and families it had: a change of the
/// cluster between one and two families does not reach it.
[[nodiscard]] bool keeps_preferred_families(const Service& service, const Service* before);

}  // namespace croft::core
