#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"
#include "sim/plan.h"

namespace croft::sim {

/// Numbers over numbers, for a terminal.
struct Chart {
  struct Series {
    std::string name;
    std::vector<std::pair<double, double>> points;  ///< ascending
  };
  std::string title, x;  ///< and of the axis below
  std::vector<Series> series;
};

/// Bars, one for each point, in groups of one x.
[[nodiscard]] std::string to_terminal(const Chart& chart, std::size_t width);

/// A whole and its parts in one line, and below what the signs mean.
struct Part {
  std::string name;
  double value = 0;
  const char* sign = "█";
};
[[nodiscard]] std::string to_bar(const std::vector<Part>& parts, std::size_t width);

/// For people: "1,234", "12.3", "0.57".
[[nodiscard]] std::string to_text(double number);

/// A size to take, and why.
struct Advice {
  int block_length = 0;
  net::Prefix pool;
  std::vector<std::string> reasons;  ///< sentences
};
/// Tries other block lengths on a part of the cluster, and computes the pool from what was measured.
[[nodiscard]] Result<Advice> advise(const Plan& plan, const Measured& measured);

}  // namespace croft::sim
