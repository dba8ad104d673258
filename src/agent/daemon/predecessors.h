#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "register/pause.h"

namespace croft::app {

/// The registers that were moved into the one of this agent, as their pauses say: DELs before the switch left
/// tombstones that name them. For one thread.
class Predecessors {
 public:
  using PauseOf = std::function<Result<std::optional<core::Pause>>(const std::string& url)>;
  Predecessors(PauseOf pause_of, std::function<bool(std::string_view url)> is_own)
      : pause_of_(std::move(pause_of)), is_own_(std::move(is_own)) {}

  /// Whether a URL names one, as far as it is known; asks nobody.
  [[nodiscard]] bool has(std::string_view url);
  /// Asks the stores that has() was asked for and knew nothing of, each at most once a minute.
  void look(std::chrono::nanoseconds since_boot);

 private:
  [[nodiscard]] bool leads_here(std::string url) const;

  struct Known {
    bool is_predecessor = false;
    std::optional<std::chrono::nanoseconds> asked_at;
  };
  const PauseOf pause_of_;
  const std::function<bool(std::string_view url)> is_own_;
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace croft::app
