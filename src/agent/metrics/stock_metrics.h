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
  std::uint64_t throttled = 0;
};

/// A stock for Prometheus:
///
///   croft_stock_addresses {state}         gauge: free, cooling, held, probing, leaving, quarantined
///   croft_stock_water_mark {mark}         gauge: low, high; addresses
///   croft_stock_waiting_adds              gauge, ADDs that wait because the stock is empty
///   croft_stock_adds_total {outcome}      counter: ok, failed; likewise croft_stock_dels_total
///   croft_stock_waited_total              counter, ADDs that found it empty
///   croft_stock_commits_total             counter, made for ADDs and DELs
///   croft_stock_add_duration_seconds      histogram, of ADDs that got an address
///   croft_stock_moves_total {what}        counter: allocated, given_back, borrowed, lent, conflict, quarantined,
///                                         collected, lost
///   croft_stock_fill_duration_seconds     gauge, from the question to the stock, of the last that brought something
///   croft_cloud_calls_total {action, outcome}           counter
///   croft_cloud_call_duration_seconds_sum {action}      counter; with _count
///   croft_cloud_throttled_total           counter
///
/// Any thread may call anything.
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
