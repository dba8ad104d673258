// How well a forecast foresees a full pool (docs/formats/history.md#forecasts): ten made traces of a pool's use, and
// those that bench/traces/record has recorded. Each is played count by count, as a controller sees it.
//
// forecast_bench TRACES-DIRECTORY

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "history/decide/forecast.h"
#include "report.h"

namespace croft {
namespace {

using core::history::Forecast;
using core::history::Use;
using std::chrono::hours;
using std::chrono::minutes;

constexpr minutes kBetween{5};                            // two counts, and two looks at a forecast
constexpr hours kPast{8 * 24};                            // of a forecast (history/door/history_file.h)
constexpr hours kSoon{24};                                // an operator acts on "full within 24 h"
constexpr double kAheadMin = 2;                           // hours that he needs
constexpr double kRoom = 1000;                            // of made pools
const WallTime kBegin{std::chrono::seconds(1768176000)};  // a Monday

struct Trace {
  std::string name;
  std::vector<Use> uses;
};

double in_hours(std::chrono::nanoseconds span) { return std::chrono::duration<double, std::ratio<3600>>(span).count(); }

// ---------------------------------------------------------------- the traces

/// From 0 at 3 in the morning to 1 at 15.
double wave(double at) { return 0.5 - 0.5 * std::cos((at - 3) / 24 * 2 * std::numbers::pi); }

/// Of `used` at so many hours, with pods that come and go.
Trace made(std::string name, double days, const std::function<double(double)>& used, double noise = 3) {
  Trace trace{std::move(name), {}};
  SeededRandom random(trace.name.size());
  double beside = 0;
  for (int i = 0; i * in_hours(kBetween) < days * 24; ++i) {
    const double at = i * in_hours(kBetween);
    beside = 0.8 * beside + noise * (static_cast<double>(random.next() % 2001) / 1000 - 1);
    trace.uses.push_back({kBegin + i * kBetween, std::clamp(std::round(used(at) + beside), 0.0, kRoom), kRoom});
  }
  return trace;
}

std::vector<Trace> made_traces() {
  std::vector<Trace> all;
  all.push_back(made("steady growth", 8, [](double h) { return 200 + 5.0 * h; }));
  all.push_back(made("growth and a daily wave", 10, [](double h) { return 150 + 2.6 * h + 300 * wave(h); }));
  all.push_back(made("a new deployment, by step", 6,
                     [](double h) { return 350 + 60 * wave(h) + 300 * std::clamp((h - 74) / 0.5, 0.0, 1.0); }));
  all.push_back(made("a weekly pattern", 15, [](double h) {
    const bool is_weekend = std::fmod(h, 168) >= 120;
    return 250 + (is_weekend ? 100 : 600) * wave(h);
  }));
  all.push_back(made("CI jobs in a sawtooth", 7, [](double h) { return 250 + 550 * std::fmod(h, 5) / 5; }));
  all.push_back(made("a plateau just below full", 7, [](double h) { return 965 - 600 * std::exp(-h / 18); }));
  all.push_back(made("one burst that goes away", 6, [](double h) {
    return 300 + 100 * wave(h) + (h > 80 && h < 83 ? 450 * std::min(1.0, (h - 80) / 2) : 0);
  }));
  all.push_back(made("a slow leak", 12, [](double h) { return 500 + 80 * wave(h) + 1.7 * h; }));
  all.push_back(made(
      "noise without growth", 6, [](double) { return 800.0; }, 25));
  all.push_back(made("decline", 6, [](double h) { return 950 - 4 * h + 40 * wave(h); }));
  return all;
}

/// "# 256 addresses, …", a heading, and a count in each line.
std::optional<Trace> recorded(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("# ")) return std::nullopt;
  const double room = std::strtod(line.c_str() + 2, nullptr);
  std::getline(file, line);
  Trace trace{path.stem().string(), {}};
  for (WallTime at = kBegin; std::getline(file, line); at += kBetween) {
    trace.uses.push_back({at, std::strtod(line.c_str(), nullptr), room});
  }
  return room > 0 && !trace.uses.empty() ? std::optional(std::move(trace)) : std::nullopt;
}

// ---------------------------------------------------------------- playing them

struct Played {
  double seen = 0;  ///< hours, until it was full or the trace ended
  bool filled = false;
  double ahead = 0;         ///< hours: so long it said "full within 24 h" until it was full
  double said_falsely = 0;  ///< hours
};

Played play(const Trace& trace) {
  Played played;
  const auto is_full = [](const Use& use) { return use.used >= use.room; };
  const auto full = std::ranges::find_if(trace.uses, is_full);
  played.filled = full != trace.uses.end();
  bool says = false;
  WallTime said_since{};
  auto first = trace.uses.begin();
  for (auto now = trace.uses.begin(); now != full; ++now) {
    while (now->at - first->at > kPast) ++first;
    const Forecast found = core::history::forecast(std::span(first, now + 1), now->at);
    played.seen += in_hours(kBetween);
    if (!found.full_in || *found.full_in > kSoon) {
      says = false;
      continue;
    }
    if (!std::exchange(says, true)) said_since = now->at;
    // What has no latest time has to come true by tomorrow too.
    const WallTime until = now->at + found.latest.value_or(kSoon) + kSoon;
    if (!played.filled || full->at > until) played.said_falsely += in_hours(kBetween);
  }
  if (played.filled && says) played.ahead = in_hours(full->at - said_since);
  return played;
}

int run(const std::filesystem::path& directory) {
  std::vector<Trace> traces = made_traces();
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".csv") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    auto trace = recorded(path);
    if (!trace) {
      fmt::print(stderr, "{} is no trace: bench/traces/record makes them\n", path.string());
      return 1;
    }
    trace->name = "recorded: " + trace->name;
    traces.push_back(*std::move(trace));
  }
  std::size_t filled = 0, warned = 0;
  double seen = 0, falsely = 0;
  std::vector<double> aheads;
  fmt::print("{:<28} {:>8} {:>8} {:>14} {:>8} {:>14}\n", "trace", "seen, h", "filled", "said ahead, h", "in time",
             "said falsely, h");
  for (const Trace& trace : traces) {
    const Played played = play(trace);
    const bool in_time = played.ahead >= kAheadMin;
    fmt::print("{:<28} {:>8.1f} {:>8} {:>14} {:>8} {:>14.1f}\n", trace.name, played.seen, played.filled ? "yes" : "no",
               played.filled ? fmt::format("{:.1f}", played.ahead) : "", played.filled ? (in_time ? "yes" : "NO") : "",
               played.said_falsely);
    seen += played.seen;
    falsely += played.said_falsely;
    if (!played.filled) continue;
    ++filled;
    warned += in_time ? 1 : 0;
    aheads.push_back(played.ahead);
  }
  std::ranges::sort(aheads);
  const double median = aheads.empty() ? 0 : aheads[aheads.size() / 2];
  const std::string note =
      fmt::format("{} of {} traces filled; said {:.1f} h ahead at the median", filled, traces.size(), median);
  bench::record({.id = "forecast.warned",
                 .what = "full pools that a forecast foresaw for 2 h or more without a break",
                 .value = static_cast<double>(warned),
                 .unit = "pools",
                 .note = note});
  bench::record({.id = "forecast.falsely",
                 .what = "time in which a forecast said \"full within 24 h\" falsely",
                 .value = falsely / std::max(seen, 1.0) * 100,
                 .unit = "%",
                 .note = fmt::format("{:.0f} of {:.0f} h", falsely, seen)});
  fmt::print(
      "{} of {} filled: {} were foreseen 2 h ahead or more, {:.1f} h at the median; \"full within 24 h\" was "
      "said falsely in {:.1f} of {:.0f} h ({:.1f} %)\n",
      filled, traces.size(), warned, median, falsely, seen, falsely / std::max(seen, 1.0) * 100);
  return 0;
}

}  // namespace
}  // namespace croft

int main(int argc, char** argv) {
  if (argc == 2) return croft::run(argv[1]);
  std::fputs("usage: forecast_bench TRACES-DIRECTORY\n", stderr);
  return 2;
}
