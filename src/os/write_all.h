#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace croft::os {

/// Writes all of it to a descriptor, as often as that takes. 0, or the errno of what failed.
[[nodiscard]] inline int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;  // of a device that takes nothing: else for ever
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace croft::os
