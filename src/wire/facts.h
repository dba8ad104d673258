#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/collect/facts.h"

// The file of facts: which nodes and pods exist, written by whoever knows (docs/formats/facts.md).

namespace croft::wire {

/// What a file says.
struct FactsFile {
  std::vector<core::collect::NodeFact> nodes;
  std::optional<std::vector<core::collect::PodFact>> pods;  ///< absent: not known
  bool complete = false;
  std::optional<WallTime> time;  ///< the moment the lists stand for, when the file says so
};

inline constexpr std::size_t kFactsBytesMax = std::size_t{128} << 20;
inline constexpr std::size_t kFactsNodesMax = 100'000;
inline constexpr std::size_t kFactsPodsMax = 1'000'000;

/// Reads one JSON object. Error: invalid_argument naming the member and its value.
[[nodiscard]] Result<FactsFile> parse_facts(std::string_view bytes);

}  // namespace croft::wire
