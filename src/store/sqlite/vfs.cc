#include "store/sqlite/vfs.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/assert.h"
#include "os/files.h"
#include "store/sqlite/page_checksum.h"

namespace croft::store {
namespace {

constexpr const char* kName = "croft";
constexpr std::size_t kMemoryPageBytes = 4096;
constexpr std::string_view kJournalSuffix = "-journal";
constexpr std::string_view kLogSuffix = "-wal";

/// With less than this free, other programs may take the last blocks while we allocate ours.
constexpr std::uint64_t kComfortableBytes = 1 << 20;

// SQLite's file format (sqlite.org/fileformat.html): where in the first page these are.
constexpr int kHeaderBytes = 100;
constexpr std::size_t kReservedBytesAt = 20;
constexpr std::size_t kUserVersionAt = 60;
constexpr int kPageBytesMin = 512;

sqlite3_vfs* base_vfs = nullptr;

/// What we know of an open database or log. It lives behind the memory that the layer below uses for the file.
struct OpenFile {
  const sqlite3_io_methods* base = nullptr;
  std::string path;
  bool is_database = false;
  bool has_sums = false;    ///< the pages have checksums; once true it stays so
  bool gives_sums = false;  ///< pages that are written get one: before all have it, when a database is made anew
  PageBelief belief = PageBelief::checked;
  std::optional<os::FileId> id;
  const volatile void* index_memory = nullptr;  ///< of a database
  bool has_looked_at_index = false;             ///< before it was opened

  [[nodiscard]] std::string index_path() const { return path + "-shm"; }
};

std::size_t offset_of_ours() {
  constexpr std::size_t kAlign = alignof(std::max_align_t);
  return (static_cast<std::size_t>(base_vfs->szOsFile) + kAlign - 1) / kAlign * kAlign;
}

OpenFile& ours_of(sqlite3_file* file) {
  return *std::launder(reinterpret_cast<OpenFile*>(reinterpret_cast<char*>(file) + offset_of_ours()));
}

struct Registry {
  /// The index of a database: SQLite maps it once for all connections of the process to one inode, and goes on with
  /// that mapping until the last of them is closed.
  struct Index {
    std::size_t databases = 0;
    std::optional<os::FileId> id;
  };
  std::mutex mutex;                                                  ///< guards all below
  std::map<std::pair<std::uint64_t, std::uint64_t>, Index> indexes;  ///< by device and inode of the database
  /// Changed tables of methods by the original ones.
  std::map<const sqlite3_io_methods*, sqlite3_io_methods> database_methods;
  std::map<const sqlite3_io_methods*, sqlite3_io_methods> log_methods;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

/// Why the last call of this thread ended in kRefused.
thread_local Refusal last_refusal;

int refuse(std::string why, Refusal::Kind kind = Refusal::Kind::name) {
  last_refusal = {kind, std::move(why)};
  return kRefused;
}

std::pair<std::uint64_t, std::uint64_t> key_of(const os::FileId& id) { return {id.device, id.inode}; }

// ---------------------------------------------------------------- what names may be

/// A file of a database is a regular file, or not there; one beside it has no second name. Looking opens nothing and
/// follows no link.
int look_at(const std::string& path, bool is_beside, std::optional<os::FileStatus>& found) {
  auto status = os::entry_status(path);
  if (!status) return SQLITE_CANTOPEN;
  found = *status;
  if (!found) return SQLITE_OK;
  const bool is_regular = found->type == os::FileStatus::Type::regular;
  // No name at all: it was removed while this looked.
  if (is_regular && (!is_beside || found->hard_links <= 1)) return SQLITE_OK;
  // The log itself holds what was acknowledged: its other names go, not it.
  if (is_regular) {
    return refuse(fmt::format("{} is a file with several names; nothing was changed: remove its other names", path));
  }
  return refuse(
      fmt::format("{} is {}; nothing was changed: look at who put it there, and remove it", path,
                  found->type == os::FileStatus::Type::directory ? "a directory" : "a link, pipe, socket or device"));
}

int refuse_journal(const std::string& path) {
  const auto status = os::entry_status(path);
  if (!status) return SQLITE_CANTOPEN;
  if (!*status) return SQLITE_OK;
  return refuse(
      fmt::format("{} is there, and Croft makes no rollback journal; one may change or delete any file. Nothing was "
                  "changed: look at who put it there, and remove it",
                  path));
}

int ask_access(sqlite3_vfs*, const char* path, int what, int* answer) {
  const std::string_view name = path;
  if (name.ends_with(kJournalSuffix)) {
    *answer = 0;
    return refuse_journal(path);
  }
  if (!name.ends_with(kLogSuffix)) return base_vfs->xAccess(base_vfs, path, what, answer);
  std::optional<os::FileStatus> found;
  const int code = look_at(path, /*is_beside=*/true, found);
  *answer = code == SQLITE_OK && found && found->bytes > 0 ? 1 : 0;
  return code;
}

/// SQLite removes the log beside an empty database; all else that it would remove are journals.
int delete_file(sqlite3_vfs*, const char* path, int sync_directory) {
  std::optional<os::FileStatus> found;
  if (!std::string_view(path).ends_with(kLogSuffix)) return SQLITE_IOERR_DELETE;
  const int code = look_at(path, /*is_beside=*/true, found);
  return code == SQLITE_OK ? base_vfs->xDelete(base_vfs, path, sync_directory) : code;
}

// ---------------------------------------------------------------- the index

void note_index(OpenFile& ours, const volatile void* memory, const std::optional<os::FileStatus>& status) {
  const std::lock_guard lock(registry().mutex);
  ours.index_memory = memory;
  if (!ours.id) return;
  Registry::Index& index = registry().indexes[key_of(*ours.id)];
  if (!index.id && status) index.id = status->id;
}

/// Makes the kernel allocate the blocks behind shared memory, by stores that change nothing, also when other processes
/// write to it at the same time.
void touch(volatile void* memory, std::size_t bytes) {
  auto* const first = static_cast<volatile char*>(memory);
  for (std::size_t at = 0; at < bytes; at += kMemoryPageBytes) {
    __atomic_fetch_or(first + at, char{0}, __ATOMIC_SEQ_CST);
  }
}

int map_index(sqlite3_file* file, int region, int region_bytes, int may_extend, void volatile** memory) {
  OpenFile& ours = ours_of(file);
  const std::string path = ours.index_path();
  if (!ours.has_looked_at_index) {
    std::optional<os::FileStatus> before;
    if (const int code = look_at(path, /*is_beside=*/true, before); code != SQLITE_OK) return code;
    ours.has_looked_at_index = true;
  }
  const int code = ours.base->xShmMap(file, region, region_bytes, may_extend, memory);
  if (code != SQLITE_OK || *memory == nullptr || (region != 0 && may_extend == 0)) return code;
  const auto status = os::file_status(path).value_or(std::nullopt);
  if (region == 0) note_index(ours, *memory, status);
  const std::uint64_t needed = (static_cast<std::uint64_t>(region) + 1) * static_cast<std::uint64_t>(region_bytes);
  if (may_extend == 0 || (status && status->allocated_bytes >= needed)) return SQLITE_OK;
  if (os::available_bytes(path) < kComfortableBytes) {
    *memory = nullptr;
    return SQLITE_IOERR_SHMSIZE;
  }
  touch(*memory, static_cast<std::size_t>(region_bytes));
  return SQLITE_OK;
}

int unmap_index(sqlite3_file* file, int remove) {
  OpenFile& ours = ours_of(file);
  {
    const std::lock_guard lock(registry().mutex);
    ours.index_memory = nullptr;
  }
  ours.has_looked_at_index = false;
  return ours.base->xShmUnmap(file, remove);
}

// ---------------------------------------------------------------- the database

/// The first page, or its header, says whether there are checksums: by the room for them, and by the version of the
/// tables, so that no single bit hides them.
bool tells_of_sums(const std::uint8_t* header) {
  constexpr std::array<std::uint8_t, 4> kVersion{0, 0, 0, kVersionWithPageSums};
  return header[kReservedBytesAt] == kPageSumBytes ||
         std::memcmp(header + kUserVersionAt, kVersion.data(), kVersion.size()) == 0;
}

int read_database(sqlite3_file* file, void* data, int count, sqlite3_int64 at) {
  OpenFile& ours = ours_of(file);
  const int code = ours.base->xRead(file, data, count, at);
  if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) return code;
  auto* const bytes = static_cast<std::uint8_t*>(data);
  if (at == 0 && count >= kHeaderBytes && tells_of_sums(bytes)) ours.has_sums = ours.gives_sums = true;
  if (!ours.has_sums || count < kPageBytesMin) return code;
  const auto page = static_cast<std::uint32_t>(at / kPageBytes) + 1;
  const bool whole = count == kPageBytes && at % kPageBytes == 0;
  const PageSum sum = whole ? page_sum_of(page, bytes) : PageSum::wrong;
  if (ours.belief != PageBelief::unchecked && sum == PageSum::wrong) {
    return refuse(
        fmt::format(
            "page {0} of {1} is damaged: it is not what was written there; nothing is handed out. Restore a backup "
            "with \"croft --store sqlite:{1} store restore BACKUP\"; if only another program has written to {1}, take "
            "what is in it with \"croft --store sqlite:{1} store restore {1} --force --cni-cache "
            "/var/lib/cni\"",
            page, ours.path),
        Refusal::Kind::damage);
  }
  if (ours.belief == PageBelief::checked && sum == PageSum::none) {
    return refuse(
        fmt::format("page {} of {} has no checksum: another program has copied the log into it", page, ours.path),
        Refusal::Kind::no_sum);
  }
  // The log gets no checksums of ours, and a plain SQLite may be the one that copies it into the database.
  if (whole) std::memset(bytes + kPageBytes - kPageSumBytes, 0, kPageSumBytes);
  return code;
}

int write_base(sqlite3_file* file, const void* data, int count, sqlite3_int64 at) {
  errno = 0;
  const int code = ours_of(file).base->xWrite(file, data, count, at);
  return code == SQLITE_IOERR_WRITE && errno == EFBIG ? SQLITE_FULL : code;
}

int write_database(sqlite3_file* file, const void* data, int count, sqlite3_int64 at) {
  if (!ours_of(file).gives_sums || count != kPageBytes || at % kPageBytes != 0) {
    return write_base(file, data, count, at);
  }
  std::array<std::uint8_t, kPageBytes> page{};
  std::memcpy(page.data(), data, page.size());
  put_page_sum(static_cast<std::uint32_t>(at / kPageBytes) + 1, page);
  return write_base(file, page.data(), count, at);
}

/// Calls `use(page, bytes)` for the pages of the file that have no checksum, until it gives another code than
/// SQLITE_OK.
template <class Use>
int for_each_page_without_sum(sqlite3_file* file, Use use) {
  const OpenFile& ours = ours_of(file);
  sqlite3_int64 bytes = 0;
  if (const int code = ours.base->xFileSize(file, &bytes); code != SQLITE_OK) return code;
  std::array<std::uint8_t, kPageBytes> page{};
  for (sqlite3_int64 number = 1; number * kPageBytes <= bytes; ++number) {
    int code = ours.base->xRead(file, page.data(), kPageBytes, (number - 1) * kPageBytes);
    // Who copies the log at its end cuts off what was reserved for the file.
    if (code == SQLITE_IOERR_SHORT_READ) break;
    const bool lacks =
        code == SQLITE_OK && page_sum_of(static_cast<std::uint32_t>(number), page.data()) == PageSum::none;
    if (lacks) code = use(static_cast<std::uint32_t>(number), page);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

/// The bytes of the checksum alone, which no power loss tears.
int write_sum(sqlite3_file* file, std::uint32_t number, std::array<std::uint8_t, kPageBytes>& page) {
  put_page_sum(number, page);
  const sqlite3_int64 end = sqlite3_int64{number} * kPageBytes;
  return ours_of(file).base->xWrite(file, page.data() + kPageBytes - kPageSumBytes, kPageSumBytes, end - kPageSumBytes);
}

/// Everything is read, so that everything is checked.
int map_nothing(sqlite3_file*, sqlite3_int64, int, void** memory) {
  *memory = nullptr;
  return SQLITE_OK;
}

// ---------------------------------------------------------------- the log

std::string_view database_of_log(std::string_view log) {
  return log.ends_with(kLogSuffix) ? log.substr(0, log.size() - kLogSuffix.size()) : log;
}

/// SQLite checks frames when it rebuilds the index, and believes the index from then on.
int read_log(sqlite3_file* file, void* data, int count, sqlite3_int64 at) {
  const OpenFile& ours = ours_of(file);
  constexpr sqlite3_int64 kFirstPageAt = kLogHeaderBytes + kFrameHeaderBytes;
  const sqlite3_int64 frames_before = (at - kFirstPageAt) / kFrameBytes;
  const bool is_page = count == kPageBytes && at >= kFirstPageAt && at == kFirstPageAt + frames_before * kFrameBytes;
  if (!is_page || ours.belief == PageBelief::unchecked) return ours.base->xRead(file, data, count, at);
  // With what is before it, whose checksum the frame's is continued from: one read.
  std::array<std::uint8_t, kFrameBytes + kFrameBytes> bytes;  // NOLINT: filled by the read
  const std::int64_t before = frames_before == 0 ? kLogHeaderBytes : kFrameBytes;
  const std::int64_t sum_at = (frames_before == 0 ? kLogHeaderBytes : kFrameHeaderBytes) - 8;
  const int count_all = static_cast<int>(before + kFrameBytes);
  const int code = ours.base->xRead(file, bytes.data(), count_all, at - kFrameHeaderBytes - before);
  if (code != SQLITE_OK) return ours.base->xRead(file, data, count, at);
  if (!is_right_frame(bytes.data() + sum_at, bytes.data() + before)) {
    return refuse(
        fmt::format(
            "frame {0} of {1} is damaged: it is not what was written there; nothing is handed out. Stop what has the "
            "store open and restore a backup with \"croft --store sqlite:{2} store restore BACKUP\"",
            frames_before + 1, ours.path, database_of_log(ours.path)),
        Refusal::Kind::damage);
  }
  std::memcpy(data, bytes.data() + before + kFrameHeaderBytes, kPageBytes);
  return SQLITE_OK;
}

// ---------------------------------------------------------------- opening and closing

int close_file(sqlite3_file* file) {
  OpenFile& ours = ours_of(file);
  const int code = ours.base->xClose(file);
  if (ours.is_database && ours.id) {
    const std::lock_guard lock(registry().mutex);
    const auto index = registry().indexes.find(key_of(*ours.id));
    if (index != registry().indexes.end() && --index->second.databases == 0) registry().indexes.erase(index);
  }
  ours.~OpenFile();
  return code;
}

void watch_file(sqlite3_file* file, const char* path, bool is_database, std::optional<os::FileId> id) {
  const sqlite3_io_methods* const base = file->pMethods;
  auto* const ours = new (reinterpret_cast<char*>(file) + offset_of_ours()) OpenFile;
  ours->base = base;
  ours->path = path;
  ours->is_database = is_database;
  ours->id = id;
  const std::lock_guard lock(registry().mutex);
  if (is_database && id) ++registry().indexes[key_of(*id)].databases;
  auto& tables = is_database ? registry().database_methods : registry().log_methods;
  const auto [table, is_new] = tables.try_emplace(base, *base);
  if (is_new) {
    table->second.xClose = close_file;
    table->second.xRead = is_database ? read_database : read_log;
    table->second.xWrite = is_database ? write_database : write_base;
    if (is_database) {
      table->second.xShmMap = map_index;
      table->second.xShmUnmap = unmap_index;
      table->second.xFetch = map_nothing;
    }
  }
  file->pMethods = &table->second;
}

int open_file(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  file->pMethods = nullptr;
  if ((flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL)) != 0) return SQLITE_CANTOPEN;
  const bool is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0 && path != nullptr;
  const bool is_log = (flags & SQLITE_OPEN_WAL) != 0 && path != nullptr;
  if (!is_database && !is_log) return base_vfs->xOpen(base_vfs, path, file, flags, flags_out);
  std::optional<os::FileStatus> before;
  if (const int code = look_at(path, !is_database, before); code != SQLITE_OK) return code;
  if (is_log && before) flags &= ~SQLITE_OPEN_CREATE;
  if (const int code = base_vfs->xOpen(base_vfs, path, file, flags, flags_out); code != SQLITE_OK) return code;
  std::optional<os::FileStatus> after;
  if (const int code = look_at(path, !is_database, after); code != SQLITE_OK) {
    file->pMethods->xClose(file);
    file->pMethods = nullptr;
    return code;
  }
  const bool is_same = after && (!before || before->id == after->id);
  watch_file(file, path, is_database, is_same ? std::optional(after->id) : std::nullopt);
  return SQLITE_OK;
}

bool register_vfs() {
  CROFT_ASSERT(sqlite3_initialize() == SQLITE_OK);
  base_vfs = sqlite3_vfs_find(nullptr);
  CROFT_ASSERT(base_vfs != nullptr);
  static sqlite3_vfs ours = *base_vfs;
  ours.zName = kName;
  ours.pNext = nullptr;
  ours.szOsFile = static_cast<int>(offset_of_ours() + sizeof(OpenFile));
  ours.xOpen = open_file;
  ours.xAccess = ask_access;
  ours.xDelete = delete_file;
  return sqlite3_vfs_register(&ours, /*makeDflt=*/0) == SQLITE_OK;
}

/// Null for what is not open, and for files of another layer.
const OpenFile* find_ours(const sqlite3_file* file) {
  const bool is_ours = file != nullptr && file->pMethods != nullptr && file->pMethods->xClose == close_file;
  return is_ours ? &ours_of(const_cast<sqlite3_file*>(file)) : nullptr;
}

/// Null where it is none of this layer.
sqlite3_file* file_of(sqlite3* db) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  return find_ours(file) == nullptr ? nullptr : file;
}

OpenFile* database_of(sqlite3* db) {
  sqlite3_file* const file = file_of(db);
  return file == nullptr ? nullptr : &ours_of(file);
}

}  // namespace

const char* croft_vfs() {
  static const bool kRegistered = register_vfs();
  CROFT_ASSERT(kRegistered);
  return kName;
}

Refusal refusal_of_files() { return last_refusal; }

OpenedFiles opened_files(const sqlite3_file* database, const sqlite3_file* log) {
  OpenedFiles files;
  if (const OpenFile* const ours = find_ours(log)) files.log = ours->id;
  const OpenFile* const ours = find_ours(database);
  if (ours == nullptr) return files;
  files.database = ours->id;
  const std::lock_guard lock(registry().mutex);
  files.index_memory = ours->index_memory;
  if (!ours->id || files.index_memory == nullptr) return files;
  const auto index = registry().indexes.find(key_of(*ours->id));
  if (index != registry().indexes.end()) files.index = index->second.id;
  return files;
}

bool has_page_sums(sqlite3* db) {
  const OpenFile* const ours = database_of(db);
  return ours != nullptr && ours->has_sums;
}

bool give_page_sums(sqlite3* db) {
  int reserved = int{kPageSumBytes};
  OpenFile* const ours = database_of(db);
  if (ours == nullptr) return false;
  ours->gives_sums = true;
  return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved) == SQLITE_OK;
}

void believe_pages(sqlite3* db, PageBelief belief) {
  if (OpenFile* const ours = database_of(db)) ours->belief = belief;
}

int give_missing_page_sums(sqlite3* db) {
  sqlite3_file* const file = file_of(db);
  if (file == nullptr) return SQLITE_MISUSE;
  // SQLite's own lock of who copies the log. Without the index in a file nobody else has the database open.
  constexpr int kCopyLock = 1;
  const OpenFile& ours = ours_of(file);
  const bool is_shared = ours.index_memory != nullptr;
  int code = is_shared ? ours.base->xShmLock(file, kCopyLock, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE) : SQLITE_OK;
  if (code != SQLITE_OK) return code;
  code =
      for_each_page_without_sum(file, [&](std::uint32_t number, auto& page) { return write_sum(file, number, page); });
  if (is_shared) ours.base->xShmLock(file, kCopyLock, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
  return code;
}

int look_for_missing_page_sums(sqlite3* db, bool& lacks) {
  lacks = false;
  sqlite3_file* const file = file_of(db);
  if (file == nullptr) return SQLITE_MISUSE;
  const int code = for_each_page_without_sum(file, [](std::uint32_t, const auto&) { return SQLITE_DONE; });
  lacks = code == SQLITE_DONE;
  return lacks ? SQLITE_OK : code;
}

}  // namespace croft::store
