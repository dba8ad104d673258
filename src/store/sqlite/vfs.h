#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sqlite3.h>

#include "os/files.h"

namespace croft::store {

/// The name of the SQLite file layer that stores open their files through: SQLite's default one with these
/// changes.
///
/// A write-ahead log that exists is opened without the flag "create". SQLite syncs the directory once in each process
/// that may have created the log; for a plugin, a process an ADD, that would double the syncs. Croft makes the log
/// durable in its directory when it creates the store.
///
/// The shared index of the log is handed out only when all its blocks are allocated. SQLite writes one byte to each
/// 4 KiB of it, which on a file system of smaller blocks leaves holes; on a full disk the first store into a hole would
/// kill the process with SIGBUS. Where there is no room, SQLite gets SQLITE_IOERR_SHMSIZE.
///
/// A write beyond the limit of the process on the size of its files (ulimit -f) is lack of room, as on a full disk, and
/// no failure of the disk.
///
/// The pages of a database that has room for checksums (give_page_sums) get one whenever they are written to its file,
/// and are checked whenever they are read from it; pages read from the log are checked by the checksums of SQLite's own
/// that they have there. What is damaged, or has none, is kRefused, and nothing of it is handed out. The file is never
/// mapped.
///
/// No rollback journal is ever looked into, made or removed: one beside a database is kRefused, as is a log or an index
/// that is no regular file or has a second name. SQLite would roll back, and delete what the journal names, before
/// anybody can ask whose database it is. A journal in memory is what remains (PRAGMA journal_mode=MEMORY).
///
/// Registers the layer on first use; the default one then in force is the one below.
[[nodiscard]] const char* croft_vfs();

/// The layer's own refusal of a file; SQLite itself never answers so.
inline constexpr int kRefused = SQLITE_IOERR_DATA;

/// Why the last call of this thread that ended in kRefused did.
struct Refusal {
  enum class Kind : std::uint8_t {
    name,    ///< a file beside the database, or in its place, that is none of ours
    no_sum,  ///< a page that another program wrote, most likely from the log; may be right
    damage,  ///< a page, or a frame of the log
  } kind = Kind::name;
  std::string what;  ///< names the file, what is wrong with it and the remedy
};
[[nodiscard]] Refusal refusal_of_files();

/// Whether pages have checksums; known once the header has been read.
[[nodiscard]] bool has_page_sums(sqlite3* db);
/// For an empty database, or one that is about to be overwritten or vacuumed: all its pages will have checksums. False
/// when SQLite does not want to.
[[nodiscard]] bool give_page_sums(sqlite3* db);
/// What is handed out of the pages of a file that has checksums.
enum class PageBelief : std::uint8_t {
  checked,     ///< what has a right one
  copied_too,  ///< also what has none: for who compares everything with everything afterwards
  unchecked,   ///< everything, of the log too: for what another program has written
};
/// For what is read from here on.
void believe_pages(sqlite3* db, PageBelief belief);

/// Gives a checksum to each page of the database file that has none, as it is. It must have been proven whole, and the
/// store's lock be held. SQLite's code; SQLITE_BUSY while a program without that lock copies the log.
[[nodiscard]] int give_missing_page_sums(sqlite3* db);
/// Whether a page of the file has none and needs one. SQLite's code.
[[nodiscard]] int look_for_missing_page_sums(sqlite3* db, bool& lacks);

/// Which files a connection of this layer really has open: what the paths named when SQLite opened them. A file that
/// was replaced at that very moment counts as unknown.
struct OpenedFiles {
  std::optional<os::FileId> database;
  std::optional<os::FileId> log;
  std::optional<os::FileId> index;              ///< connections of one process to one database share it
  const volatile void* index_memory = nullptr;  ///< its first region, while the connection has it mapped
};

/// `database` and `log` are SQLite's handles of this layer; null where none is open.
[[nodiscard]] OpenedFiles opened_files(const sqlite3_file* database, const sqlite3_file* log);

}  // namespace croft::store
