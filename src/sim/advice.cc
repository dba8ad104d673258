#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/plan.h"

namespace croft::sim {
namespace {

/// Blocks of 8 to 256 addresses.
constexpr int kHostBitsMin = 3, kHostBitsMax = 8;
/// An ADD may take so many times the requests of the cheapest length.
constexpr double kDearer = 1.15;
constexpr double kGrowthDays = 180;

/// "1 node", "1.2 blocks".
std::string counted(double number, const char* one, const char* more) {
  const std::string text = to_text(number);
  return fmt::format("{} {}", text, text == "1" ? one : more);
}

/// Eighths of a character.
std::string bar_of(double share, std::size_t width) {
  static constexpr std::array kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths =
      static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) * 8));
  std::string bar;
  for (std::size_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

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
    text.insert(static_cast<std::size_t>(at), 1, ',');
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

Result<Advice> advise(const Plan& plan, const Measured& measured) {
  struct Tried {
    int length = 0;
    Measured measured;
    double idle = 0;  ///< addresses of a node that no pod holds
  };
  const int bits = net::bit_length(measured.pool.family());
  std::vector<Tried> tried;
  for (int length = bits - kHostBitsMax; length <= bits - kHostBitsMin; ++length) {
    Plan part = part_of(plan, kPartNodes);
    part.growth = 0;
    // The same for all lengths, with room for the largest blocks.
    part.block_length = bits - kHostBitsMax;
    part.pool = pool_for(part, measured.pool.family());
    part.block_length = length;
    TRY(Measured of, run(part));
    const double idle = static_cast<double>(of.space.spare + of.space.cooling) / static_cast<double>(of.nodes);
    tried.push_back({length, std::move(of), idle});
  }
  /// The requests of a pod that starts with all others, and of one that is replaced.
  const auto requests = [](const Tried& one) { return one.measured.requests_an_add + one.measured.requests_a_pod; };
  const auto cheapest = std::ranges::min_element(tried, {}, requests);
  const Tried* best = &*cheapest;
  for (const Tried& one : tried) {
    if (requests(one) <= requests(*cheapest) * kDearer && one.idle < best->idle) best = &one;
  }
  Advice advice;
  advice.block_length = best->length;
  const std::uint32_t part = part_of(plan, kPartNodes).nodes;
  if (part < plan.nodes) {
    advice.reasons.push_back(fmt::format("Each length was run with {} of the {} nodes.", part, plan.nodes));
  }
  const auto size = static_cast<double>(std::uint64_t{1} << (bits - best->length));
  advice.reasons.push_back(fmt::format("A /{} block has {}, and a node with {} takes {}.", best->length,
                                       counted(size, "address", "addresses"), counted(plan.pods, "pod", "pods"),
                                       counted(best->measured.blocks_a_node, "block", "blocks")));
  for (const Tried& one : tried) {
    if (std::abs(one.length - best->length) > 1 && &one != &*cheapest) continue;
    // In a short run no pod is replaced.
    const std::string replaced = one.measured.requests_a_pod > 0
                                     ? fmt::format(", a replaced pod takes {:.1f}", one.measured.requests_a_pod)
                                     : "";
    advice.reasons.push_back(fmt::format(
        "With /{} an ADD takes {:.2f} requests while all pods start{}, and a node has {:.0f} idle addresses.",
        one.length, one.measured.requests_an_add, replaced, one.idle));
  }
  advice.reasons.push_back(fmt::format(
      "/{} takes the fewest requests. Of the lengths within {:.0f} % of it, /{} has the fewest idle addresses.",
      cheapest->length, (kDearer - 1) * 100, best->length));
  // One block in eight is for nodes that have none (core::plan_claim_ahead).
  const double now = static_cast<double>(plan.nodes) * best->measured.blocks_a_node * size;
  double wanted = now * 8 / 7;
  advice.reasons.push_back(fmt::format("The blocks of {} have {}; one block in eight stays free for new nodes.",
                                       counted(plan.nodes, "node", "nodes"), counted(now, "address", "addresses")));
  if (plan.growth > 0) {
    const double growth = plan.growth * kGrowthDays * now / (static_cast<double>(plan.nodes) * plan.pods);
    wanted += growth;
    advice.reasons.push_back(fmt::format("Growth of {:.0f} pods a day takes {:.0f} addresses more in {:.0f} days.",
                                         plan.growth, growth, kGrowthDays));
  }
  if (measured.recovered_minutes && plan.failures > 0) {
    const double kept = plan.failures * *measured.recovered_minutes / 1440 * plan.pods;
    wanted += kept;
    advice.reasons.push_back(
        fmt::format("The addresses of a lost node are free again after {:.0f} minutes. With {:g} lost a day, {:.1f} of "
                    "them wait on average.",
                    *measured.recovered_minutes, plan.failures, kept));
  }
  advice.pool = prefix_of(measured.pool, wanted);
  const bool is_enough = std::exp2(bits - advice.pool.length()) >= wanted;
  advice.reasons.push_back(is_enough ? fmt::format("The smallest pool with {} is a /{}.",
                                                   counted(wanted, "address", "addresses"), advice.pool.length())
                                     : fmt::format("No pool has {}. Plan with less growth, or with an IPv6 pool.",
                                                   counted(wanted, "address", "addresses")));
  return advice;
}

}  // namespace croft::sim
