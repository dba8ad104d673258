#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace croft::os {

/// The file that a path names: two FileIds are equal when they are the same file.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};
struct FileStatus {
  enum class Type : std::uint8_t { regular, directory, other } type = Type::other;
  FileId id;
  std::uint64_t bytes = 0;
  std::uint64_t allocated_bytes = 0;  ///< less than `bytes` when the file has holes
  bool is_mount_point = false;  ///< of a file or directory that was mounted at this very path, where the kernel says so
};

/// The status of what a path names, symbolic links followed; nothing when there is nothing. Opens nothing, so it never
/// waits for a FIFO or a device. Errors: as system_error maps them (a loop of links is invalid_argument).
[[nodiscard]] Result<std::optional<FileStatus>> file_status(const std::string& path);

/// The same of the entry itself: a symbolic link is not followed, and is neither a regular file nor a directory.
[[nodiscard]] Result<std::optional<FileStatus>> entry_status(const std::string& path);

/// When the content of what a path names was last changed, symbolic links followed. Errors: as file_status; not_found.
[[nodiscard]] Result<WallTime> modification_time(const std::string& path);

/// The path without symbolic links, `.` and `..`. The directory must exist; the last part need not. Errors: not_found
/// (directory), invalid_argument (loop, or the path ends in a slash), permission_denied.
[[nodiscard]] Result<std::string> resolved_path(const std::string& path);

/// Whether the file system of a path is mounted read-only; false when it can't be found out.
[[nodiscard]] bool is_on_read_only_file_system(const std::string& path);

/// How much this user can still write to the file system of a path; 0 when it can't be found out.
[[nodiscard]] std::uint64_t available_bytes(const std::string& path);

/// The directory part of a path: "/a" of "/a/b", "." of "b", "/" of "/b".
[[nodiscard]] std::string directory_of(const std::string& path);

/// Makes a directory and its missing parents with mode 0700, each made durable in its parent. An existing directory is
/// a success. Errors: as system_error maps them; invalid_argument when a part of the path is no directory.
[[nodiscard]] Result<void> make_directories(const std::string& path);

/// Makes a directory and its missing parents for all to read (0755, less the umask), not durably: for locks and other
/// things of one boot. An existing directory is a success. Errors as make_directories.
[[nodiscard]] Result<void> make_shared_directories(const std::string& path);

/// Makes an empty file of mode 0600. Error: already_exists.
[[nodiscard]] Result<void> create_file(const std::string& path);

/// Makes the content of a file durable.
[[nodiscard]] Result<void> sync_file(const std::string& path);

/// Makes the entries of a directory (creations, renames, removals) durable.
[[nodiscard]] Result<void> sync_directory(const std::string& path);

/// The whole of a regular file. Errors: not_found; invalid_argument when it is no regular file (never waits for a FIFO)
/// or longer than `bytes_max`.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t bytes_max);

/// A relative path as one from the root, by the current directory; without `.` and `..`. Nothing has to be there.
[[nodiscard]] std::string absolute_path(const std::string& path);

/// The mode of a new file, whatever the umask.
enum class FileMode : std::uint16_t { for_user = 0600, readable_by_all = 0644, executable_by_all = 0755 };

/// Puts a file with this content in place of what has the name, durably and at once: after a crash the name has the old
/// content or the new. The file is always a new one: what a symbolic link of that name points to is not touched. The
/// directory must exist.
[[nodiscard]] Result<void> replace_file_durably(const std::string& path, std::string_view content,
                                                FileMode mode = FileMode::for_user);

/// Makes a file with this content durably under a name that nobody else looks at, for rename_durably(): what had the
/// name is removed before. The directory must exist, and its entry is durable once it was renamed.
[[nodiscard]] Result<void> write_draft(const std::string& path, std::string_view content,
                                       FileMode mode = FileMode::for_user);

/// As replace_file_durably and write_draft, with the mode, the owner and the group of the file `like`, which may be the
/// one that is replaced. They are kept as far as this user may give them, and no bit more. Error also: not_found, of
/// `like`.
[[nodiscard]] Result<void> replace_file_like(const std::string& path, std::string_view content,
                                             const std::string& like);
[[nodiscard]] Result<void> write_draft_like(const std::string& path, std::string_view content, const std::string& like);

/// Gives what a path names, symbolic links not followed, a second name. Errors: already_exists, not_found; as
/// system_error maps them where the file system knows no second names.
[[nodiscard]] Result<void> link_file(const std::string& path, const std::string& second);

/// Gives a durable file its final name, durably; what had the name is replaced.
[[nodiscard]] Result<void> rename_durably(const std::string& from, const std::string& to);

/// Removes a file, durably. Nothing there is a success.
[[nodiscard]] Result<void> remove_file_durably(const std::string& path);

/// Names in a directory without `.` and `..`, ascending bytewise. Error: storage as system_error maps it;
/// invalid_argument when there are more than `count_max`.
[[nodiscard]] Result<std::vector<std::string>> list_directory(const std::string& path, std::size_t count_max);

/// The kind of program that a path names, symbolic links followed.
enum class Runnable : std::uint8_t {
  absent,  ///< nothing is there
  no,      ///< no regular file, an empty one, or nobody may run it by its mode
  yes,
};

/// Opens nothing. Errors: as system_error maps them.
[[nodiscard]] Result<Runnable> runnable(const std::string& path);

/// Writes a file that somebody named for output, as replace_file_durably. Only a regular file is replaced, or a new
/// name taken: what else has the name (a link, a FIFO, a device such as /dev/full) belongs to somebody and stays.
/// Error: invalid_argument naming the path; else as replace_file_durably.
[[nodiscard]] Result<void> write_output_file(const std::string& path, std::string_view content,
                                             FileMode mode = FileMode::for_user);

/// As read_file, for a key or a password. Error also: permission_denied, with the mode to set, when others than its
/// user and its group may read it, or others than its user may write it.
[[nodiscard]] Result<std::string> read_secret_file(const std::string& path, std::size_t bytes_max);

}  // namespace croft::os
