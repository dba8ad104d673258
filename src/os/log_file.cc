#include "os/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <optional>

#include "base/printable.h"
#include "os/file_descriptor.h"

namespace croft::os {
namespace {

constexpr std::size_t kLineBytesMax = 4096;
/// The beginning of a line, `0` for any digit; then a fraction of a second may follow, then kLineZone.
constexpr std::string_view kLineStart = "0000-00-00 00:00:00";
constexpr std::string_view kLineZone = " +0000 UTC ";
constexpr std::size_t kLineTimeBytesMax = 40;

std::string escaped(std::string_view line) { return printable(line.substr(0, kLineBytesMax), Printed::line) + "\n"; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool begins_as_a_line(int file) {
  std::array<char, kLineTimeBytesMax> bytes{};
  const ssize_t got = ::pread(file, bytes.data(), bytes.size(), 0);
  if (got <= 0) return got == 0;
  const std::string_view start(bytes.data(), static_cast<std::size_t>(got));
  if (start.size() < kLineStart.size()) return false;
  for (std::size_t i = 0; i < kLineStart.size(); ++i) {
    if (kLineStart[i] == '0' ? !is_digit(start[i]) : start[i] != kLineStart[i]) return false;
  }
  return start.find(kLineZone) != std::string_view::npos;
}

bool is_own(int file, struct stat& status) {
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         status.st_nlink == 1 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 && begins_as_a_line(file);
}

constexpr int kFileFlags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

FileDescriptor open_log(int directory, const std::string& name) {
  return FileDescriptor(::openat(directory, name.c_str(), kFileFlags | O_CREAT, 0640));
}

FileDescriptor open_directory(const std::string& path) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  FileDescriptor directory(::open(path.c_str(), kFlags));
  if (directory.is_open() || ::mkdir(path.c_str(), 0750) != 0) return directory;
  return FileDescriptor(::open(path.c_str(), kFlags));
}

/// Whether a name is free to be taken by what is rotated away.
bool may_replace(int directory, const std::string& name) {
  struct stat status {};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return true;
  const FileDescriptor file(::openat(directory, name.c_str(), (kFileFlags & ~O_APPEND & ~O_ACCMODE) | O_RDONLY));
  return file.is_open() && is_own(file.get(), status);
}

/// A file and the directory it is in.
struct Place {
  FileDescriptor directory;
  std::string name;
};

/// Goes down from the directory, one part at a time.
std::optional<Place> place_below(FileDescriptor directory, std::string_view rest) {
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    if (part.empty() || part == "." || part == "..") return std::nullopt;
    if (slash == std::string_view::npos) return Place{std::move(directory), part};
    FileDescriptor next(::openat(directory.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.is_open()) return std::nullopt;
    directory = std::move(next);
    rest.remove_prefix(slash + 1);
  }
}

/// False when the place has no file of ours and can't have one.
bool append(const Place& place, std::string_view text, std::uint64_t bytes_max) {
  FileDescriptor file = open_log(place.directory.get(), place.name);
  struct stat status {};
  if (!file.is_open() || !is_own(file.get(), status)) return false;
  if (static_cast<std::uint64_t>(status.st_size) > bytes_max) {
    const std::string old = place.name + ".1";
    if (!may_replace(place.directory.get(), old)) return true;
    if (::renameat(place.directory.get(), place.name.c_str(), place.directory.get(), old.c_str()) != 0) return true;
    file = open_log(place.directory.get(), place.name);
    if (!file.is_open() || !is_own(file.get(), status)) return true;
  }
  // One write with O_APPEND: lines of other processes go before or after, not between. A log that is full stays behind.
  static_cast<void>(!::write(file.get(), text.data(), text.size()));
  return true;
}

}  // namespace

void append_log_line(const LogPlace& place, std::string_view line, std::uint64_t bytes_max) {
  if (place.directory.empty() || place.directory.front() != '/') return;
  const std::string below = place.directory.back() == '/' ? place.directory : place.directory + "/";
  FileDescriptor directory = open_directory(place.directory);
  if (!directory.is_open()) return;
  if (!place.file.empty()) {
    if (place.file.starts_with(below)) {
      FileDescriptor again(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 3));
      const auto named = place_below(std::move(again), std::string_view(place.file).substr(below.size()));
      if (named && append(*named, escaped(line), bytes_max)) return;
    }
    static_cast<void>(append({std::move(directory), place.default_file},
                             escaped(std::string(line.substr(0, kLineBytesMax / 2)) + " log_file_path=" +
                                     in_quotes(place.file) + " is no log of ours below " + place.directory),
                             bytes_max));
    return;
  }
  static_cast<void>(append({std::move(directory), place.default_file}, escaped(line), bytes_max));
}

}  // namespace croft::os
