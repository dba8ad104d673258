#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace croft::os {

/// Where log lines go. The author of a network configuration may name a file; the operator of the process says in which
/// directory it lies.
struct LogPlace {
  std::string directory;     ///< absolute, not from a configuration; made (0750) when absent; empty: nothing is logged
  std::string default_file;  ///< a name in it, for who names no file
  std::string file;          ///< what the configuration names: an absolute path below `directory`; empty: the default
};

/// Appends one line to a log file, best effort: a log that cannot be written never fails anything. A `file` that is not
/// below the directory, or cannot be opened as below, is not touched: the line goes to the default file, and says so.
///
/// Below the directory no symbolic link is followed, and no further directory made. Only own files are written:
/// regular, of this process's user, with one name, writable by nobody else. They are empty or begin as a line of ours
/// does (a time in UTC). A file above `bytes_max` is renamed to `<name>.1` first; if that name is in use for anything
/// but an own file, nothing is written any more. Control characters are escaped, so that one call is one line; a line
/// is cut at 4 KiB. Lines of several processes do not mix.
void append_log_line(const LogPlace& place, std::string_view line, std::uint64_t bytes_max = 10U << 20);

}  // namespace croft::os
