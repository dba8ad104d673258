#include "os/executable.h"

#include <sys/stat.h>

#include <cerrno>

#include "os/system_error.h"

namespace croft::os {

Result<Runnable> runnable(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) {
    if (errno == ENOENT) return Runnable::absent;
    return fail(system_error("look at", path, errno));
  }
  const bool may_run = (s.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
  return S_ISREG(s.st_mode) && s.st_size > 0 && may_run ? Runnable::yes : Runnable::no;
}

}  // namespace croft::os
