#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

namespace croft::store {

/// The counters as a page of the database file has them, past the log: what the file itself has got of the register,
/// whatever the log says on top. `page` is the root page of the table `counters`, which never grows beyond it; layout
/// as in https://www.sqlite.org/fileformat2.html (§1.6 b-tree pages, §2.1 record format). Nothing when it is no such
/// page.
[[nodiscard]] std::optional<std::map<std::int64_t, std::int64_t>> counters_in_page(std::span<const std::uint8_t> page);

}  // namespace croft::store
