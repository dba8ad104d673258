#include "os/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>

#include "base/letters.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

constexpr std::int64_t kNsInSecond = 1'000'000'000;
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::int64_t ns_of(const timespec& t) { return static_cast<std::int64_t>(t.tv_sec) * kNsInSecond + t.tv_nsec; }
timespec timespec_of(std::int64_t ns) { return {.tv_sec = ns / kNsInSecond, .tv_nsec = ns % kNsInSecond}; }

DirectoryStamp stamp_from(const struct stat& s) { return {{s.st_dev, s.st_ino}, ns_of(s.st_mtim), ns_of(s.st_ctim)}; }

[[nodiscard]] Result<void> sync_descriptor(int fd, const std::string& path) {
  if (::fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP) return {};
  return fail(path_error("sync", path, errno));
}

enum class Kinds : std::uint8_t { regular, any };

/// The content of a descriptor, from where it stands; nothing for anything but a regular file, unless any kind is
/// wanted. Returns the error number, 0 for success. A regular file has been read when it is as large as what was read,
/// without a read of nothing.
int read_descriptor(int fd, std::size_t bytes_max, SmallFile& result, Kinds kinds) {
  std::array<char, 1024> buffer;  // as large as almost all contents, left uninitialised on purpose
  struct stat before {};
  if (::fstat(fd, &before) != 0) return errno;
  result.regular = S_ISREG(before.st_mode);
  if (!result.regular && kinds == Kinds::regular) return 0;
  while (result.content.size() <= bytes_max) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EISDIR || errno == EAGAIN)) {
      result.regular = false;
      return 0;
    }
    if (n < 0) return errno;
    result.content.append(buffer.data(), static_cast<std::size_t>(n));
    if (n == 0) break;
    if (before.st_size > 0 && static_cast<std::size_t>(before.st_size) == result.content.size()) break;
  }
  result.cut = result.content.size() > bytes_max;
  if (result.cut) result.content.resize(bytes_max);
  return 0;
}

[[nodiscard]] Result<void> sync_parent_of(const std::string& path) {
  const std::string parent = directory_of(path);
  const FileDescriptor up(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!up.is_open()) return fail(path_error("open", parent, errno));
  return sync_descriptor(up.get(), parent);
}

bool is_directory(const std::string& path) {
  struct stat there {};
  return ::stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode);
}

/// A directory and its missing parents. All of them are durable, also the first one that was there: who made it may
/// have died before it was. Errors where Go's os.MkdirAll has them.
[[nodiscard]] Result<void> make_with_parents(const std::string& path) {
  constexpr mode_t kMode = 0755;
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return sync_parent_of(path);
    return fail(path_error("mkdir", path, ENOTDIR));
  }
  const std::string parent = directory_of(path);
  if (parent != path) TRY_VOID(make_with_parents(parent));
  if (::mkdir(path.c_str(), kMode) != 0) {
    const int why = errno;
    if (!is_directory(path)) return fail(path_error("mkdir", path, why));  // else somebody was faster
  }
  return sync_parent_of(path);
}

}  // namespace

Error path_error(std::string_view operation, std::string_view path, int error_number) {
  std::string reason = std::generic_category().message(error_number);
  if (!reason.empty()) reason[0] = lowered(reason[0]);
  return {system_error("", "", error_number).code, fmt::format("{} {}: {}", operation, path, reason), {}};
}

Result<Directory> Directory::open(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.is_open()) return fail(path_error("open", path, errno));
  return Directory(path, std::move(file));
}

Result<Directory> Directory::make(const std::string& path) {
  if (auto there = open(path)) return there;
  TRY_VOID(make_with_parents(path));
  return open(path);
}

Result<void> Directory::sync_name() const { return sync_parent_of(path_); }

std::string Directory::path_of(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

Result<DirectoryStamp> Directory::stamp() const {
  struct stat s {};
  if (::fstat(file_.get(), &s) != 0) return fail(path_error("stat", path_, errno));
  return stamp_from(s);
}

Result<DirectoryStamp> Directory::set_modified(std::int64_t ns) const {
  const std::array<timespec, 2> times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, timespec_of(ns)};
  if (::futimens(file_.get(), times.data()) != 0) return fail(path_error("chtimes", path_, errno));
  return stamp();
}

bool Directory::has_local_times() const {
  constexpr std::array<std::uint64_t, 8> kLocal = {
      EXT4_SUPER_MAGIC,  // ext2, ext3, ext4
      0x58465342,        // XFS
      BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
      0x2fc12fc1,  // ZFS
      0xca451a4e,  // bcachefs
  };
  struct statfs s {};
  if (::fstatfs(file_.get(), &s) != 0) return false;
  return std::find(kLocal.begin(), kLocal.end(), static_cast<std::uint64_t>(s.f_type)) != kLocal.end();
}

Result<void> Directory::check_writable() const {
  if (::faccessat(file_.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return fail(path_error("open", path_, errno));
  struct statvfs s {};
  if (::fstatvfs(file_.get(), &s) != 0) return fail(path_error("statfs", path_, errno));
  const bool may_use_reserve = ::geteuid() == 0;
  const auto blocks = may_use_reserve ? s.f_bfree : s.f_bavail;
  const auto inodes = may_use_reserve ? s.f_ffree : s.f_favail;
  // Some file systems count none of either.
  if ((s.f_blocks > 0 && blocks == 0) || (s.f_files > 0 && inodes == 0)) {
    return fail(path_error("write", path_, ENOSPC));
  }
  return {};
}

Result<void> Directory::for_each_name(const std::function<bool(const char*)>& f) const {
  // Not readdir: that opens the directory once more and takes 32 KiB.
  constexpr std::size_t kBufferBytes = 16384;
  alignas(dirent64) std::array<char, kBufferBytes> buffer;
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) return fail(path_error("seek", path_, errno));
  while (true) {
    const ssize_t bytes = ::getdents64(file_.get(), buffer.data(), buffer.size());
    if (bytes < 0) return fail(path_error("readdirent", path_, errno));
    if (bytes == 0) return {};
    for (ssize_t at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      at += entry->d_reclen;
      const std::string_view name(entry->d_name);
      if (name != "." && name != ".." && !f(entry->d_name)) return {};
    }
  }
}

Result<std::optional<SmallFile>> Directory::read(const char* name, std::size_t bytes_max) const {
  return read_opened(FileDescriptor(::openat(file_.get(), name, kReadFlags)), name, bytes_max);
}

/// `file` was just opened, or errno says why not.
Result<std::optional<SmallFile>> Directory::read_opened(const FileDescriptor& file, const char* name,
                                                        std::size_t bytes_max) const {
  if (!file.is_open() && errno == ENOENT) return std::optional<SmallFile>();
  // A socket, or a link to itself.
  if (!file.is_open() && (errno == ENXIO || errno == ELOOP)) return std::optional(SmallFile{false, false, {}});
  if (!file.is_open()) return fail(path_error("open", path_of(name), errno));
  SmallFile result;
  if (const int why = read_descriptor(file.get(), bytes_max, result, Kinds::regular)) {
    return fail(path_error("read", path_of(name), why));
  }
  return std::optional(std::move(result));
}

Result<std::optional<SmallFile>> Directory::read_own(const char* name, std::size_t bytes_max,
                                                     WallTime* modified) const {
  struct stat s {};
  // Before it is opened: to open a device may do something already.
  if (::fstatat(file_.get(), name, &s, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::optional<SmallFile>();
    return fail(path_error("lstat", path_of(name), errno));
  }
  if (modified != nullptr) *modified = WallTime(std::chrono::nanoseconds(ns_of(s.st_mtim)));
  if (!S_ISREG(s.st_mode)) return std::optional(SmallFile{false, false, {}});
  return read_opened(FileDescriptor(::openat(file_.get(), name, kReadFlags | O_NOFOLLOW)), name, bytes_max);
}

Result<bool> Directory::exists(const char* name) const {
  struct stat s {};
  if (::fstatat(file_.get(), name, &s, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return fail(path_error("lstat", path_of(name), errno));
}

Result<std::optional<WallTime>> Directory::modified(const char* name) const {
  struct stat s {};
  if (::fstatat(file_.get(), name, &s, 0) == 0) {
    return std::optional(WallTime(std::chrono::nanoseconds(ns_of(s.st_mtim))));
  }
  if (errno == ENOENT) return std::optional<WallTime>();
  return fail(path_error("stat", path_of(name), errno));
}

Result<DraftFile> Directory::open_draft(const char* draft, unsigned mode) const {
  FileDescriptor nameless(::openat(file_.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  if (nameless.is_open()) return DraftFile(std::move(nameless), file_.get(), {});
  // The answers of file systems and kernels without it.
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT) {
    return fail(path_error("open", path_of(draft), errno));
  }
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  FileDescriptor named(::openat(file_.get(), draft, kFlags, mode));
  if (!named.is_open() && errno == EEXIST && ::unlinkat(file_.get(), draft, 0) == 0) {
    named = FileDescriptor(::openat(file_.get(), draft, kFlags, mode));
  }
  if (!named.is_open()) return fail(path_error("open", path_of(draft), errno));
  return DraftFile(std::move(named), file_.get(), draft);
}

Result<DraftFile> Directory::create_draft(const char* draft, std::string_view content, unsigned mode) const {
  const std::string path = path_of(draft);
  TRY(DraftFile file, open_draft(draft, mode));
  if (const int why = write_all(file.file_.get(), content); why != 0) return fail(path_error("write", path, why));
  TRY_VOID(sync_descriptor(file.file_.get(), path));
  return file;
}

Result<bool> Directory::name_draft(const DraftFile& file, const char* name) const {
  const std::string descriptor = fmt::format("/proc/self/fd/{}", file.file_.get());
  if (::linkat(AT_FDCWD, descriptor.c_str(), file_.get(), name, AT_SYMLINK_FOLLOW) == 0) return true;
  if (errno == EEXIST) return false;
  return fail(path_error("link", path_of(name), errno));
}

DraftFile::~DraftFile() {
  if (!name_.empty()) ::unlinkat(directory_, name_.c_str(), 0);
}

Result<void> Directory::overwrite(const char* name, std::string_view content, unsigned mode) const {
  const std::string path = path_of(name);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  FileDescriptor file(::openat(file_.get(), name, kFlags, mode));
  if (!file.is_open() && errno == ELOOP && ::unlinkat(file_.get(), name, 0) == 0) {
    file = FileDescriptor(::openat(file_.get(), name, kFlags | O_EXCL, mode));
  }
  if (!file.is_open()) return fail(path_error("open", path, errno));
  struct stat s {};
  if (::fstat(file.get(), &s) != 0) return fail(path_error("stat", path, errno));
  if (!S_ISREG(s.st_mode)) return fail(path_error("write", path, EINVAL));
  // In place rather than truncated first: a file system need not free and find a block for it.
  if (const int why = write_all(file.get(), content); why != 0) return fail(path_error("write", path, why));
  if (static_cast<std::size_t>(s.st_size) <= content.size()) return {};
  if (::ftruncate(file.get(), static_cast<off_t>(content.size())) != 0) {
    return fail(path_error("truncate", path, errno));
  }
  return {};
}

Result<bool> Directory::remove(const char* name) const {
  if (::unlinkat(file_.get(), name, 0) == 0) return true;
  if (errno == ENOENT) return false;
  return fail(path_error("remove", path_of(name), errno));
}

Result<void> Directory::sync() const { return sync_descriptor(file_.get(), path_); }

Result<std::string> read_named_file(const std::string& path, std::size_t bytes_max) {
  const FileDescriptor file(::open(path.c_str(), kReadFlags));
  if (!file.is_open()) return fail(path_error("open", path, errno));
  if (is_directory(path)) return fail(path_error("read", path, EISDIR));
  SmallFile read;
  if (const int why = read_descriptor(file.get(), bytes_max, read, Kinds::any)) {
    return fail(path_error("read", path, why));
  }
  if (read.cut) return fail(path_error("read", path, EFBIG));
  return std::move(read.content);
}

Result<void> make_private_directory(const std::string& path) {
  constexpr mode_t kMode = 0700;
  if (::mkdir(path.c_str(), kMode) == 0 || errno == EEXIST) return {};
  return fail(path_error("mkdir", path, errno));
}

Result<void> rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return fail(path_error("rename", to, errno));
}

Result<std::optional<RandomAccessFile>> RandomAccessFile::open(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (!file.is_open() && errno == ENOENT) return std::optional<RandomAccessFile>();
  if (!file.is_open()) return fail(path_error("open", path, errno));
  struct stat s {};
  if (::fstat(file.get(), &s) != 0) return fail(path_error("stat", path, errno));
  if (!S_ISREG(s.st_mode)) return std::optional<RandomAccessFile>();
  return std::optional(RandomAccessFile(path, std::move(file)));
}

Result<RandomAccessFile> RandomAccessFile::create(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  constexpr mode_t kMode = 0600;
  FileDescriptor file(::open(path.c_str(), kFlags, kMode));
  if (!file.is_open() && errno == EEXIST && ::unlink(path.c_str()) == 0) {
    file = FileDescriptor(::open(path.c_str(), kFlags, kMode));
  }
  if (!file.is_open()) return fail(path_error("open", path, errno));
  return RandomAccessFile(path, std::move(file));
}

Result<std::uint64_t> RandomAccessFile::size() const {
  struct stat s {};
  if (::fstat(file_.get(), &s) != 0) return fail(path_error("stat", path_, errno));
  return static_cast<std::uint64_t>(s.st_size);
}

Result<bool> RandomAccessFile::read_at(std::uint64_t offset, void* to, std::size_t bytes) const {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::pread(file_.get(), out, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(path_error("read", path_, errno));
    if (n == 0) return false;
    out += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

Result<void> RandomAccessFile::write_at(std::uint64_t offset, const void* from, std::size_t bytes) const {
  const auto* in = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = ::pwrite(file_.get(), in, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(path_error("write", path_, errno));
    in += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace croft::os
