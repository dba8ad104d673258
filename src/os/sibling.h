#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace croft::os {

/// The beginning of the sibling's process.
struct SiblingCall {
  std::string file;        ///< in the directory of this program's own file
  std::string called_as;   ///< its argv[0]
  std::string_view input;  ///< its standard input, from the beginning
  std::string variable;    ///< in its environment besides this process's own; replaces one of that name
  std::string said;        ///< for handed_over() there
};

/// Becomes it: execve() of that file, no search, no shell; standard output and error stay. Comes back only where that
/// fails. Errors: not_found where the file is not there; already_exists where this process became that file before: it
/// is the same program under another name; permission_denied; the system's.
[[nodiscard]] Error become_sibling(const SiblingCall& call);

/// In the sibling: `said` of the call by which this process became it. Nothing where it began with this file, whatever
/// the environment has under that name: the value says which process it is for.
[[nodiscard]] std::optional<std::string> handed_over(const std::string& variable);

}  // namespace croft::os
