#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "collector/decide/facts.h"
#include "collector/use/node_facts.h"

namespace croft::wire {

// The file of facts: which nodes and pods exist, written by whoever knows (docs/formats/facts.md).

/// The content of a file.
struct FactsFile {
  std::vector<core::collect::NodeFact> nodes;
  std::optional<std::vector<core::collect::PodFact>> pods;  ///< absent: not known
  bool complete = false;
  std::optional<WallTime> time;  ///< the moment the lists stand for, when the file says so
  std::string cluster;           ///< UID of the namespace kube-system; empty: not said
};

/// 5,000 nodes with all their labels and 150,000 pods take about 54 MB.
inline constexpr std::size_t kFactsBytesMax = std::size_t{96} << 20;
inline constexpr std::size_t kFactsNodesMax = 100'000;
inline constexpr std::size_t kFactsPodsMax = 500'000;

/// Reads one JSON object. Error: invalid_argument naming the member and its value.
[[nodiscard]] Result<FactsFile> parse_facts(std::string_view bytes);

}  // namespace croft::wire

namespace croft::edge {

/// Facts out of a file (parse_facts), read anew each time it is asked. A program that knows the cluster
/// keeps the file current and replaces it in one step. A file older than `age_max` or from the future, by its own time
/// or else by its last write, is marked incomplete: its pods may be others by now. Errors: those of reading, naming the
/// file and the member.
class StaticFacts final : public engine::FactSource {
 public:
  StaticFacts(std::string path, std::chrono::nanoseconds age_max, const Clock& clock)
      : path_(std::move(path)), age_max_(age_max), clock_(clock) {}

  [[nodiscard]] Result<core::collect::Facts> facts() override;

 private:
  const std::string path_;
  const std::chrono::nanoseconds age_max_;
  const Clock& clock_;
};

}  // namespace croft::edge
