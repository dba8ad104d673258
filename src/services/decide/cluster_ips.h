#pragma once

#include <optional>

#include "register/service.h"
#include "services/decide/allocators.h"
#include "services/decide/service_refusal.h"

namespace croft::core {

/// Brings `cluster_ip` and `cluster_ips` of what a caller asks for together
/// (docs/notes/service-ranges.md#normalization), addresses into their canonical text. What can't be understood
/// stays for the validation to name.
void normalize_cluster_ips(Service& service, const Service* before);

/// Takes the addresses of a new Service whose families are settled: those it names, and the next free one for each
/// other (docs/notes/service-ranges.md#cluster-ips).
[[nodiscard]] std::optional<ServiceRefusal> take_cluster_ips(Service& service, Allocators& allocators);

/// The same for a change: nothing, all, none any more, one more or one less.
[[nodiscard]] std::optional<ServiceRefusal> change_cluster_ips(Service& service, const Service& before,
                                                               Allocators& allocators);

}  // namespace croft::core
