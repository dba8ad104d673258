// Runs scripts of the simulated cluster: `sim_run --help`.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/planted.h"
#include "base/result.h"
#include "ipam/use/inspect.h"
#include "sim/run/script.h"

namespace {

using croft::sim::Outcome;
using croft::sim::Script;

constexpr const char* kUsage =
    "usage: sim_run [--seeds FIRST LAST] [--print] [--shrink] [--trace] [--hash] [--uses FILE]\n               "
    "[FILE...]\n\n"
    "  Runs the scripts of these seeds, and of FILEs; ends with 1 if a promise was broken.\n"
    "  --print    print the script first\n"
    "  --shrink   of a script that breaks a promise, print the shortest that does\n"
    "  --trace    print what happens\n"
    "  --planted NAME   with this bug, in a build with CROFT_PLANTED_BUGS; ends at the first seed that shows it\n"
    "  --hash     print the trace hash of each run\n"
    "  --uses FILE   into it, each five minutes of a run, how many addresses were in use\n";

struct Options {
  std::uint64_t first = 1, last = 0;
  bool prints = false, shrinks = false, hashes = false, traces = false, stops = false;
  std::string uses;
  std::vector<std::string> files;
};

/// As a history counts them (history/use/recorder.cc).
double used_in(croft::sim::Cluster& cluster) {
  const croft::sim::MachineClock clock(cluster.server().schedule(), 0);
  croft::SeededRandom random(1);
  const auto fills = croft::engine::fill_of_pools({cluster.server().records(), clock, random});
  double used = 0;
  if (!fills) return used;
  for (const auto& fill : *fills) used += static_cast<double>(fill.held + fill.cooling);
  return used;
}

/// Whether every promise was kept.
bool play(const std::string& name, const Script& script, const Options& options, Outcome& sum) {
  if (options.prints) fmt::print("{}", to_text(script));
  std::function<void(const std::string&)> tell;
  if (options.traces) tell = [](const std::string& line) { fmt::print("{}\n", line); };
  std::function<void(croft::sim::Cluster&)> look;
  std::ofstream uses;
  if (!options.uses.empty()) {
    uses.open(options.uses, std::ios::app);
    look = [&](croft::sim::Cluster& cluster) {
      const bool is_time = cluster.server().schedule().now() % std::chrono::minutes(5) == std::chrono::minutes(0);
      if (is_time) uses << used_in(cluster) << '\n';
    };
  }
  const Outcome outcome = croft::sim::run(script, tell, look);
  sum.counts += outcome.counts;
  sum.traffic += outcome.traffic;
  sum.events += outcome.events;
  if (options.hashes) fmt::print("{} {:016x}\n", name, outcome.trace);
  if (outcome.violation.empty()) return true;
  fmt::print("{} BROKEN at {} ms: {}\n", name, outcome.violated_at.count() / 1'000'000, outcome.violation);
  if (options.shrinks) {
    const Script shortest = croft::sim::shrink(script);
    fmt::print("{}# {}\n", to_text(shortest), croft::sim::run(shortest).violation);
  }
  return false;
}

/// Whether there is such a bug, and this program can have it.
bool plant([[maybe_unused]] std::string_view name) {
#ifdef CROFT_PLANTED_BUGS
  croft::planted_bug =
      static_cast<std::size_t>(std::ranges::find(croft::kPlantedNames, name) - croft::kPlantedNames.begin());
  if (croft::planted_bug < croft::kPlantedNames.size()) return true;
  fmt::print(stderr, "sim_run: there is no planted bug {}; src/base/planted.h lists them\n", name);
#else
  fmt::print(stderr, "sim_run: this program was built without planted bugs; use `cmake --preset planted`\n");
#endif
  return false;
}

/// Error: invalid_argument.
[[nodiscard]] croft::Result<Script> script_in(const std::string& file) {
  std::ifstream in(file);
  if (!in || std::filesystem::is_directory(file)) {
    return croft::fail(croft::ErrorCode::invalid_argument, "this is no file that can be read");
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return croft::sim::parse_script(text);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--seeds" && i + 2 < argc) {
      options.first = std::strtoull(argv[++i], nullptr, 10);
      options.last = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--uses" && i + 1 < argc) {
      options.uses = argv[++i];
    } else if (word == "--planted" && i + 1 < argc) {
      if (!plant(argv[++i])) return 2;
      options.stops = true;
    } else if (word == "--print") {
      options.prints = true;
    } else if (word == "--shrink") {
      options.shrinks = true;
    } else if (word == "--trace") {
      options.traces = true;
    } else if (word == "--hash") {
      options.hashes = true;
    } else if (word.starts_with("-")) {
      std::fputs(kUsage, word == "--help" ? stdout : stderr);
      return word == "--help" ? 0 : 2;
    } else {
      options.files.emplace_back(word);
    }
  }
  if (options.last < options.first && options.files.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  std::uint64_t runs = 0, broken = 0;
  Outcome sum;
  for (std::uint64_t seed = options.first; seed <= options.last; ++seed) {
    ++runs;
    broken += play(fmt::format("seed {}", seed), croft::sim::script_of(seed), options, sum) ? 0 : 1;
    if (options.stops && broken > 0) break;
  }
  for (const std::string& file : options.files) {
    const auto script = script_in(file);
    if (!script) {
      fmt::print(stderr, "sim_run: {}: {}\n", file, script.error().message);
      return 2;
    }
    ++runs;
    broken += play(file, *script, options, sum) ? 0 : 1;
  }
  fmt::print(
      "{} runs, {} broken; {} ADDs, {} refused, {} failed, {} killed, {} DELs, {} collected; {} requests, {} "
      "commits, {} conflicts, {} unknown; {} events\n",
      runs, broken, sum.counts.adds, sum.counts.refused, sum.counts.failed, sum.counts.killed, sum.counts.dels,
      sum.counts.collected, sum.traffic.requests, sum.traffic.commits, sum.traffic.conflicts, sum.traffic.unknown,
      sum.events);
  return broken == 0 ? 0 : 1;
}
