#include "os/output_file.h"

#include <sys/stat.h>

namespace croft::os {

Result<void> write_output_file(const std::string& path, std::string_view content, FileMode mode) {
  struct stat status {};
  // A link is not followed: renaming over it would replace the link itself. A path that can't be looked at can't be
  // replaced either, and says so better.
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid_argument,
                path + " is no regular file, and is not replaced: name a regular file or a new one");
  }
  return replace_file_durably(path, content, mode);
}

}  // namespace croft::os
