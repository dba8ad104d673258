#pragma once

#include <string_view>

namespace croft::os {

/// Tells systemd how this process is, as sd_notify(3) does: "READY=1", "WATCHDOG=1", "STOPPING=1". Nothing where no
/// NOTIFY_SOCKET is set; never waits, and what can't be sent is lost.
void tell_service_manager(std::string_view state);

}  // namespace croft::os
