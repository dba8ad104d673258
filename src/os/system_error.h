#pragma once

#include <string_view>

#include "base/error.h"

namespace croft::os {

/// The Error of a failed system call: "cannot <doing> <path>: <reason of errno><remedy>". The code follows from
/// `error_number`: ENOENT not_found, EEXIST already_exists, EACCES and EPERM permission_denied, EROFS read_only, ENOSPC
/// and EDQUOT storage_full, EMFILE, ENFILE, ENOMEM, EAGAIN, ENOLCK unavailable, ENOTDIR, EISDIR, ELOOP and ENAMETOOLONG
/// invalid_argument, everything else (EIO above all) internal.
[[nodiscard]] Error system_error(std::string_view doing, std::string_view path, int error_number);

}  // namespace croft::os
