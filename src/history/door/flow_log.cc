#include "history/door/flow_log.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/net/echo.h"
#include "base/time_text.h"

namespace croft::edge {
namespace {

constexpr std::array kTimes{"time", "timestamp", "start", "start_time", "ts", "@timestamp"};
constexpr std::array kAddresses{"srcaddr", "dstaddr", "src_ip", "dst_ip",      "source_ip", "destination_ip",
                                "src",     "dst",     "source", "destination", "id.orig_h", "id.resp_h"};
/// More seconds than this since 1970 are milliseconds.
constexpr std::int64_t kSecondsMax = 100'000'000'000;

std::optional<std::size_t> place_of(const std::vector<std::string>& headings, std::string_view name) {
  const auto found = std::ranges::find(headings, name);
  return found == headings.end() ? std::nullopt : std::optional<std::size_t>(found - headings.begin());
}

}  // namespace

std::string csv_cell(const std::string& value) {
  // A spreadsheet takes these for the begin of a formula.
  const bool is_formula = !value.empty() && std::string_view("=+-@\t\r").find(value.front()) != std::string_view::npos;
  const std::string text = (is_formula ? "'" : "") + value;
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::optional<WallTime> flow_time(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = code == std::errc() && (end == text.data() + text.size() || *end == '.');
  if (!is_number) {
    const auto time = parse_rfc3339(text);
    return time ? std::optional(*time) : std::nullopt;
  }
  if (number < 0 || number > kSecondsMax * 1000) return std::nullopt;
  if (number > kSecondsMax) return WallTime{std::chrono::milliseconds(number)};
  return WallTime{std::chrono::seconds(number)};
}

Result<FlowLog> FlowLog::begin(std::string_view headings, const FlowColumns& columns) {
  FlowLog log;
  if (headings.find(',') == headings.npos && headings.find(' ') != headings.npos) log.between_ = ' ';
  const std::vector<std::string> names = log.cells_of(headings);
  const auto find = [&](const std::string& name) -> Result<std::size_t> {
    if (const auto place = place_of(names, name)) return *place;
    return fail(invalid_argument(fmt::format("the log has no column {}: it has {}", net::echo(name),
                                             net::echo(fmt::format("{}", fmt::join(names, ", "))))));
  };
  std::string time = columns.time;
  for (const char* const known : kTimes) {
    if (time.empty() && place_of(names, known)) time = known;
  }
  if (time.empty()) return fail(invalid_argument("no column of the log is known as a time: name it with --time"));
  TRY(log.time_, find(time));
  std::vector<std::string> addresses = columns.addresses;
  for (const char* const known : kAddresses) {
    if (columns.addresses.empty() && place_of(names, known)) addresses.emplace_back(known);
  }
  if (addresses.empty()) {
    return fail(invalid_argument("no column of the log is known as an address: name them with --address"));
  }
  log.headings_ = std::string(headings);
  for (const std::string& name : addresses) {
    TRY(const std::size_t place, find(name));
    log.addresses_.push_back(place);
    log.add(log.headings_, name + "_holder");
  }
  return log;
}

Result<std::string> FlowLog::join(std::string_view line, const HolderOf& holder_of) const {
  const std::vector<std::string> cells = cells_of(line);
  std::string joined(line);
  const auto at = time_ < cells.size() ? flow_time(cells[time_]) : std::nullopt;
  for (const std::size_t place : addresses_) {
    const auto address = place < cells.size() ? net::parse_address(cells[place]) : std::nullopt;
    std::string holder;
    if (at && address) {
      TRY(holder, holder_of(*address, *at));
    }
    add(joined, holder);
  }
  return joined;
}

std::vector<std::string> FlowLog::cells_of(std::string_view line) const {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (between_ == ',' && c == '"') {
      // Two of them inside are one.
      if (is_quoted && i + 1 < line.size() && line[i + 1] == '"')
        cells.back() += line[i++];
      else
        is_quoted = !is_quoted;
    } else if (c == between_ && !is_quoted) {
      if (between_ == ',' || !cells.back().empty()) cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

void FlowLog::add(std::string& line, const std::string& cell) const {
  if (line.ends_with('\r')) line.pop_back();
  line += between_;
  // AWS writes so for a cell without a value.
  if (between_ == ' ') line += cell.empty() ? "-" : cell;
  if (between_ == ',') line += csv_cell(cell);
}

}  // namespace croft::edge
