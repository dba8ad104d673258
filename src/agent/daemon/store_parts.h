#pragma once

#include "cli/stores/open_store.h"
#include "os/look_up.h"
#include "os/stop_signal.h"

namespace croft::app {

/// With what the daemon opens stores and APIs.
inline constexpr StoreParts kDaemonParts{kubernetes_registry, os::look_up_host, store::kube::make_service_forms,
                                         os::ask_to_end};

}  // namespace croft::app
