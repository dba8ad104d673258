#include "history/decide/forecast.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/time_text.h"

namespace croft::core::history {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr hours kRecent{3};
/// Nothing is said of a pool that was not counted for so long.
constexpr std::chrono::minutes kStale{20};
constexpr std::chrono::minutes kEnough{45};
constexpr hours kDay{24};
constexpr int kDaysMax = 7;
constexpr int kDaysMin = 2;
/// The forecast goes by steps of this.
constexpr std::chrono::minutes kStep{30};
constexpr int kSteps = static_cast<int>(kDay / kStep);
/// A growth is believed to go on for this many times as long as it has been seen.
constexpr double kBelieved = 4;

double hours_between(WallTime from, WallTime until) {
  return std::chrono::duration<double, std::ratio<3600>>(until - from).count();
}

double in_hours(int steps) { return std::chrono::duration<double, std::ratio<3600>>(steps * kStep).count(); }

double quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

/// The quartiles of some values.
struct Band {
  double low = 0, middle = 0, high = 0;
};
Band lesser(const Band& one, const Band& other) {
  return {std::min(one.low, other.low), std::min(one.middle, other.middle), std::min(one.high, other.high)};
}
Band operator+(const Band& one, const Band& other) {
  return {one.low + other.low, one.middle + other.middle, one.high + other.high};
}
Band operator*(const Band& one, double by) { return {one.low * by, one.middle * by, one.high * by}; }
Band band_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)};
}

/// The slopes between all pairs that are some minutes apart, an hour.
std::vector<double> slopes_of(std::span<const Use> uses) {
  constexpr std::chrono::minutes kApart{10};
  std::vector<double> slopes;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    for (std::size_t j = i + 1; j < uses.size(); ++j) {
      if (uses[j].at - uses[i].at < kApart) continue;
      slopes.push_back((uses[j].used - uses[i].used) / hours_between(uses[i].at, uses[j].at));
    }
  }
  return slopes;
}

std::span<const Use> between(std::span<const Use> uses, WallTime from, WallTime until) {
  const auto first = std::ranges::lower_bound(uses, from, {}, &Use::at);
  const auto last = std::ranges::upper_bound(uses, until, {}, &Use::at);
  return first < last ? std::span(first, last) : std::span<const Use>();
}

/// The addresses in use at a moment, between two counts that are not far apart.
std::optional<double> used_at(std::span<const Use> uses, WallTime at) {
  const auto after = std::ranges::lower_bound(uses, at, {}, &Use::at);
  if (after == uses.end()) return std::nullopt;
  if (after->at == at || after == uses.begin()) {
    return after->at == at ? std::optional(after->used) : std::nullopt;
  }
  const auto before = std::prev(after);
  if (after->at - before->at > hours(1)) return std::nullopt;
  const double part = hours_between(before->at, at) / hours_between(before->at, after->at);
  return before->used + (after->used - before->used) * part;
}

/// The next day, as the days before tell.
struct Days {
  std::vector<Band> growth;  ///< of a pool, so many steps from now on; the last is that of a day. Empty: there are none
  double last = 0;           ///< growth in the last day
  double peak = 0;           ///< the most that was used
};

/// The paths from this hour to the same hour a day later, of each day.
Days days_before(std::span<const Use> uses, WallTime now) {
  Days days;
  std::vector<std::vector<double>> growths(kSteps + 1);
  for (int day = 1; day <= kDaysMax; ++day) {
    const WallTime begin = now - day * kDay;
    const auto first = used_at(uses, begin), last = used_at(uses, begin + kDay);
    if (!first || !last) continue;
    if (growths.back().empty()) days.last = *last - *first;
    for (int i = 0; i <= kSteps; ++i) {
      const auto used = used_at(uses, begin + i * kStep);
      if (!used) continue;
      growths[static_cast<std::size_t>(i)].push_back(*used - *first);
      days.peak = std::max(days.peak, *used);
    }
  }
  if (growths.back().size() < kDaysMin) return days;
  for (auto& one : growths) days.growth.push_back(one.empty() ? days.growth.back() : band_of(std::move(one)));
  return days;
}

/// The growth an hour in the hours of a day in which it is highest; of several days the one in the middle.
double most_before(std::span<const Use> uses, WallTime now, double otherwise) {
  std::vector<double> most;
  for (int day = 0; day < kDaysMax; ++day) {
    std::optional<double> largest;
    for (int i = 0; i < kSteps; ++i) {
      const WallTime until = now - kRecent - day * kDay - i * kStep;
      const auto first = used_at(uses, until - kRecent), last = used_at(uses, until);
      if (first && last) largest = std::max(largest.value_or(0), *last - *first);
    }
    if (largest) most.push_back(*largest / static_cast<double>(kRecent.count()));
  }
  return most.empty() ? otherwise : band_of(std::move(most)).middle;
}

/// A count each step, of no more than a day.
std::vector<Use> thinned(std::span<const Use> uses) {
  std::vector<Use> few;
  const Use& last = uses.back();
  for (int i = kSteps; i >= 0; --i) {
    const WallTime at = last.at - i * kStep;
    if (const auto used = used_at(uses, at)) few.push_back({at, *used, last.room});
  }
  return few;
}

}  // namespace

std::string full_text(const std::optional<seconds>& full_in) {
  return full_in ? span_text(*full_in) : ">" + std::to_string(kForecastMax.count() / 24) + "d";
}

Forecast forecast(std::span<const Use> uses, WallTime now) {
  if (uses.empty()) return {};
  const Use& last = uses.back();
  if (now - last.at > kStale || last.at - now > kStale) return {false, "counted last more than 20 minutes ago"};
  const auto recent = between(uses, last.at - kRecent, last.at);
  auto slopes = slopes_of(recent);
  const bool is_little = last.at - recent.front().at < kEnough;
  if (is_little || slopes.empty()) {
    if (last.used >= last.room) return {true, "", 0, seconds(0), seconds(0), seconds(0)};
    return {false, is_little ? "counted for less than 45 minutes" : "counted too seldom"};
  }

  const Band slope = band_of(std::move(slopes));
  const double seen = hours_between(recent.front().at, last.at);
  const Days days = days_before(uses, last.at);
  // Without days the growth since the first count, or of the last day, goes on where it still does.
  const std::vector<Use> since = thinned(uses);
  auto since_slopes = slopes_of(since);
  const Band steady = since_slopes.empty() ? slope : band_of(std::move(since_slopes));
  const double steady_seen = since.size() < 2 ? seen : hours_between(since.front().at, last.at);
  const Band still = lesser(steady, slope);
  // Growth that was as fast before is nothing new.
  const double most = most_before(uses, last.at, steady.middle);
  const Band beside{std::max(0.0, slope.low - most), std::max(0.0, slope.middle - most),
                    std::max(0.0, slope.high - most)};
  const auto usual_at = [&](int step) -> Band {
    if (days.growth.empty()) return still * std::min(in_hours(step), steady_seen * kBelieved);
    const Band& day = days.growth.back();
    const Band growth = day * (step / kSteps) + days.growth[static_cast<std::size_t>(step % kSteps)];
    // A day goes no higher than those before, but for what they grew by, and the last one still does.
    const double below = std::max(0.0, days.peak - last.used);
    const auto peak = [&](double net) { return below + (step / kSteps + 1) * std::max(0.0, net); };
    return lesser(growth, {peak(std::min(day.low, days.last)), peak(std::min(day.middle, days.last)),
                           peak(std::max(day.high, days.last))});
  };

  Forecast found{true, ""};
  found.growth_an_hour = slope.middle;
  const auto note = [&](std::optional<seconds>& when, double used, seconds in) {
    if (!when && used >= last.room) when = in;
  };
  for (int i = 0; i * kStep <= kForecastMax && !found.latest; ++i) {
    const auto in = std::chrono::duration_cast<seconds>(i * kStep);
    const Band growth = usual_at(i) + beside * std::min(in_hours(i), seen * kBelieved);
    note(found.earliest, last.used + growth.high, in);
    note(found.full_in, last.used + growth.middle, in);
    note(found.latest, last.used + growth.low, in);
  }
  return found;
}

}  // namespace croft::core::history
