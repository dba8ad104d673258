#pragma once

#include <cstddef>
#include <optional>

#include "register/service.h"
#include "services/decide/range_changes.h"
#include "services/decide/service_refusal.h"

namespace croft::core {

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

}  // namespace croft::core
