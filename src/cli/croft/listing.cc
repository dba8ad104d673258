#include "cli/croft/listing.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <utility>

#include "os/process.h"
#include "os/stop_signal.h"

namespace croft::app {
namespace {

constexpr std::chrono::seconds kWatchPeriod{2};

Table::Look look_of(const CommandLine& line) {
  // Wide is for reading on, not for a screen.
  return {!line.listing.no_headers, line.wide() ? 0 : os::standard_output_width()};
}

void show(const CommandLine& line, const Listing& listing) {
  if (line.wants_data()) return print(line.data_text(listing.data));
  if (listing.table.empty()) {
    tell(listing.nothing);
  } else {
    print(listing.table.to_string(look_of(line)));
  }
  if (!listing.note.empty()) print(listing.note + "\n", listing.note_as);
}

/// The rows of a line's table, in the order that was asked for.
[[nodiscard]] Result<Listing> looked(const CommandLine& line, const std::function<Result<Listing>()>& look) {
  TRY(Listing listing, look());
  if (!line.listing.sort_by.empty()) TRY_VOID(listing.table.sort_by(line.listing.sort_by));
  return listing;
}

[[nodiscard]] Result<int> watch(const CommandLine& line, const std::function<Result<Listing>()>& look) {
  os::StopSignal stop;  // before the store has threads
  TRY(const Listing first, looked(line, look));
  show(line, first);
  std::vector<std::string> before = first.table.lines({});
  bool is_away = false;
  while (!stop.wait_for(kWatchPeriod)) {
    const auto next = looked(line, look);
    if (!next) {
      // A watcher waits also while the store is away.
      const ErrorCode code = next.error().code;
      if (code != ErrorCode::unavailable && code != ErrorCode::deadline_exceeded) return fail(next.error());
      if (!std::exchange(is_away, true)) warn(next.error().message + "; going on");
      continue;
    }
    is_away = false;
    std::vector<std::string> now = next->table.lines({});
    print(changed_lines(before, now));
    before = std::move(now);
  }
  return 0;
}

/// The cells of a line without the blanks between: two lines with the same are the same row.
std::string without_blanks(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  return out;
}

std::string first_cell(const std::string& text) { return text.substr(0, text.find("   ")); }

}  // namespace

void add_list_options(CLI::App& command, CommandLine& line) {
  command.add_flag("--no-headers", line.listing.no_headers, "Print rows only");
  command.add_option("--sort-by", line.listing.sort_by, "Sort by the column with this heading")->type_name("COLUMN");
  command.add_flag("-w,--watch", line.listing.watch,
                   "Keep running: look every 2 seconds and print the rows that changed, until Ctrl-C");
}

Result<int> list(CommandLine& line, const std::function<Result<Listing>(const engine::Context&)>& look) {
  bool is_open = false;
  return list_without_store(line, [&]() -> Result<Listing> {
    if (!is_open) TRY_VOID(line.look());
    is_open = true;
    return look({*line.store, line.clock, line.random});
  });
}

Result<int> list_without_store(CommandLine& line, const std::function<Result<Listing>()>& look) {
  if (line.listing.watch) {
    if (line.wants_data()) return fail(ErrorCode::invalid_argument, "--watch: it prints rows of a table; leave out -o");
    return watch(line, look);
  }
  TRY(const Listing listing, looked(line, look));
  show(line, listing);
  return 0;
}

std::string changed_lines(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  std::set<std::string> known, there;
  for (const std::string& line : before) known.insert(without_blanks(line));
  for (const std::string& line : now) there.insert(first_cell(line));
  std::string text;
  for (std::size_t i = 1; i < now.size(); ++i) {
    if (!known.contains(without_blanks(now[i]))) text += now[i] + "\n";
  }
  std::set<std::string> told;
  for (std::size_t i = 1; i < before.size(); ++i) {
    const std::string name = first_cell(before[i]);
    if (!there.contains(name) && told.insert(name).second) text += name + "   gone\n";
  }
  return text;
}

}  // namespace croft::app
