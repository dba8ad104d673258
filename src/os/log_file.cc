#include "os/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "os/file_descriptor.h"
#include "os/files.h"

namespace croft::os {
namespace {

constexpr std::size_t kLineBytesMax = 4096;

std::string escaped(std::string_view line) { return printable(line.substr(0, kLineBytesMax), Printed::line) + "\n"; }

FileDescriptor open_log(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  return FileDescriptor(::open(path.c_str(), kFlags, 0640));
}

}  // namespace

void append_log_line(const std::string& path, std::string_view line, std::uint64_t bytes_max) {
  if (path.empty()) return;
  FileDescriptor file = open_log(path);
  if (!file.is_open()) {
    static_cast<void>(::mkdir(directory_of(path).c_str(), 0750));
    file = open_log(path);
  }
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (static_cast<std::uint64_t>(status.st_size) > bytes_max) {
    if (::rename(path.c_str(), (path + ".1").c_str()) == 0) file = open_log(path);
    if (!file.is_open()) return;
  }
  const std::string text = escaped(line);
  // One write with O_APPEND: lines of other processes go before or after, not between.
  if (::write(file.get(), text.data(), text.size()) < 0) return;
}

}  // namespace croft::os
