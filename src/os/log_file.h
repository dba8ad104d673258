#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace croft::os {

/// Appends one line to a log file, best effort: a log that cannot be written never fails anything. The directory and
/// the file are made when absent (0750, 0640); a file above `bytes_max` is renamed to `<path>.1` first. Only regular
/// files are written, no link is followed; control characters are escaped, so that one call is one line; a line is cut
/// at 4 KiB. Lines of several processes do not mix.
void append_log_line(const std::string& path, std::string_view line, std::uint64_t bytes_max = 10U << 20);

}  // namespace croft::os
