#pragma once

#include <string>
#include <string_view>

#include "cli/croft/command_line.h"
#include "ipam/use/audit.h"

namespace croft::app {

/// Notes what an audit passed over (CommandLine::note_not_read).
void note_not_read(CommandLine& line, const engine::AuditReport& report);

// For the line that says what there is, and what was found.
[[nodiscard]] std::string handles_text(const engine::AuditReport& report);
/// Empty when nothing was passed over.
[[nodiscard]] std::string_view of_what_was_read(const CommandLine& line);

}  // namespace croft::app
