#pragma once

#include <string_view>

#include "base/result.h"

namespace croft::os {

/// The Error of a failed system call: "cannot <doing> <path>: <reason of errno><remedy>". The code follows from
/// `error_number`; that of what is in no table (EIO above all) is internal.
[[nodiscard]] Error system_error(std::string_view doing, std::string_view path, int error_number);

}  // namespace croft::os
