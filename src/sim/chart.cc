#include "sim/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace croft::sim {
namespace {

constexpr double kLogarithmicFrom = 50;

struct Bounds {
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// Eighths of a character.
std::string bar_of(double share, std::size_t width) {
  static constexpr std::array kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths =
      static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) * 8));
  std::string bar;
  for (std::size_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

/// Numbers on a line of pixels.
class Axis {
 public:
  Axis(Bounds bounds, bool from_zero, double begin, double end) : begin_(begin), end_(end) {
    logarithmic_ = bounds.low > 0 && bounds.high / bounds.low > kLogarithmicFrom;
    if (logarithmic_) {
      low_ = std::pow(10, std::floor(std::log10(bounds.low)));
      high_ = std::pow(10, std::ceil(std::log10(bounds.high)));
      for (double tick = low_; tick <= high_ * 1.01; tick *= 10) ticks_.push_back(tick);
      return;
    }
    low_ = from_zero ? std::min(0.0, bounds.low) : bounds.low;
    const double span = std::max(bounds.high - low_, 1e-9);
    const double rough = span / 5, power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : rough / power > 1 ? 2 : 1);
    low_ = std::floor(low_ / step) * step;
    high_ = std::ceil(bounds.high / step - 1e-9) * step;
    if (high_ <= low_) high_ = low_ + step;
    for (int i = 0; low_ + i * step <= high_ + step / 2; ++i) ticks_.push_back(low_ + i * step);
  }
  [[nodiscard]] double at(double value) const {
    const double share =
        logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
    return begin_ + (end_ - begin_) * share;
  }
  [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }

 private:
  double begin_, end_, low_ = 0, high_ = 1;
  bool logarithmic_ = false;
  std::vector<double> ticks_;
};

constexpr std::string_view kStyle = R"(<style>
  .ground { fill: #ffffff; stroke: #d0d7de; }
  .grid { stroke: #d0d7de; }
  text { font: 12px -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-size: 14px; font-weight: 600; }
  .line { fill: none; stroke-width: 2; }
  .s0 { stroke: #0969da; } .d0 { fill: #0969da; }
  .s1 { stroke: #bc4c00; } .d1 { fill: #bc4c00; }
  .s2 { stroke: #1a7f37; } .d2 { fill: #1a7f37; }
  .s3 { stroke: #8250df; } .d3 { fill: #8250df; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #3d444d; }
    .grid { stroke: #3d444d; }
    text { fill: #f0f6fc; }
    .s0 { stroke: #4493f8; } .d0 { fill: #4493f8; }
    .s1 { stroke: #f0883e; } .d1 { fill: #f0883e; }
    .s2 { stroke: #3fb950; } .d2 { fill: #3fb950; }
    .s3 { stroke: #ab7df8; } .d3 { fill: #ab7df8; }
  }
</style>
)";

}  // namespace

std::string to_text(double number) {
  if (std::abs(number) < 10) {
    std::string text = fmt::format("{:.2f}", number);
    while (text.ends_with('0')) text.pop_back();
    if (text.ends_with('.')) text.pop_back();
    return text;
  }
  if (std::abs(number) < 100) {
    std::string text = fmt::format("{:.1f}", number);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  }
  std::string text = fmt::format("{:.0f}", number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

std::string to_terminal(const Chart& chart, std::size_t width) {
  std::set<double> xs;
  double most = 0;
  std::size_t x_width = chart.x.size(), name_width = 0;
  for (const Chart::Series& series : chart.series) {
    name_width = std::max(name_width, series.name.size());
    for (const auto& [x, y] : series.points) {
      xs.insert(x);
      most = std::max(most, y);
      x_width = std::max(x_width, to_text(x).size());
    }
  }
  if (chart.series.size() == 1) name_width = 0;
  constexpr std::size_t kNumber = 10, kBarMin = 10;
  const std::size_t taken = x_width + name_width + kNumber + 6;
  const std::size_t bar = width > taken + kBarMin ? width - taken : kBarMin;
  std::string text = fmt::format("{}\n{:>{}}\n", chart.title, chart.x, x_width);
  for (const double x : xs) {
    std::string label = to_text(x);
    for (const Chart::Series& series : chart.series) {
      const auto at = std::ranges::find(series.points, x, [](const auto& point) { return point.first; });
      if (at == series.points.end()) continue;
      const std::string name = name_width == 0 ? "" : fmt::format("{:<{}}  ", series.name, name_width);
      text += fmt::format("{:>{}}  {}{} {}\n", label, x_width, name, bar_of(most > 0 ? at->second / most : 0, bar),
                          to_text(at->second));
      label.clear();
    }
  }
  return text;
}

std::string to_svg(const Chart& chart) {
  constexpr double kWidth = 720, kHeight = 380, kLeft = 80, kTop = 46, kRight = 24;
  const double bottom = kHeight - 50 - 18;
  Bounds across, up;
  for (const Chart::Series& series : chart.series) {
    for (const auto& [x, y] : series.points) {
      across.take(x);
      up.take(y);
    }
  }
  if (across.low > across.high) across = up = {0, 1};
  const Axis x(across, false, kLeft, kWidth - kRight), y(up, true, bottom, kTop);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\">\n<title>{2}</title>\n{3}<rect class=\"ground\" x=\"0.5\" y=\"0.5\" width=\"{4:.0f}\" "
      "height=\"{5:.0f}\" rx=\"6\"/>\n<text class=\"title\" x=\"16\" y=\"26\">{2}</text>\n",
      kWidth, kHeight, escaped(chart.title), kStyle, kWidth - 1, kHeight - 1);
  for (const double tick : y.ticks()) {
    svg += fmt::format("<line class=\"grid\" x1=\"{:.0f}\" y1=\"{:.1f}\" x2=\"{:.0f}\" y2=\"{:.1f}\"/>\n", kLeft,
                       y.at(tick), kWidth - kRight, y.at(tick));
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8, y.at(tick) + 4,
                       to_text(tick));
  }
  for (const double tick : x.ticks()) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x.at(tick), bottom + 18,
                       to_text(tick));
  }
  svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n", kWidth - kRight, bottom + 36,
                     escaped(chart.x));
  double legend = kLeft;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Chart::Series& series = chart.series[i];
    std::string points;
    for (const auto& [at, value] : series.points) points += fmt::format("{:.1f},{:.1f} ", x.at(at), y.at(value));
    if (!points.empty()) points.pop_back();
    svg += fmt::format("<polyline class=\"line s{}\" points=\"{}\"/>\n", i % 4, points);
    for (const auto& [at, value] : series.points) {
      svg += fmt::format("<circle class=\"d{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>\n", i % 4, x.at(at), y.at(value));
    }
    svg += fmt::format(
        "<circle class=\"d{}\" cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"5\"/><text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", i % 4,
        legend, kHeight - 16, legend + 10, kHeight - 12, escaped(series.name));
    legend += 34 + 7 * static_cast<double>(series.name.size());
  }
  return svg + "</svg>\n";
}

std::string to_bar(const std::vector<Part>& parts, std::size_t width) {
  double whole = 0;
  for (const Part& part : parts) whole += part.value;
  std::string bar, legend;
  double before = 0;
  for (const Part& part : parts) {
    const auto end = [&](double value) {
      return whole > 0 ? std::lround(value / whole * static_cast<double>(width)) : 0;
    };
    for (auto i = end(before); i < end(before + part.value); ++i) bar += part.sign;
    before += part.value;
    legend += fmt::format("{}{} {} {}", legend.empty() ? "" : "   ", part.sign, part.name, to_text(part.value));
  }
  return bar + "\n" + legend + "\n";
}

}  // namespace croft::sim
