#include "os/secret_file.h"

#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

#include "os/files.h"
#include "os/system_error.h"

namespace croft::os {

Result<std::string> read_secret_file(const std::string& path, std::size_t bytes_max) {
  TRY(std::string content, read_file(path, bytes_max));
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return fail(system_error("look at", path, errno));
  if ((s.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0) {
    return fail(ErrorCode::permission_denied,
                fmt::format("{} is a secret that others can read or write (mode {:04o}): chmod {} {}", path,
                            s.st_mode & 07777, (s.st_mode & S_IRGRP) != 0 ? "640" : "600", path));
  }
  return content;
}

}  // namespace croft::os
