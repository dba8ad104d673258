#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "ipam/audit/runtime_comparison.h"
#include "ipam/use/transact.h"

namespace croft::app {

/// Which cache of a runtime is compared with the register, by `croft check` and `croft ip release`.
struct RuntimeCache {
  std::vector<std::string> directories;
  std::string node;
  std::int64_t grace_seconds = 60;
  bool in_container = false;

  /// The options that say the same again, each after a space; empty without a directory.
  [[nodiscard]] std::string words() const;
};

/// Adds the options; `first` is what --cni-cache is for.
void add_runtime_cache_options(CLI::App& command, RuntimeCache& cache, const std::string& first);

/// The runtime's knowledge; nothing without a directory. Warns of entries that can't be told to be there or gone.
/// Errors: invalid_argument for options that do not fit together or the store, and for a directory that is no cache;
/// not_found for a node that the register does not know.
[[nodiscard]] Result<std::optional<core::audit::LiveAttachments>> read_runtime_cache(const engine::Context& context,
                                                                                     const RuntimeCache& cache);
/// The same once more, without a warning.
[[nodiscard]] Result<std::optional<core::audit::LiveAttachments>> read_runtime_cache_again(const RuntimeCache& cache);

}  // namespace croft::app
