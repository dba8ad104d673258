#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace croft::os {

/// The beginning of the sibling's process.
struct SiblingCall {
  std::string file;        ///< in the directory of this program's own file
  std::string called_as;   ///< its argv[0]
  std::string_view input;  ///< its standard input, from the beginning
  std::string variable;    ///< "NAME=value", in its environment besides this process's own; replaces one of that name
};

/// Becomes it: execve() of that file, no search, no shell; standard output and error stay. Comes back only where that
/// fails. Errors: not_found where the file is not there; permission_denied; the system's.
[[nodiscard]] Error become_sibling(const SiblingCall& call);

}  // namespace croft::os
