#pragma once

#include <optional>

#include "register/service.h"
#include "services/decide/allocators.h"
#include "services/decide/service_refusal.h"

namespace croft::core {

/// Takes the node ports and the health check's port of a new Service (docs/notes/service-ranges.md#node-ports).
/// Ports of one number, TCP and UDP, share a node port.
[[nodiscard]] std::optional<ServiceRefusal> take_node_ports(Service& service, Allocators& allocators);

/// The same for a change: what it had and has no more is given back. Nothing is shared that was not shared before.
[[nodiscard]] std::optional<ServiceRefusal> change_node_ports(Service& service, const Service& before,
                                                              Allocators& allocators);

}  // namespace croft::core
