#pragma once

namespace croft::store {

/// The name of the SQLite file layer that stores open their files through: SQLite's default one with two changes.
///
/// A write-ahead log that exists is opened without the flag "create". SQLite syncs the directory once in each process
/// that may have created the log; for a plugin, a process an ADD, that would double the syncs. Croft makes the log
/// durable in its directory when it creates the store.
///
/// The shared index of the log is handed out only when all its blocks are allocated. SQLite writes one byte to each
/// 4 KiB of it, which on a file system of smaller blocks leaves holes; on a full disk the first store into a hole would
/// kill the process with SIGBUS. Where there is no room, SQLite gets SQLITE_IOERR_SHMSIZE.
///
/// Registers the layer on first use; the default one then in force is the one below.
[[nodiscard]] const char* croft_vfs();

}  // namespace croft::store
