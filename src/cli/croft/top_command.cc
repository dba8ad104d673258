#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "base/printable.h"
#include "cli/croft/command_line.h"
#include "cli/croft/listing.h"
#include "cli/croft/top.h"
#include "history/door/history_file.h"
#include "ipam/use/inspect.h"
#include "os/process.h"
#include "os/terminal.h"

namespace croft::app {
namespace {

using std::chrono::nanoseconds;

/// Reading a large register takes a tenth of the time at most.
constexpr int kPart = 10;
constexpr std::chrono::minutes kForecastAgain{5};

struct TopOptions {
  std::string pool;
  std::string history;  ///< empty: kHistoryPath, where it is
  std::uint32_t interval_s = 2;
  bool map = false, once = false;
};

/// When pools are full, as far as there is a history.
std::map<std::string, core::history::Forecast> forecasts(const std::string& path, WallTime now) {
  const auto file = edge::HistoryFile::open_to_read(path.empty() ? edge::kHistoryPath : path);
  return file ? (*file)->forecasts(now).value_or(std::map<std::string, core::history::Forecast>())
              : std::map<std::string, core::history::Forecast>();
}

[[nodiscard]] Result<int> top(CommandLine& line, const TopOptions& options) {
  TRY(const engine::Context context, line.open_to_look());
  // Nothing else needs a history that nobody named.
  if (!options.history.empty()) TRY_VOID(edge::HistoryFile::open_to_read(options.history));
  TopView view;
  view.store = line.store_url;
  view.map = options.map;
  view.pool = options.pool;
  view.colour = line.in_colour();
  if (!options.pool.empty()) TRY_VOID(check_known(context, "", options.pool));
  TopRates rates;
  nanoseconds forecast_at{0};
  const auto look = [&]() -> Result<std::string> {
    TRY(const engine::Overview overview, engine::read_overview(context));
    const Instant now = context.clock.now();
    rates.add(overview, now);
    if (now.since_boot >= forecast_at) {
      view.forecasts = forecasts(options.history, now.wall);
      forecast_at = now.since_boot + kForecastAgain;
    }
    view.see(overview, rates, now);
    return view.text();
  };
  if (options.once) {
    TRY(const std::string text, look());
    print(text, Printed::coloured);
    return 0;
  }
  TRY(const auto screen, os::Screen::open());
  nanoseconds next{0};
  std::string text, trouble;
  for (;;) {
    const nanoseconds begin = context.clock.now().since_boot;
    if (begin >= next) {
      auto seen = look();
      trouble = seen ? "" : printable(seen.error().message, Printed::line) + "; going on\n";
      if (seen) text = *std::move(seen);
      const nanoseconds now = context.clock.now().since_boot;
      next = now + std::max<nanoseconds>(std::chrono::seconds(options.interval_s), (now - begin) * kPart);
    }
    if (!screen->show(trouble + text, Printed::coloured)) return 0;
    const auto key = screen->key(next - context.clock.now().since_boot);
    if (key == 'q') return 0;
    if (key == 'm') view.map = !view.map;
    if (key == 'n') view.next_pool();
    if (key) text = view.text();
  }
}

}  // namespace

void add_top_command(CLI::App& app, CommandLine& line) {
  const auto [command, options] = add_command(app, line, "top", "Watch pools and nodes: how full, how fast", top);
  command->add_flag("--map", options->map, "Show the addresses of a pool as a picture");
  command->add_option("--pool", options->pool, "The pool of the picture (default: the fullest)");
  command->add_option("--interval", options->interval_s, "Seconds between two looks")->check(CLI::Range(1, 3600));
  command->add_flag("--once", options->once, "Look once and print it");
  command->add_option("--history", options->history, "The history, for the time until a pool is full");
  command->footer("Keys: m map or nodes, n next pool, q end.");
}

}  // namespace croft::app
