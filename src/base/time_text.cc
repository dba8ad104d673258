#include "base/time_text.h"

#include <optional>

#include <fmt/format.h>

namespace croft {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

/// "2026-01-15T10:00:01".
std::string seconds_text(std::chrono::sys_seconds time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(time - days);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

/// The second in which it is, and ".5" behind that, without trailing zeros.
std::string exact_text(WallTime time) {
  std::string text = seconds_text(std::chrono::floor<seconds>(time));
  // Not their difference: the second in which time begins began before it.
  constexpr std::int64_t kSecond = 1'000'000'000;
  if (const auto rest = (time.time_since_epoch().count() % kSecond + kSecond) % kSecond; rest != 0) {
    text += fmt::format(".{:09}", rest);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text;
}

/// Reads fixed-width fields from the front of a text; `ok` stays false after the first mismatch.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  /// Behind `before`.
  int digits(std::size_t width, std::string_view before = "") {
    expect(before);
    int value = 0;
    if (!ok_ || rest_.size() < width) return fail();
    for (std::size_t i = 0; i < width; ++i) {
      if (rest_[i] < '0' || rest_[i] > '9') return fail();
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(width);
    return value;
  }
  void expect(std::string_view literal) {
    if (ok_ && rest_.starts_with(literal)) {
      rest_.remove_prefix(literal.size());
    } else {
      fail();
    }
  }
  /// An optional `.` and 1 to 9 digits.
  nanoseconds fraction() {
    if (!ok_ || !rest_.starts_with('.')) return nanoseconds{0};
    rest_.remove_prefix(1);
    std::int64_t value = 0;
    int width = 0;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9' && width < 9) {
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
      ++width;
    }
    if (width == 0) fail();
    for (; width < 9; ++width) value *= 10;
    return nanoseconds{value};
  }
  [[nodiscard]] char front() const { return rest_.empty() ? '\0' : rest_.front(); }
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  int fail() {
    ok_ = false;
    return 0;
  }
  std::string_view rest_;
  bool ok_ = true;
};

std::optional<WallTime> date_and_time(Reader& in, std::string_view separator) {
  const int year = in.digits(4);
  const int month = in.digits(2, "-");
  const int day = in.digits(2, "-");
  const int hour = in.digits(2, separator);
  const int minute = in.digits(2, ":");
  const int second = in.digits(2, ":");
  const nanoseconds fraction = in.fraction();
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  // Outside these years nanoseconds since the epoch do not fit 64 bits.
  if (!in.ok() || !date.ok() || year < 1678 || year > 2261 || hour > 23 || minute > 59 || second > 59) return {};
  return WallTime(std::chrono::sys_days(date).time_since_epoch()) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + seconds(second) + fraction;
}

}  // namespace

std::string rfc3339_rounded_up(WallTime time) { return seconds_text(std::chrono::ceil<seconds>(time)) + "Z"; }

std::string rfc3339_exact(WallTime time) { return exact_text(time) + "Z"; }

Result<WallTime> parse_rfc3339(std::string_view text) {
  Reader in(text);
  const auto local = date_and_time(in, "T");
  std::chrono::minutes offset{0};
  if (in.front() == 'Z') {
    in.expect("Z");
  } else {
    const int sign = in.front() == '-' ? -1 : 1;
    const int hours = in.digits(2, sign < 0 ? "-" : "+");
    offset = sign * (std::chrono::hours(hours) + std::chrono::minutes(in.digits(2, ":")));
  }
  if (!local || !in.done()) {
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is not an RFC 3339 time", text));
  }
  return *local - offset;
}

std::string go_utc_text(WallTime time) {
  std::string text = exact_text(time);
  text[text.find('T')] = ' ';
  return text + " +0000 UTC";
}

Result<WallTime> parse_go_utc_text(std::string_view text) {
  Reader in(text);
  const auto time = date_and_time(in, " ");
  in.expect(" +0000 UTC");
  if (!time || !in.done()) {
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a time of the form written to blocks", text));
  }
  return *time;
}

WallTime next_whole_second(WallTime time) {
  constexpr std::chrono::nanoseconds kSecond = seconds{1};
  const std::chrono::nanoseconds past = time.time_since_epoch() % kSecond;  // below zero before 1970
  const bool is_last = time.time_since_epoch() > std::chrono::nanoseconds::max() - kSecond;
  return time - past + (past.count() > 0 && !is_last ? kSecond : std::chrono::nanoseconds{0});
}

}  // namespace croft
