#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "os/file_descriptor.h"
#include "os/files.h"

namespace croft::os {

/// The Error of a failed call in the form of Go's os.PathError, which users of the reference CNI plugins match:
/// "<operation> <path>: <reason, lower case>". Codes as system_error.
[[nodiscard]] Error path_error(std::string_view operation, std::string_view path, int error_number);

/// The stamp that tells whether a directory's entries were changed. The kernel sets both times to the same moment
/// whenever an entry comes, goes or is renamed; only somebody who sets the first by hand makes them differ.
struct DirectoryStamp {
  FileId id;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const DirectoryStamp&, const DirectoryStamp&) = default;
};

/// A file as Directory::read sees it.
struct SmallFile {
  bool regular = true;  ///< links are followed; a directory, a FIFO or a device has no content
  bool cut = false;     ///< there was more than `bytes_max`
  std::string content;
  friend bool operator==(const SmallFile&, const SmallFile&) = default;
};

/// A file on its way to a name. Must not outlive its Directory.
class DraftFile {
 public:
  DraftFile(DraftFile&& other) noexcept
      : file_(std::move(other.file_)), directory_(other.directory_), name_(std::exchange(other.name_, {})) {}
  DraftFile& operator=(DraftFile&&) = delete;
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;
  /// Removes the name it had meanwhile.
  ~DraftFile();

 private:
  friend class Directory;
  DraftFile(FileDescriptor file, int directory, std::string name)
      : file_(std::move(file)), directory_(directory), name_(std::move(name)) {}
  FileDescriptor file_;
  int directory_;
  std::string name_;  ///< empty when it has none
};

/// An open directory and the files right in it. Names are single path components, unchecked. All errors as path_error
/// gives them, with the whole path. Several threads may read files of one.
class Directory {
 public:
  /// Error: not_found.
  [[nodiscard]] static Result<Directory> open(const std::string& path);
  /// Makes the directory and its missing parents (0755, less the umask) first, each durable in its parent. One that
  /// exists is not synced: see sync_name.
  [[nodiscard]] static Result<Directory> make(const std::string& path);

  /// Makes the directory's own name durable, in its parent: whoever made it may have died before that.
  [[nodiscard]] Result<void> sync_name() const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path_of(std::string_view name) const;

  [[nodiscard]] Result<DirectoryStamp> stamp() const;
  /// Sets the time of modification and answers the stamp after that, which a file system with coarse times may have
  /// rounded.
  [[nodiscard]] Result<DirectoryStamp> set_modified(std::int64_t ns) const;
  /// Whether the file system is one whose times behave as DirectoryStamp says: ext2 to 4, XFS, btrfs, tmpfs, overlay,
  /// F2FS, ZFS, bcachefs. Nothing that another machine can change.
  [[nodiscard]] bool has_local_times() const;
  /// Whether entries can be made here now: permission, read-only mount, free space and inodes.
  [[nodiscard]] Result<void> check_writable() const;

  /// Calls f with each name but `.` and `..`, in no order; f answers whether to go on.
  [[nodiscard]] Result<void> for_each_name(const std::function<bool(const char* name)>& f) const;

  /// At most `bytes_max` bytes of a file; nullopt when there is none. Waits for nothing (FIFOs, devices).
  [[nodiscard]] Result<std::optional<SmallFile>> read(const char* name, std::size_t bytes_max) const;
  /// The same of what is a regular file itself: a link is not followed, and nothing else is opened. `modified` gets the
  /// time of its last change before the reading.
  [[nodiscard]] Result<std::optional<SmallFile>> read_own(const char* name, std::size_t bytes_max,
                                                          WallTime* modified = nullptr) const;
  /// Whether the name exists, be it a link to nothing.
  [[nodiscard]] Result<bool> exists(const char* name) const;
  /// When a file was changed last, links followed; nullopt when there is none.
  [[nodiscard]] Result<std::optional<WallTime>> modified(const char* name) const;

  /// Makes a new file, synced, that has no name yet and is gone with its object. On a file system that knows no such
  /// files it has `draft` for a name meanwhile; what had that name is a leftover and goes first.
  [[nodiscard]] Result<DraftFile> create_draft(const char* draft, std::string_view content, unsigned mode) const;
  /// Gives it its name; false, and nothing changes, when that is in use. It is this very file that gets the name, also
  /// when somebody else has the draft's by now.
  [[nodiscard]] Result<bool> name_draft(const DraftFile& file, const char* name) const;
  /// Writes over a regular file from its start, or makes it; neither synced nor atomic. A symbolic link of that name is
  /// replaced by a file, and what it points to is left alone. Anything else: invalid_argument.
  [[nodiscard]] Result<void> overwrite(const char* name, std::string_view content, unsigned mode) const;
  /// False when there was none.
  [[nodiscard]] Result<bool> remove(const char* name) const;
  /// Makes all entries durable. A file system that has no such call (EINVAL) counts as done.
  [[nodiscard]] Result<void> sync() const;

 private:
  Directory(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  [[nodiscard]] Result<std::optional<SmallFile>> read_opened(const FileDescriptor& file, const char* name,
                                                             std::size_t bytes_max) const;
  [[nodiscard]] Result<DraftFile> open_draft(const char* draft, unsigned mode) const;

  std::string path_;
  FileDescriptor file_;
};

/// The whole of a file, with errors as path_error. A directory is an error; so is more than `bytes_max`.
[[nodiscard]] Result<std::string> read_named_file(const std::string& path, std::size_t bytes_max);

/// Makes one directory of mode 0700, not durably: for what may be lost. One that is there is a success.
[[nodiscard]] Result<void> make_private_directory(const std::string& path);

/// Gives a file another name, in place of what has it; not durably.
[[nodiscard]] Result<void> rename_file(const std::string& from, const std::string& to);

/// A file that is read and written in pieces.
class RandomAccessFile {
 public:
  /// For reading and writing; nullopt when there is none or it is no regular file.
  [[nodiscard]] static Result<std::optional<RandomAccessFile>> open(const std::string& path);
  /// Makes an empty file of mode 0600; what had the name goes first.
  [[nodiscard]] static Result<RandomAccessFile> create(const std::string& path);

  [[nodiscard]] Result<std::uint64_t> size() const;
  /// Reads exactly `bytes` bytes; false when the file ends before that.
  [[nodiscard]] Result<bool> read_at(std::uint64_t offset, void* to, std::size_t bytes) const;
  [[nodiscard]] Result<void> write_at(std::uint64_t offset, const void* from, std::size_t bytes) const;

 private:
  RandomAccessFile(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  FileDescriptor file_;
};

}  // namespace croft::os
