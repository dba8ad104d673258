#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace croft::sim {

/// Numbers over numbers, for a terminal and for a page.
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
/// Lines. An axis whose numbers differ by more than fifty times is logarithmic. The same chart gives the same bytes;
/// the picture has a ground of its own, dark where the reader's screen is dark.
[[nodiscard]] std::string to_svg(const Chart& chart);

/// A whole and its parts in one line, and below what the signs mean.
struct Part {
  std::string name;
  double value = 0;
  const char* sign = "█";
};
[[nodiscard]] std::string to_bar(const std::vector<Part>& parts, std::size_t width);

/// For people: "1,234", "12.3", "0.57".
[[nodiscard]] std::string to_text(double number);

}  // namespace croft::sim
