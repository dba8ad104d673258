#include "vpc/decide/advice.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace croft::core::warm {
namespace {

using std::chrono::milliseconds;

/// The most ADDs of samples that a stretch of `length` can touch.
std::uint64_t most_adds_within(const std::vector<DemandSample>& samples, milliseconds length) {
  std::uint64_t most = 0;
  std::uint64_t sum = 0;
  std::size_t first = 0;
  for (std::size_t last = 0; last < samples.size(); ++last) {
    sum += samples[last].adds;
    // The interval of `first` ends at its `at`: one that ended before the stretch began is out.
    while (first < last && samples[first].at + length <= samples[last - 1].at) {
      sum -= samples[first++].adds;
    }
    most = std::max(most, sum);
  }
  return most;
}

/// The longest of 19 in 20 refills.
milliseconds usual_refill(const std::vector<DemandSample>& samples) {
  std::vector<milliseconds> refills;
  for (const DemandSample& sample : samples) {
    if (sample.refill > milliseconds(0)) refills.push_back(sample.refill);
  }
  if (refills.empty()) return kRefillAssumed;
  const std::size_t at = (refills.size() * 19 + 19) / 20 - 1;
  std::ranges::nth_element(refills, refills.begin() + static_cast<std::ptrdiff_t>(at));
  return refills[at];
}

std::string seconds_text(milliseconds span) {
  return fmt::format("{:.1f} s", static_cast<double>(span.count()) / 1000);
}

}  // namespace

Result<Advice> advise(const std::vector<DemandSample>& samples, const AdviceLimits& limits) {
  if (samples.empty()) return fail(ErrorCode::invalid_argument, "the record of demand has no samples");
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].at > samples[i - 1].at) continue;
    return fail(ErrorCode::invalid_argument,
                fmt::format("the record of demand: sample {} is not later than the one before", i));
  }
  const milliseconds refill = usual_refill(samples);
  const std::uint64_t burst = most_adds_within(samples, refill);
  const std::uint64_t churn = most_adds_within(samples, refill + limits.cooldown);
  std::uint64_t peak = 0;
  milliseconds empty{0};
  for (const DemandSample& sample : samples) {
    peak = std::max<std::uint64_t>(peak, sample.peak);
    empty += std::max(sample.empty, milliseconds(0));
  }
  Advice advice;
  const std::uint64_t asked = std::max(burst, peak);
  if (asked == 0) {
    advice.reasons.emplace_back("no pod asked for an address: nothing need be allocated ahead");
    return advice;
  }
  std::uint64_t low = asked;
  advice.reasons.push_back(
      peak > burst ? fmt::format("{} pods asked at the same time", peak)
                   : fmt::format("{} pods asked within {}, as long as a refill takes", burst, seconds_text(refill)));
  if (empty > milliseconds(0)) {
    low += (asked + 3) / 4;
    advice.reasons.push_back(fmt::format(
        "the stock was empty for {}, so that more may have wanted to ask: a quarter on top", seconds_text(empty)));
  }
  std::uint64_t high = low + std::max<std::uint64_t>(churn, 1);
  advice.reasons.push_back(
      fmt::format("{} pods asked within a cooldown and a refill: what they give back stays here", churn));
  if (high > limits.pods_max) {
    high = limits.pods_max;
    low = std::min<std::uint64_t>(low, high);
    advice.reasons.push_back(fmt::format("the node takes {} pods at most: no mark is above", limits.pods_max));
  }
  const auto covered = samples.back().at - samples.front().at;
  if (covered < kRecordWanted) {
    advice.reasons.push_back(fmt::format("the record covers {:.1f} hours: a day or more tells the busiest hour",
                                         std::chrono::duration<double, std::ratio<3600>>(covered).count()));
  }
  advice.low = static_cast<std::uint32_t>(low);
  advice.high = static_cast<std::uint32_t>(high);
  return advice;
}

}  // namespace croft::core::warm
