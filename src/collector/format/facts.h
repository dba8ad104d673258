#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "collector/decide/facts.h"

// The file of facts: which nodes and pods exist, written by whoever knows (docs/formats/facts.md).

namespace croft::wire {

/// The content of a file.
struct FactsFile {
  std::vector<core::collect::NodeFact> nodes;
  std::optional<std::vector<core::collect::PodFact>> pods;  ///< absent: not known
  bool complete = false;
  std::optional<WallTime> time;  ///< the moment the lists stand for, when the file says so
  std::string cluster;           ///< UID of the namespace kube-system; empty: not said
};

/// 5,000 nodes with all their labels and 150,000 pods take about 54 MB, and 1.8 million values.
inline constexpr std::size_t kFactsBytesMax = std::size_t{96} << 20;
/// The number of JSON values, whatever they are: they are in memory for as long as the file is read.
inline constexpr std::size_t kFactsValuesMax = 6'000'000;
inline constexpr std::size_t kFactsNodesMax = 100'000;
inline constexpr std::size_t kFactsPodsMax = 500'000;

/// Reads one JSON object. Labels are looked at and not kept: nothing rests on them. Error: invalid_argument naming the
/// member and its value.
[[nodiscard]] Result<FactsFile> parse_facts(std::string_view bytes);

}  // namespace croft::wire
