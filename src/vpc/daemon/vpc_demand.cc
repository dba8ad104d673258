#include "vpc/daemon/vpc_demand.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "os/files.h"
#include "vpc/format/demand.h"

namespace croft::app {
namespace {

using core::warm::DemandSample;
using std::chrono::milliseconds;

/// A sample tells no more than a day, nor more ADDs than a number of 31 bits.
constexpr milliseconds kSpanMax = std::chrono::hours{24};

milliseconds span_of(std::chrono::nanoseconds span) {
  return std::clamp(std::chrono::ceil<milliseconds>(span), milliseconds(0), kSpanMax);
}

std::uint32_t count_of(std::uint64_t count) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, INT32_MAX));
}

bool is_idle(const DemandSample& sample) {
  return sample.adds == 0 && sample.peak == 0 && sample.refill == milliseconds(0) && sample.empty == milliseconds(0);
}

}  // namespace

DemandRecord::DemandRecord(std::string path, const Clock& clock, std::function<void(const std::string&)> tell)
    : path_(std::move(path)), clock_(clock), tell_(std::move(tell)) {}

void DemandRecord::load() {
  if (path_.empty()) return;
  const auto bytes = os::read_file(path_, wire::kDemandBytesMax);
  if (!bytes) {
    if (bytes.error().code != ErrorCode::not_found) tell_once(fmt::format("{}: {}", path_, bytes.error().message));
    return;
  }
  auto read = wire::decode_demand(*bytes);
  if (!read) return tell_once(fmt::format("{}: {}: the record of demand begins anew", path_, read.error().message));
  samples_.assign(read->begin(), read->end());
  // Nothing is known of the time without an agent: it must not look like a part of what comes next.
  DemandSample gap;
  gap.at = clock_.now().wall;
  append(gap);
}

void DemandRecord::append(DemandSample sample) {
  // Somebody set the clock back.
  while (!samples_.empty() && samples_.back().at >= sample.at) samples_.pop_back();
  // Hours without anything are one sample, which ends where the next one begins. The first one is where the record
  // begins.
  const bool is_more_of_nothing = samples_.size() > 1 && is_idle(samples_.back()) && is_idle(sample);
  if (is_more_of_nothing) {
    samples_.back().at = sample.at;
  } else {
    samples_.push_back(sample);
  }
  // One that is older stays, without what happened: it says that the record covers the whole time.
  while (samples_.size() > 1 && samples_[1].at <= sample.at - kKept) samples_.pop_front();
  if (samples_.front().at <= sample.at - kKept) {
    DemandSample begin;
    begin.at = samples_.front().at;
    samples_.front() = begin;
  }
}

void DemandRecord::look(const Look& look) {
  const Instant now = clock_.now();
  if (!last_) {
    next_sample_ = now.since_boot + kEvery;
    next_save_ = now.since_boot + kWrittenEvery;
  }
  const Look before = last_.value_or(Look{});
  const auto passed = last_ ? now.since_boot - last_at_ : std::chrono::nanoseconds{0};
  const std::uint64_t adds = look.adds - std::min(before.adds, look.adds);
  open_.adds = count_of(open_.adds + adds);
  // Who got one since the last look and who waits still asked at the same time, as far as looks can tell.
  open_.peak = std::max(open_.peak, count_of(adds + look.waiting));
  if (look.brought > before.brought) open_.refill = std::max(open_.refill, span_of(look.last_fill));
  if (look.free == 0 && last_) open_.empty = span_of(open_.empty + passed);
  last_ = look;
  last_at_ = now.since_boot;
  if (now.since_boot >= next_sample_) {
    next_sample_ = now.since_boot + kEvery;
    open_.at = now.wall;
    append(std::exchange(open_, DemandSample{}));
  }
  if (now.since_boot >= next_save_) {
    next_save_ = now.since_boot + kWrittenEvery;
    save();
  }
}

void DemandRecord::end() {
  if (last_) {
    open_.at = clock_.now().wall;
    append(std::exchange(open_, DemandSample{}));
  }
  save();
}

void DemandRecord::save() {
  if (path_.empty() || samples_.empty()) return;
  const auto saved = os::replace_file_durably(path_, wire::encode_demand(samples()));
  if (!saved) return tell_once(fmt::format("{}: {}", path_, saved.error().message));
  told_.clear();
}

void DemandRecord::tell_once(const std::string& line) {
  if (line == told_) return;
  told_ = line;
  tell_(line);
}

}  // namespace croft::app
