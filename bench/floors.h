#pragma once

#include <filesystem>
#include <string>

#include "processes.h"

namespace croft::bench {

/// The median of one fdatasync of 4 KiB in place on the disk of `directory`.
[[nodiscard]] Milliseconds disk_sync(const std::filesystem::path& directory);

/// The median of a static process that does nothing; `bin` is the programs' folder, with the benchmarks' beside it.
[[nodiscard]] Milliseconds empty_process(const std::string& bin);

}  // namespace croft::bench
