#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/pacing.h"
#include "base/result.h"
#include "store/pause.h"

namespace croft::app {

/// The registers that were moved into the one of this agent, as their pauses say: DELs before the switch left
/// tombstones that name them. For one thread.
class Predecessors {
 public:
  using PauseOf = std::function<Result<std::optional<core::Pause>>(const std::string& url)>;
  Predecessors(PauseOf pause_of, std::function<bool(std::string_view url)> is_own)
      : pause_of_(std::move(pause_of)), is_own_(std::move(is_own)) {}

  /// Whether a URL names one, as far as it is known; asks nobody.
  [[nodiscard]] bool has(std::string_view url) {
    const auto found = known_.find(url);
    if (found != known_.end()) return found->second.is_predecessor;
    if (known_.size() < kKnownMax) known_.emplace(url, Known{});
    return false;
  }
  /// Asks the stores that has() was asked for and knew nothing of, each at most once a minute.
  void look(std::chrono::nanoseconds since_boot) {
    for (auto& [url, known] : known_) {
      if (known.is_predecessor || !known.asks.take(since_boot)) continue;
      known.is_predecessor = leads_here(url);
    }
  }

 private:
  static constexpr std::chrono::minutes kAskedAgainAfter{1};
  /// A register that was moved may have been moved before.
  static constexpr int kMovesMax = 4;
  /// Tombstones may name what somebody wrote there.
  static constexpr std::size_t kKnownMax = 64;

  [[nodiscard]] bool leads_here(std::string url) const {
    for (int moves = 0; moves < kMovesMax; ++moves) {
      const auto pause = pause_of_(url);
      if (!pause || !*pause || (*pause)->phase != core::Pause::Phase::moved) return false;
      url = (*pause)->other;
      if (is_own_(url)) return true;
    }
    return false;
  }

  struct Known {
    bool is_predecessor = false;
    TokenBucket asks{1, kAskedAgainAfter};
  };
  const PauseOf pause_of_;
  const std::function<bool(std::string_view url)> is_own_;
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace croft::app
