#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace croft::os {

/// Owns a file descriptor and closes it. The result of close is of no use here: whoever needs data to be on disk has
/// synced before.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  /// The descriptor, or a negative number when there is none.
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  /// Gives the descriptor away: whoever takes it closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

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
