#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include <sqlite3.h>

namespace croft::store {

/// The counters as a page of the database file has them, past the log: what the file itself has got of the register,
/// whatever the log says on top. `page` is the root page of the table `counters`, which never grows beyond it; layout
/// as in https://www.sqlite.org/fileformat2.html (§1.6 b-tree pages, §2.1 record format). Nothing when it is no such
/// page.
[[nodiscard]] std::optional<std::map<std::int64_t, std::int64_t>> counters_in_page(std::span<const std::uint8_t> page);

/// The last revision that the database file itself has, past the log; `page` is the number of that root page, 0 when it
/// is not known. Nothing when it can't be told. One below `expected` is read a few times more: a checkpoint may be
/// writing the page. `file`: SQLite's handle, null when there is none.
[[nodiscard]] std::optional<std::int64_t> revision_in_file(sqlite3_file* file, std::uint32_t page,
                                                           std::int64_t expected);

}  // namespace croft::store
