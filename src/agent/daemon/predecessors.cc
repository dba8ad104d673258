#include "agent/daemon/predecessors.h"

namespace croft::app {
namespace {

constexpr std::chrono::minutes kAskedAgainAfter{1};
/// A register that was moved may have been moved before.
constexpr int kMovesMax = 4;
/// Tombstones may name what somebody wrote there.
constexpr std::size_t kKnownMax = 64;

}  // namespace

bool Predecessors::has(std::string_view url) {
  const auto found = known_.find(url);
  if (found != known_.end()) return found->second.is_predecessor;
  if (known_.size() < kKnownMax) known_.emplace(url, Known{});
  return false;
}

void Predecessors::look(std::chrono::nanoseconds since_boot) {
  for (auto& [url, known] : known_) {
    if (known.is_predecessor || (known.asked_at && since_boot - *known.asked_at < kAskedAgainAfter)) continue;
    known.asked_at = since_boot;
    known.is_predecessor = leads_here(url);
  }
}

bool Predecessors::leads_here(std::string url) const {
  for (int moves = 0; moves < kMovesMax; ++moves) {
    const auto pause = pause_of_(url);
    if (!pause || !*pause || (*pause)->phase != core::Pause::Phase::moved) return false;
    url = (*pause)->other;
    if (is_own_(url)) return true;
  }
  return false;
}

}  // namespace croft::app
