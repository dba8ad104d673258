#include "cli/croft/listing.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/did_you_mean.h"
#include "base/printable.h"
#include "base/texts.h"
#include "ipam/use/nodes.h"
#include "os/process.h"

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
    if (!is_open) TRY_VOID(line.open_to_look());
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

namespace {

constexpr std::size_t kNamedMax = 8;

/// Near names, else some of those that exist.
std::string instead_of(const std::string& name, const std::vector<std::string>& known) {
  if (known.empty()) return "; there are none";
  std::string meant = did_you_mean(name, known);
  if (!meant.empty()) return meant;
  std::string text;
  for (std::size_t i = 0; i < std::min(known.size(), kNamedMax); ++i)
    text += (i == 0 ? "; there are " : ", ") + known[i];
  return known.size() > kNamedMax ? text + fmt::format(" and {} more", known.size() - kNamedMax) : text;
}

}  // namespace

Result<Error> no_such_pool(const engine::Context& context, const std::string& pool) {
  TRY(const std::vector<core::Pool> pools, engine::list_pools(context));
  std::vector<std::string> names;
  for (const core::Pool& one : pools) names.push_back(one.name);
  return make_error(ErrorCode::not_found, "there is no pool {}{}", echo(pool), instead_of(pool, names));
}

Result<void> check_known(const engine::Context& context, const std::string& node, const std::string& pool) {
  if (!node.empty()) TRY_VOID(engine::check_node_known(context, node));
  if (pool.empty()) return {};
  TRY(const std::vector<core::Pool> pools, engine::list_pools(context));
  if (std::ranges::any_of(pools, [&](const core::Pool& one) { return one.name == pool; })) return {};
  TRY(Error error, no_such_pool(context, pool));
  return fail(std::move(error));
}

Result<LabelSelector> LabelSelector::parse(const std::string& text) {
  LabelSelector selector;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string given = text.substr(at, comma - at);
    at = comma + 1;
    Term term;
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos) {
      term.is_negative = given.starts_with('!');
      term.key = given.substr(term.is_negative ? 1 : 0);
    } else {
      term.is_negative = equals > 0 && given[equals - 1] == '!';
      term.key = given.substr(0, equals - (term.is_negative ? 1 : 0));
      const bool is_doubled = equals + 1 < given.size() && given[equals + 1] == '=';
      term.value = given.substr(equals + (is_doubled ? 2 : 1));
    }
    if (term.key.empty() || term.key.find_first_of(" !()") != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "--selector: {} is none of KEY=VALUE, KEY!=VALUE, KEY and !KEY",
                  echo(given));
    }
    selector.terms_.push_back(std::move(term));
  }
  return selector;
}

bool LabelSelector::matches(const std::map<std::string, std::string>& labels) const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    const auto it = labels.find(term.key);
    const bool holds = it != labels.end() && (!term.value || it->second == *term.value);
    return holds != term.is_negative;
  });
}

}  // namespace croft::app
