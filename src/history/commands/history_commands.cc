#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/listing.h"
#include "cli/croft/table.h"
#include "history/door/flow_log.h"
#include "history/door/history_file.h"
#include "os/files.h"
#include "os/process.h"

// Questions about the past, and about when pools are full, to the file that `croftd controller --history` writes.

namespace croft::app {
namespace {

using core::history::Answer;
using core::history::Forecast;
using core::history::full_text;
using core::history::Gap;
using core::history::Holder;
using core::history::Holding;
using core::history::Moment;
using Json = nlohmann::ordered_json;

/// The largest log of flows: it is read as a whole.
constexpr std::size_t kFlowBytesMax = std::size_t{1} << 30;

struct WhoOptions {
  std::string file, address, at;
};
struct HistoryOptions {
  std::string file, what, from, until;
  std::size_t limit = 1000;
  bool csv = false;
};
struct JoinOptions {
  std::string file, flows, time;
  std::vector<std::string> addresses;
};
struct ForecastOptions {
  std::string file;
};

/// A time as logs have it, or one before now.
[[nodiscard]] Result<WallTime> time_argument(const std::string& name, const std::string& text, WallTime now) {
  if (const auto span = parse_span(text)) return now - *span;
  // A short number is a span that lacks its unit, and no time of 1970.
  if (const auto time = edge::flow_time(text); time && time->after > WallTime(std::chrono::hours(24 * 365))) {
    return time->after;
  }
  return fail(ErrorCode::invalid_argument, "{} {} is no time: write 2026-01-31T03:10:00Z, or 2h30m for that long ago",
              name, echo(text));
}

[[nodiscard]] Result<std::unique_ptr<edge::HistoryFile>> open_history(const std::string& path) {
  auto file = edge::HistoryFile::open_to_read(path);
  if (!file && file.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::not_found, "{}; the controller writes it with --history, and --history names another one",
                file.error().message);
  }
  return file;
}

/// A record may hold any text, and this is a part of a line.
std::string shown(const std::string& text) { return printable(text, Printed::line); }

std::string shown_time(WallTime time) { return rfc3339_exact(std::chrono::floor<std::chrono::seconds>(time)); }

/// "~" where it may have been seconds earlier, or more.
std::string shown_moment(const Moment& moment) {
  if (moment.after == WallTime{}) return "before " + shown_time(moment.by);
  return (moment.by - moment.after <= std::chrono::seconds(5) ? "" : "~") + shown_time(moment.by);
}

Json moment_json(const Moment& moment) {
  return {{"after", moment.after == WallTime{} ? Json() : Json(rfc3339_exact(moment.after))},
          {"by", rfc3339_exact(moment.by)}};
}

/// All but its times, by the names of JSON.
std::vector<std::pair<const char*, std::string>> texts_of(const Holding& one) {
  const Holder& holder = one.holder;
  return {{"address", one.address.to_string()},
          {"pool", one.pool},
          {"node", holder.node},
          {"namespace", holder.namespace_name},
          {"pod", holder.pod},
          {"podUID", holder.uid},
          {"container", holder.container},
          {"network", holder.network},
          {"interface", holder.interface_name},
          {"handle", holder.handle}};
}

Json holding_json(const Holding& one) {
  Json json;
  for (auto& [name, text] : texts_of(one)) json[name] = text;
  json["begin"] = moment_json(one.begin);
  json["end"] = one.end ? moment_json(*one.end) : Json();
  return json;
}

// ---------------------------------------------------------------- who

/// A history whose last moment is older has been left by its controller: a quiet store tells how far it is each minute.
constexpr std::chrono::minutes kLeft{2};

std::string shown_answer(const Answer& answer, const net::Address& address, WallTime at,
                         const core::history::Reach& reach) {
  std::string text;
  for (const Holding& one : answer.holdings) {
    text += fmt::format("{} {} {}, on node {}, from {} {}\n", shown(name_of(one.holder)),
                        answer.is_sure ? "held" : "may have held", address,
                        one.holder.node.empty() ? "?" : shown(one.holder.node), shown_moment(one.begin),
                        one.end ? "until " + shown_moment(*one.end)
                                : fmt::format("and still at {}, when the history ends", shown_time(reach.until)));
    const std::pair<const char*, const std::string&> parts[] = {{"container", one.holder.container},
                                                                {"interface", one.holder.interface_name},
                                                                {"network", one.holder.network},
                                                                {"uid", one.holder.uid},
                                                                {"pool", one.pool}};
    std::vector<std::string> known;
    for (const auto& [name, value] : parts) {
      if (!value.empty()) known.push_back(fmt::format("{} {}", name, shown(value)));
    }
    if (!known.empty()) text += fmt::format("  {}\n", fmt::join(known, ", "));
  }
  if (answer.holdings.empty()) {
    text += fmt::format("{} held {}\n", answer.is_sure ? "nobody" : "it is not known who", address);
  }
  return text + fmt::format("  at {}: {}\n", rfc3339_exact(at), answer.known);
}

/// The last holder before that time and the first one behind it.
[[nodiscard]] Result<std::string> holders_beside(edge::HistoryFile& file, const net::Address& address, WallTime at) {
  edge::HistoryQuestion question;
  question.address = address;
  question.limit = 100'000;
  TRY(const auto all, file.holdings(question));
  const Holding *before = nullptr, *after = nullptr;
  for (const Holding& one : all) {
    if (one.end && one.end->by <= at) before = &one;
    if (one.begin.after >= at && after == nullptr) after = &one;
  }
  std::string text;
  if (before != nullptr) {
    text += fmt::format("  before: {} until {}\n", shown(name_of(before->holder)), shown_moment(*before->end));
  }
  if (after != nullptr) {
    text += fmt::format("  after: {} from {}\n", shown(name_of(after->holder)), shown_moment(after->begin));
  }
  return text;
}

[[nodiscard]] Result<int> who(CommandLine& line, const WhoOptions& options) {
  TRY(const net::Address address, address_argument("the address", options.address));
  const WallTime now = line.clock.now().wall;
  TRY(const auto file, open_history(options.file));
  TRY(const auto reach, file->reach());
  // This moment is not known yet.
  const WallTime last = std::min(now, reach.until - std::chrono::milliseconds(1));
  TRY(const WallTime at, options.at.empty() ? Result<WallTime>(last) : time_argument("--at", options.at, now));
  TRY(Answer answer, file->holder_at(address, at));
  if (!line.wants_data()) {
    print(shown_answer(answer, address, at, reach));
    if (answer.holdings.empty()) {
      TRY(const std::string beside, holders_beside(*file, address, at));
      print(beside);
    }
    if (now - reach.until > kLeft) {
      print(fmt::format("  the controller has written nothing since {}\n", shown_time(reach.until)));
    }
    return 0;
  }
  Json json{{"address", address.to_string()},
            {"at", rfc3339_exact(at)},
            {"sure", answer.is_sure},
            {"known", answer.known},
            {"holdings", array_json(answer.holdings, holding_json)}};
  print(line.data_text(Data(std::move(json))), Printed::json);
  return 0;
}

// ---------------------------------------------------------------- history

/// An address, namespace/pod, or the name of a node or a pod.
[[nodiscard]] Result<std::vector<Holding>> holdings_of(edge::HistoryFile& file, const std::string& what,
                                                       edge::HistoryQuestion question) {
  const std::size_t slash = what.find('/');
  if (slash != std::string::npos && net::parse_address(what.substr(0, slash))) {
    return fail(ErrorCode::invalid_argument, "{} is a range: name one address of it, a pod or a node", echo(what));
  }
  if (const auto address = net::parse_address(what)) {
    question.address = *address;
  } else if (slash != std::string::npos) {
    question.namespace_name = what.substr(0, slash);
    question.pod = what.substr(slash + 1);
  } else {
    question.node = what;
    TRY(auto of_node, file.holdings(question));
    if (!of_node.empty()) return of_node;
    question.pod = std::exchange(question.node, "");
  }
  return file.holdings(question);
}

void print_csv(const std::vector<Holding>& found) {
  std::string text =
      "address,pool,node,namespace,pod,uid,container,network,interface,handle,begin_after,begin_by,"
      "end_after,end_by\n";
  for (const Holding& one : found) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : texts_of(one)) cells.push_back(edge::csv_cell(value));
    for (const std::optional<Moment>& moment : {std::optional(one.begin), one.end}) {
      cells.push_back(moment && moment->after != WallTime{} ? rfc3339_exact(moment->after) : "");
      cells.push_back(moment ? rfc3339_exact(moment->by) : "");
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  print(text);
}

/// The gaps in which something shown began or ended, the last of them, and how many others there are.
std::string gaps_text(const std::vector<Gap>& gaps, const std::vector<Holding>& found) {
  constexpr std::size_t kShown = 10;
  std::vector<const Gap*> near;
  for (const Gap& gap : gaps) {
    const auto touches = [&](const Moment& one) { return gap.from < one.by && gap.until > one.after; };
    const auto is_beside = [&](const Holding& one) { return touches(one.begin) || (one.end && touches(*one.end)); };
    if (std::ranges::any_of(found, is_beside)) near.push_back(&gap);
  }
  std::string text;
  for (const Gap* const gap : std::span(near).last(std::min(near.size(), kShown))) {
    text += fmt::format("\ngap: {} between {} and {}", gap->is_twice ? "the clock was set back" : "nobody looked",
                        shown_time(gap->from), shown_time(gap->until));
  }
  if (gaps.size() <= std::min(near.size(), kShown)) return text;
  std::chrono::nanoseconds in_all{0};
  for (const Gap& gap : gaps) in_all += gap.until - gap.from;
  return text + fmt::format("\n{}, {} in all; the last: between {} and {}", counted(gaps.size(), "gap"),
                            span_text(std::chrono::floor<std::chrono::seconds>(in_all)), shown_time(gaps.back().from),
                            shown_time(gaps.back().until));
}

[[nodiscard]] Result<int> history(CommandLine& line, const HistoryOptions& options) {
  const WallTime now = line.clock.now().wall;
  edge::HistoryQuestion question;
  question.limit = options.limit;
  if (!options.from.empty()) {
    TRY(question.from, time_argument("--from", options.from, now));
  }
  if (!options.until.empty()) {
    TRY(question.until, time_argument("--to", options.until, now));
  }
  TRY(const auto file, open_history(options.file));
  if (options.csv) {
    TRY(const auto found, holdings_of(*file, options.what, question));
    print_csv(found);
    if (found.size() >= options.limit) tell(fmt::format("the latest {}: --limit shows more", options.limit));
    return 0;
  }
  return list_without_store(line, [&]() -> Result<Listing> {
    TRY(const auto found, holdings_of(*file, options.what, question));
    TRY(const auto reach, file->reach());
    const WallTime from = question.from.value_or(reach.since), until = question.until.value_or(reach.until);
    TRY(const auto gaps, file->gaps(from, until));
    Table table({"ADDRESS", "HOLDER", "NODE", "FROM", "UNTIL", "POOL"}, {"CONTAINER", "IFNAME", "NETWORK", "UID"},
                line.wide());
    for (const Holding& one : found) {
      const Holder& holder = one.holder;
      table.add({one.address.to_string(), name_of(holder), holder.node, shown_moment(one.begin),
                 one.end ? shown_moment(*one.end) : "", one.pool, holder.container, holder.interface_name,
                 holder.network, holder.uid});
    }
    std::string note = fmt::format("recorded from {} until {}", shown_time(reach.since), shown_time(reach.until));
    note += gaps_text(gaps, found);
    if (found.size() >= options.limit) tell(fmt::format("the latest {}: --limit shows more", options.limit));
    return Listing{fmt::format("No holder of {} is recorded between {} and {}.", echo(options.what), shown_time(from),
                               shown_time(until)),
                   std::move(table), line.wants_data() ? Data(array_json(found, holding_json)) : Data(), note};
  });
}

[[nodiscard]] Result<int> join(CommandLine&, const JoinOptions& options) {
  TRY(const auto file, open_history(options.file));
  TRY(const std::string text,
      options.flows == "-" ? os::read_standard_input(kFlowBytesMax) : os::read_file(options.flows, kFlowBytesMax));
  std::string_view rest = text;
  const auto next = [&rest] {
    const std::string_view read = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), read.size() + 1));
    return read;
  };
  TRY(auto log, edge::FlowLog::begin(next(), {options.time, options.addresses}));
  print(log.headings() + "\n");
  const auto holder_of = [&](const net::Address& address, const Moment& when) -> Result<std::string> {
    TRY(const Answer answer, file->holder_at(address, when));
    std::vector<std::string> names;
    for (const Holding& one : answer.holdings) names.push_back(name_of(one.holder) + (answer.is_sure ? "" : "?"));
    // Nobody in the middle of a gap, or before the history, is not nobody.
    if (!answer.is_sure && names.empty()) names.emplace_back("?");
    std::string cell = fmt::format("{}", fmt::join(names, "|"));
    std::ranges::replace_if(
        cell, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }, '_');
    return cell;
  };
  while (!rest.empty()) {
    TRY(const std::string joined, log.join(next(), holder_of));
    print(joined + "\n");
  }
  if (const std::string trouble = log.trouble(); !trouble.empty()) tell(trouble);
  return 0;
}

// ---------------------------------------------------------------- forecast

Json seconds_or_null(const std::optional<std::chrono::seconds>& span) { return span ? Json(span->count()) : Json(); }

[[nodiscard]] Result<int> forecast(CommandLine& line, const ForecastOptions& options) {
  TRY(const auto file, open_history(options.file));
  return list_without_store(line, [&]() -> Result<Listing> {
    const WallTime now = line.clock.now().wall;
    TRY(const auto uses, file->uses(now - edge::kForecastPast));
    std::vector<std::tuple<std::string, core::history::Use, Forecast>> rows;
    for (const auto& [pool, series] : uses)
      rows.emplace_back(pool, series.back(), core::history::forecast(series, now));
    // The first to fill first; then those that do not in sight, and those of which nothing is known.
    std::ranges::stable_sort(rows, {}, [](const auto& row) {
      const Forecast& found = std::get<Forecast>(row);
      return std::pair(!found.is_known, found.full_in.value_or(std::chrono::seconds::max()));
    });
    Table table({"POOL", "USED", "OF", "GROWTH/H", "FULL IN", "EARLIEST", "LATEST"});
    Json json = Json::array();
    for (const auto& [pool, last, found] : rows) {
      table.add({pool, fmt::format("{:.0f}", last.used), fmt::format("{:.0f}", last.room),
                 found.is_known ? fmt::format("{:+.1f}", found.growth_an_hour) : "",
                 found.is_known ? full_text(found.full_in) : "unknown: " + std::string(found.why),
                 found.is_known ? full_text(found.earliest) : "", found.is_known ? full_text(found.latest) : ""});
      json.push_back({{"pool", pool},
                      {"at", rfc3339_exact(last.at)},
                      {"used", last.used},
                      {"room", last.room},
                      {"known", found.is_known},
                      {"why", found.why},
                      {"growthPerHour", found.is_known ? Json(found.growth_an_hour) : Json()},
                      {"fullInSeconds", seconds_or_null(found.full_in)},
                      {"earliestSeconds", seconds_or_null(found.earliest)},
                      {"latestSeconds", seconds_or_null(found.latest)}});
    }
    return Listing{"No pool was counted yet.", std::move(table), line.wants_data() ? Data(std::move(json)) : Data(),
                   rows.empty() ? "" : "counted at " + shown_time(std::get<1>(rows.front()).at)};
  });
}

void add_file_option(CLI::App& command, std::string& file) {
  command.add_option("--history", file, "The history, as the controller writes it")->default_val(edge::kHistoryPath);
}

}  // namespace

void add_history_commands(CLI::App& app, CommandLine& line) {
  const auto [who_command, who_options] = add_command(app, line, "who", "Show who held an address at a time", who);
  who_command->add_option("ADDRESS", who_options->address, "The address")->required();
  who_command->add_option("--at", who_options->at,
                          "When: 2026-01-31T03:10:00Z, or 2h30m for that long ago (default: as late as it is known)");
  add_file_option(*who_command, who_options->file);

  const auto [command, options] =
      add_command(app, line, "history", "Show who held an address, or what a pod or node held, and when", history);
  command->add_option("ADDRESS|POD|NODE", options->what, "An address, namespace/pod, or the name of a node or pod");
  command->add_option("--from", options->from, "Only what was held after this time: RFC 3339, or 2h, 3d ago");
  command->add_option("--to", options->until, "Only what was held before this time");
  command->add_flag("--csv", options->csv, "Print CSV");
  command->add_option("--limit", options->limit, "At most so many, the latest")->check(CLI::Range(1, 1'000'000));
  add_file_option(*command, options->file);
  add_list_options(*command, line);

  const auto [join_command, join_options] =
      add_command(*command, line, "join", "Add who held its addresses to a log of flows", join);
  join_command->add_option("FILE", join_options->flows, "The log: CSV, or columns between blanks; - is standard input")
      ->required();
  join_command->add_option("--time", join_options->time, "Column of times (default: as known programs name it)");
  join_command->add_option("--address", join_options->addresses, "Column of addresses; may be repeated");
  add_file_option(*join_command, join_options->file);
  command->callback([&line, options = options, join_command = join_command] {
    if (join_command->parsed()) return;
    if (options->what.empty()) throw CLI::RequiredError("ADDRESS|POD|NODE");
    line.run = [options](CommandLine& l) { return history(l, *options); };
  });

  const auto [forecast_command, forecast_options] =
      add_command(app, line, "forecast", "Show when each pool will be full", forecast);
  add_file_option(*forecast_command, forecast_options->file);
  add_list_options(*forecast_command, line);
  forecast_command->footer(
      "Where the history has two days, use goes on as it did from this hour on in the days before, and no higher but "
      "for "
      "their daily growth; else the growth so far goes on. Faster growth of the last hours comes on top. EARLIEST and "
      "LATEST are by the quartiles.");
}

}  // namespace croft::app
