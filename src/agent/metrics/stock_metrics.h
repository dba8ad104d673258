#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "vpc/decide/stock.h"
#include "vpc/provider.h"
#include "vpc/use/stock_keeper.h"

namespace croft::edge {

/// The figures of a stock of cloud addresses at one moment.
struct StockFigures {
  core::warm::Counts counts;
  std::uint32_t low = 0, high = 0;
  engine::KeeperTally keeper;
  engine::StockCallTally calls;
};

/// A stock for Prometheus (docs/warm-pool.md#metrics). Any thread may call anything.
class StockMetrics {
 public:
  /// `figures` is asked at each look, from any thread; nothing: nothing is known yet.
  explicit StockMetrics(std::function<std::optional<StockFigures>()> figures) : figures_(std::move(figures)) {}

  /// One call of the cloud that has ended.
  void count(const cloud::Provider::Call& call);
  /// All of it in Prometheus' text format.
  [[nodiscard]] std::string text() const;

 private:
  struct Took {
    std::uint64_t count = 0;
    std::chrono::nanoseconds sum{};
  };
  const std::function<std::optional<StockFigures>()> figures_;
  mutable std::mutex mutex_;  ///< guards both below
  std::map<std::pair<std::string, std::string>, std::uint64_t> calls_;
  std::map<std::string, Took> took_;
};

}  // namespace croft::edge
