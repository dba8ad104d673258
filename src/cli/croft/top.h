#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "history/decide/forecast.h"
#include "ipam/use/inspect.h"

namespace croft::app {

/// How fast pools fill, by the looks of the last minutes.
class TopRates {
 public:
  void add(const engine::Overview& overview, const Instant& now);
  /// Addresses a minute; nothing after one look.
  [[nodiscard]] std::optional<double> of(const std::string& pool) const;

 private:
  static constexpr std::chrono::minutes kPast{5};
  struct Look {
    std::chrono::nanoseconds at;
    std::map<std::string, double> used;
  };
  std::deque<Look> looks_;
};

/// The screen of `croft top`.
struct TopView {
  std::string store;
  bool map = false;
  std::string pool;  ///< of the map; empty: the fullest
  bool colour = false;
  std::map<std::string, core::history::Forecast> forecasts{};

  void see(engine::Overview overview, const TopRates& rates, const Instant& now);
  void next_pool();
  /// Pools, the fullest first; then nodes by what they hold, or the map.
  [[nodiscard]] std::string text() const;

 private:
  engine::Overview seen_{};
  std::map<std::string, std::optional<double>> rates_{};
  WallTime at_{};
};

/// "[######····]", a tenth a sign.
[[nodiscard]] std::string bar_of(double part);

}  // namespace croft::app
