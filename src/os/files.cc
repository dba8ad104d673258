#include "os/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "os/file_descriptor.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr mode_t kAllModeBits = 07777;
constexpr std::uint64_t kIsMountPoint = 0x2000;  // STATX_ATTR_MOUNT_ROOT, which older headers lack

/// `flags`: AT_SYMLINK_NOFOLLOW or none.
[[nodiscard]] Result<std::optional<FileStatus>> status_of(const std::string& path, int flags) {
  struct statx s {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_SYNC_AS_STAT | flags, STATX_BASIC_STATS, &s) != 0) {
    if (errno == ENOENT) return std::optional<FileStatus>();
    return fail(system_error("look at", path, errno));
  }
  FileStatus status;
  status.type = S_ISREG(s.stx_mode)   ? FileStatus::Type::regular
                : S_ISDIR(s.stx_mode) ? FileStatus::Type::directory
                                      : FileStatus::Type::other;
  status.id = {::makedev(s.stx_dev_major, s.stx_dev_minor), s.stx_ino};
  status.bytes = s.stx_size;
  status.allocated_bytes = s.stx_blocks * 512;  // the unit of it, see statx(2)
  status.is_mount_point = (s.stx_attributes & kIsMountPoint) != 0;
  return std::optional(status);
}

/// The users of a new file.
struct Access {
  mode_t mode = kFileMode;
  std::optional<std::pair<uid_t, gid_t>> owner = std::nullopt;  ///< nothing: whoever makes it
};
Access access_of(FileMode mode) { return {static_cast<mode_t>(mode)}; }
[[nodiscard]] Result<struct stat> look_at(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return fail(system_error("look at", path, errno));
  return s;
}
[[nodiscard]] Result<Access> access_of_file(const std::string& path) {
  TRY(const struct stat s, look_at(path));
  return Access{s.st_mode & kAllModeBits, std::pair(s.st_uid, s.st_gid)};
}

/// The owner first: to give one takes bits of the mode away.
int give_access(int fd, const Access& access) {
  mode_t mode = access.mode;
  if (access.owner && ::fchown(fd, access.owner->first, access.owner->second) != 0) {
    if (errno != EPERM && errno != EINVAL) return errno;
    // The group alone may still be given by its members. A program that runs as its owner would run as another.
    static_cast<void>(!::fchown(fd, static_cast<uid_t>(-1), access.owner->second));
    mode &= ~static_cast<mode_t>(S_ISUID | S_ISGID);
  }
  if (mode == kFileMode && !access.owner) return 0;
  return ::fchmod(fd, mode) == 0 ? 0 : errno;
}

[[nodiscard]] Result<void> write_new_file(const std::string& path, std::string_view content, const Access& access) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  FileDescriptor file(::open(path.c_str(), kFlags, kFileMode));
  if (!file.is_open() && errno == EEXIST && ::unlink(path.c_str()) == 0) {
    file = FileDescriptor(::open(path.c_str(), kFlags, kFileMode));  // a draft of a process that died
  }
  if (!file.is_open()) return fail(system_error("create", path, errno));
  if (const int why = give_access(file.get(), access); why != 0) {
    return fail(system_error("change the mode of", path, why));
  }
  if (const int why = write_all(file.get(), content); why != 0) return fail(system_error("write", path, why));
  if (::fsync(file.get()) != 0) return fail(system_error("sync", path, errno));
  return {};
}

[[nodiscard]] Result<void> replace_durably(const std::string& path, std::string_view content, const Access& access) {
  const std::string draft = fmt::format("{}.{}.tmp", path, ::getpid());
  auto written = write_new_file(draft, content, access);
  if (written) written = rename_durably(draft, path);
  if (!written) ::unlink(draft.c_str());
  return written;
}

[[nodiscard]] Result<void> write_named_draft(const std::string& path, std::string_view content, const Access& access) {
  auto written = write_new_file(path, content, access);
  if (!written) ::unlink(path.c_str());
  return written;
}

/// A directory and its missing parents.
[[nodiscard]] Result<void> make_with_parents(const std::string& path, mode_t mode, bool durably) {
  TRY(const auto there, file_status(path));
  if (there && there->type == FileStatus::Type::directory) return {};
  if (there) return fail(system_error("create directory", path, ENOTDIR));
  const std::string parent = directory_of(path);
  if (parent != path) TRY_VOID(make_with_parents(parent, mode, durably));
  if (::mkdir(path.c_str(), mode) == 0) return durably ? sync_directory(parent) : Result<void>();
  if (errno == EEXIST) return {};
  return fail(system_error("create directory", path, errno));
}

}  // namespace

Result<std::optional<FileStatus>> file_status(const std::string& path) { return status_of(path, 0); }

Result<std::optional<FileStatus>> entry_status(const std::string& path) { return status_of(path, AT_SYMLINK_NOFOLLOW); }

Result<WallTime> modification_time(const std::string& path) {
  TRY(const struct stat s, look_at(path));
  return WallTime(std::chrono::seconds(s.st_mtim.tv_sec) + std::chrono::nanoseconds(s.st_mtim.tv_nsec));
}

bool is_on_read_only_file_system(const std::string& path) {
  struct statvfs s {};
  return ::statvfs(path.c_str(), &s) == 0 && (s.f_flag & ST_RDONLY) != 0;
}

std::uint64_t available_bytes(const std::string& path) {
  struct statvfs s {};
  if (::statvfs(path.c_str(), &s) != 0) return 0;
  const bool may_use_reserve = ::geteuid() == 0;
  return static_cast<std::uint64_t>(may_use_reserve ? s.f_bfree : s.f_bavail) * s.f_frsize;
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<std::string> resolved_path(const std::string& path) {
  const auto resolve = [](const std::string& p) {
    return std::unique_ptr<char, decltype(&std::free)>(::realpath(p.c_str(), nullptr), &std::free);
  };
  if (path.empty() || path.back() == '/') {
    return fail(ErrorCode::invalid_argument, fmt::format("path \"{}\" names no file; append a file name", path));
  }
  if (const auto whole = resolve(path)) return std::string(whole.get());
  if (errno != ENOENT) return fail(system_error("resolve", path, errno));
  struct stat s {};
  if (::lstat(path.c_str(), &s) == 0) {
    // It may have been made meanwhile, by a process that does the same: only a link that still leads nowhere is one.
    if (const auto whole = resolve(path)) return std::string(whole.get());
    return fail(ErrorCode::not_found, fmt::format("{} is a symbolic link to nothing; remove or correct it", path));
  }
  const auto directory = resolve(directory_of(path));
  if (!directory) return fail(system_error("resolve directory", directory_of(path), errno));
  const std::string base = directory.get();
  return (base == "/" ? base : base + "/") + path.substr(path.rfind('/') + 1);
}

Result<void> make_directories(const std::string& path) { return make_with_parents(path, kDirectoryMode, true); }

Result<void> make_shared_directories(const std::string& path) {
  constexpr mode_t kMode = 0755;
  return make_with_parents(path, kMode, false);
}

Result<void> create_file(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const FileDescriptor file(::open(path.c_str(), kFlags, kFileMode));
  if (!file.is_open()) return fail(system_error("create", path, errno));
  return {};
}

Result<void> sync_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) return fail(system_error("open", path, errno));
  if (::fsync(file.get()) != 0) return fail(system_error("sync", path, errno));
  return {};
}

Result<void> sync_directory(const std::string& path) {
  const FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return fail(system_error("open directory", path, errno));
  if (::fsync(directory.get()) != 0) return fail(system_error("sync directory", path, errno));
  return {};
}

std::string absolute_path(const std::string& path) {
  std::error_code failed;  // the current directory is gone
  const auto absolute = std::filesystem::absolute(path, failed);
  return failed ? path : absolute.lexically_normal().string();
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) return fail(system_error("open", path, errno));
  struct stat s {};
  if (::fstat(file.get(), &s) != 0) return fail(system_error("look at", path, errno));
  if (!S_ISREG(s.st_mode)) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} is not a regular file; correct the path", path));
  }
  const auto too_long = [&] {
    return fail(ErrorCode::invalid_argument, fmt::format("{} is longer than {} bytes", path, bytes_max));
  };
  // A file of the kernel's has no size before it is read.
  const std::size_t expected = s.st_size > 0 ? static_cast<std::size_t>(s.st_size) : 0;
  if (expected > bytes_max) return too_long();
  std::string content;
  content.reserve(expected);
  // With room for the end, so that what is small touches few pages.
  const std::size_t chunk_max = expected > 0 ? expected + 1 : std::size_t{1} << 16;
  std::string chunk(std::min({bytes_max + 1, chunk_max, std::size_t{1} << 16}), '\0');
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("read", path, errno));
    if (got == 0) return content;
    content.append(chunk, 0, static_cast<std::size_t>(got));
    if (content.size() > bytes_max) return too_long();
  }
}

Result<void> replace_file_durably(const std::string& path, std::string_view content, FileMode mode) {
  return replace_durably(path, content, access_of(mode));
}

Result<void> write_draft(const std::string& path, std::string_view content, FileMode mode) {
  return write_named_draft(path, content, access_of(mode));
}

Result<void> replace_file_like(const std::string& path, std::string_view content, const std::string& like) {
  TRY(const Access access, access_of_file(like));
  return replace_durably(path, content, access);
}

Result<void> write_draft_like(const std::string& path, std::string_view content, const std::string& like) {
  TRY(const Access access, access_of_file(like));
  return write_named_draft(path, content, access);
}

Result<void> link_file(const std::string& path, const std::string& second) {
  if (::link(path.c_str(), second.c_str()) != 0) {
    return fail(system_error("link " + path + " to", second, errno));
  }
  return {};
}

Result<void> rename_durably(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return fail(system_error("rename " + from + " to", to, errno));
  return sync_directory(directory_of(to));
}

Result<void> remove_file_durably(const std::string& path) {
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT) return {};
    return fail(system_error("remove", path, errno));
  }
  return sync_directory(directory_of(path));
}

Result<std::vector<std::string>> list_directory(const std::string& path, std::size_t count_max) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  if (!directory) return fail(system_error("list", path, errno));
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() == count_max) {
      return fail(ErrorCode::invalid_argument, fmt::format("{} has more than {} entries", path, count_max));
    }
    names.emplace_back(name);
  }
  if (errno != 0) return fail(system_error("list", path, errno));
  std::sort(names.begin(), names.end());
  return names;
}

Result<Runnable> runnable(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) {
    if (errno == ENOENT) return Runnable::absent;
    return fail(system_error("look at", path, errno));
  }
  const bool may_run = (s.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
  return S_ISREG(s.st_mode) && s.st_size > 0 && may_run ? Runnable::yes : Runnable::no;
}

Result<std::string> read_secret_file(const std::string& path, std::size_t bytes_max) {
  TRY(std::string content, read_file(path, bytes_max));
  TRY(const struct stat s, look_at(path));
  if ((s.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0) {
    return fail(ErrorCode::permission_denied,
                fmt::format("{} is a secret that others can read or write (mode {:04o}): chmod {} {}", path,
                            s.st_mode & 07777, (s.st_mode & S_IRGRP) != 0 ? "640" : "600", path));
  }
  return content;
}

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
