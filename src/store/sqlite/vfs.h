#pragma once

namespace croft::store {

/// The name of the SQLite file layer of stores: the default one, but a write-ahead log that is there is opened without
/// the flag "create". With it SQLite syncs the directory once in each process that commits: two syncs an ADD of a lone
/// plugin instead of one (docs/adr/0003-sqlite-mode.md). Croft makes the log durable when it makes the store.
///
/// Registers the layer on first use, above the default one then in force.
[[nodiscard]] const char* croft_vfs();

}  // namespace croft::store
