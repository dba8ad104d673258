#include "history/door/flow_log.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"

namespace croft::edge {
namespace {

using core::history::Moment;
using std::chrono::nanoseconds;

constexpr std::array kTimes{"time", "timestamp", "start", "start_time", "ts", "@timestamp"};
constexpr std::array kAddresses{"srcaddr", "dstaddr", "src_ip", "dst_ip",      "source_ip", "destination_ip",
                                "src",     "dst",     "source", "destination", "id.orig_h", "id.resp_h"};
/// A number above this is one of milliseconds.
constexpr std::int64_t kNoSeconds = 100'000'000'000;
/// The end of 2261: later times do not fit 64 bits of nanoseconds.
constexpr std::int64_t kSecondsMax = 9'214'646'399;

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

/// RFC 3339, or `DATE TIME` as logs have it. A time without a zone is one of UTC.
std::optional<WallTime> written_time(std::string_view text) {
  std::string time(text);
  if (time.size() > 10 && time[10] == ' ') time[10] = 'T';
  if (time.find_first_of("Z+-", 10) == time.npos) time += 'Z';
  const auto read = parse_rfc3339(time);
  return read ? std::optional(*read) : std::nullopt;
}

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

std::optional<Moment> flow_time(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view behind = text.substr(std::min(point + 1, text.size()));
  const std::string_view digits = behind.substr(0, behind.find_first_not_of("0123456789"));
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + point, number);
  const bool is_number = code == std::errc() && end == text.data() + point && digits.size() == behind.size();
  const bool is_of_ms = is_number && number > kNoSeconds;
  // One unit of the last digit.
  nanoseconds unit = is_of_ms ? nanoseconds(std::chrono::milliseconds(1)) : std::chrono::seconds(1);
  nanoseconds fraction{0};
  for (const char digit : digits.substr(0, is_of_ms ? 6 : 9)) {
    unit /= 10;
    fraction += unit * (digit - '0');
  }
  WallTime at{};
  if (is_of_ms && number <= kSecondsMax * 1000) {
    at = WallTime{std::chrono::milliseconds(number)} + fraction;
  } else if (is_number && number >= 0 && number <= kSecondsMax) {
    at = WallTime{std::chrono::seconds(number)} + fraction;
  } else if (const auto time = written_time(text); !is_number && time) {
    at = *time;
  } else {
    return std::nullopt;
  }
  return Moment{at, at + unit - nanoseconds(1)};
}

Result<FlowLog> FlowLog::begin(std::string_view headings, const FlowColumns& columns) {
  FlowLog log;
  if (headings.find(',') == headings.npos && headings.find(' ') != headings.npos) log.between_ = ' ';
  const std::vector<std::string> names = log.cells_of(headings);
  const auto find = [&](const std::string& name) -> Result<std::size_t> {
    if (const auto place = place_of(names, name)) return *place;
    return fail(ErrorCode::invalid_argument, "the log has no column {}: it has {}", echo(name),
                echo(fmt::format("{}", fmt::join(names, ", "))));
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

Result<std::string> FlowLog::join(std::string_view line, const HolderOf& holder_of) {
  const std::vector<std::string> cells = cells_of(line);
  const auto cell = [&](std::size_t place) { return place < cells.size() ? trimmed(cells[place]) : std::string(); };
  std::string joined(line);
  const auto when = flow_time(cell(time_));
  ++lines_;
  bool is_read = true;
  for (const std::size_t place : addresses_) {
    const std::string text = cell(place);
    const auto address = net::parse_address(text);
    // AWS writes a hyphen where there is none.
    const bool is_there = !text.empty() && text != "-";
    std::string holder = is_there ? "?" : "";
    if (when && address) {
      TRY(holder, holder_of(address->unmapped(), *when));
    }
    is_read = is_read && (!is_there || (when && address));
    add(joined, holder);
  }
  if (!is_read && unread_++ == 0) first_unread_ = lines_ + 1;
  return joined;
}

std::string FlowLog::trouble() const {
  if (unread_ == 0) return "";
  return fmt::format("{} of {} {} a time or an address that cannot be read: the first is line {}", unread_,
                     counted(lines_, "line"), unread_ == 1 ? "has" : "have", first_unread_);
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
