#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace croft::os {

// The texts of the kernel in files of /proc; pure.

/// The UUID in /proc/sys/kernel/random/boot_id: 32 hex digits in lower case, dashes don't count. All zero (unknown)
/// when the text is anything else.
[[nodiscard]] BootId parse_boot_id(std::string_view text);

/// The decimal id of the process that holds a file flock(2)ed for writing, by the text of /proc/locks
/// (proc_locks(5)). Empty when it does not say. For files of one inode number on several devices the first counts: good
/// for a message only. The view is into `locks`.
[[nodiscard]] std::string_view flock_holder(std::string_view locks, std::uint64_t inode);

}  // namespace croft::os
