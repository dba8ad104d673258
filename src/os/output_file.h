#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "os/files.h"

namespace croft::os {

/// Writes a file that somebody named for output, as replace_file_durably. Only a regular file is replaced, or a new
/// name taken: what else has the name (a link, a FIFO, a device such as /dev/full) belongs to somebody and stays.
/// Error: invalid_argument naming the path; else as replace_file_durably.
[[nodiscard]] Result<void> write_output_file(const std::string& path, std::string_view content,
                                             FileMode mode = FileMode::for_user);

}  // namespace croft::os
