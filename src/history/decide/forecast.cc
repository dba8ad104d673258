#include "history/decide/forecast.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace croft::core::history {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr hours kRecent{3};
constexpr std::chrono::minutes kEnough{45};
constexpr hours kDay{24};
constexpr int kDaysMax = 7;
constexpr int kDaysMin = 2;
/// The forecast goes by steps of this.
constexpr std::chrono::minutes kStep{30};
/// Growth beside the days' own is believed to go on for so long as it has been seen, and this many times that.
constexpr double kBeside = 4;

double hours_between(WallTime from, WallTime until) {
  return std::chrono::duration<double, std::ratio<3600>>(until - from).count();
}

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const double place = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

struct Band {
  double low = 0, middle = 0, high = 0;
};
Band band_of(const std::vector<double>& values) {
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

/// The growth in the step after each of the days before, at the same hour.
std::vector<double> growths_of_days(std::span<const Use> uses, WallTime at) {
  std::vector<double> growths;
  for (int day = 1; day <= kDaysMax; ++day) {
    const auto from = used_at(uses, at - day * kDay);
    const auto until = used_at(uses, at + kStep - day * kDay);
    if (from && until) growths.push_back(*until - *from);
  }
  return growths;
}

}  // namespace

Forecast forecast(std::span<const Use> uses, WallTime now) {
  if (uses.empty()) return {false, "nothing was counted yet"};
  const Use& last = uses.back();
  if (now - last.at > kStale || last.at - now > kStale) return {false, "counted last more than 20 minutes ago"};
  const auto recent = between(uses, last.at - kRecent, last.at);
  if (last.at - recent.front().at < kEnough) return {false, "counted for less than 45 minutes"};
  const auto slopes = slopes_of(recent);
  if (slopes.empty()) return {false, "counted too seldom"};

  const double step_hours = std::chrono::duration<double, std::ratio<3600>>(kStep).count();
  const Band slope = band_of(slopes);
  std::vector<double> of_days;  // an hour, in the hours that were the recent ones of their day
  for (int day = 1; day <= kDaysMax; ++day) {
    const auto same = between(uses, recent.front().at - day * kDay, last.at - day * kDay);
    const auto their = slopes_of(same);
    if (!their.empty()) of_days.push_back(quantile(their, 0.5));
  }
  const bool has_days = static_cast<int>(of_days.size()) >= kDaysMin;
  const double usual = has_days ? quantile(of_days, 0.5) : 0;
  const double seen_hours = hours_between(recent.front().at, last.at);

  Forecast found{true, ""};
  found.growth_an_hour = slope.middle;
  Band used{last.used, last.used, last.used};
  const auto note = [&](std::optional<seconds>& when, double now_used, seconds in) {
    if (!when && now_used >= last.room) when = in;
  };
  note(found.full_in, used.middle, seconds(0));
  note(found.earliest, used.high, seconds(0));
  note(found.latest, used.low, seconds(0));
  for (WallTime at = last.at; at - last.at < kForecastMax && !found.latest; at += kStep) {
    Band growth{slope.low * step_hours, slope.middle * step_hours, slope.high * step_hours};
    if (has_days) {
      // Later days are as those that were seen.
      const auto days_ahead = std::chrono::floor<hours>(at - last.at) / kDay;
      const auto growths = growths_of_days(uses, at - days_ahead * kDay);
      if (growths.empty()) continue;
      growth = band_of(growths);
      if (hours_between(last.at, at) < seen_hours * kBeside) {
        growth.low += std::max(0.0, slope.low - usual) * step_hours;
        growth.middle += std::max(0.0, slope.middle - usual) * step_hours;
        growth.high += std::max(0.0, slope.high - usual) * step_hours;
      }
    }
    used = {used.low + growth.low, used.middle + growth.middle, used.high + growth.high};
    const auto in = std::chrono::duration_cast<seconds>(at + kStep - last.at);
    note(found.earliest, used.high, in);
    note(found.full_in, used.middle, in);
    note(found.latest, used.low, in);
  }
  return found;
}

}  // namespace croft::core::history
