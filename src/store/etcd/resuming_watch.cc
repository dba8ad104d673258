#include "store/etcd/resuming_watch.h"

#include <algorithm>
#include <thread>

#include "base/assert.h"

namespace croft::store::etcd {
namespace {

using std::chrono::nanoseconds;
constexpr nanoseconds kPauseMin = std::chrono::milliseconds{50};
constexpr nanoseconds kPauseMax = std::chrono::seconds{2};

}  // namespace

void ResumingWatch::watch(const WatchCreate& watch) {
  CROFT_ASSERT(watch.id > 0 && watch.start_revision > 0);
  CROFT_ASSERT(!watches_.contains(watch.id));
  watches_[watch.id] = watch;
  // A stream that takes no more is lost, and next() will see to that.
  if (stream_ && !stream_->add(watch)) stream_.reset();
}

void ResumingWatch::forget(std::int64_t id) {
  if (watches_.erase(id) == 0 || !stream_) return;
  if (!stream_->cancel(id)) stream_.reset();
}

Result<void> ResumingWatch::connect(Deadline deadline) {
  pause(deadline);
  TRY(auto stream, kv_.open_watch(deadline));
  ++connects_;
  for (const auto& [id, watch] : watches_) TRY_VOID(stream->add(watch));
  stream_ = std::move(stream);
  return {};
}

/// Longer each time, until something comes of it.
void ResumingWatch::pause(Deadline deadline) {
  const nanoseconds jitter{static_cast<std::int64_t>(random_.next() % 1000) * pause_.count() / 1000};
  const nanoseconds left = deadline.at_since_boot - clock_.now().since_boot;
  const nanoseconds span = std::min(pause_ / 2 + jitter / 2, left);
  if (span > nanoseconds{0}) std::this_thread::sleep_for(span);
  pause_ = std::clamp(pause_ * 2, kPauseMin, kPauseMax);
}

/// Remembers where to resume; false when the update is not for the caller.
bool ResumingWatch::note(const WatchUpdate& update) {
  using What = WatchUpdate::What;
  if (update.what != What::idle) pause_ = nanoseconds{0};
  const auto found = watches_.find(update.id);
  if (found == watches_.end()) return false;  // forgotten, or an answer for all
  switch (update.what) {
    case What::events:
      found->second.start_revision = update.events.back().kv.mod_revision + 1;
      return true;
    case What::progress:
      // Sent for this watch, in order behind its events.
      found->second.start_revision = std::max(found->second.start_revision, update.revision + 1);
      return false;
    case What::compacted:
    case What::canceled:
      watches_.erase(found);
      return true;
    case What::created:
    case What::idle:
      return false;
  }
  return false;
}

Result<WatchUpdate> ResumingWatch::next(Deadline deadline) {
  WatchUpdate idle;
  for (;;) {
    const bool late = deadline.passed(clock_.now());
    if (!stream_) {
      if (late) return idle;
      if (const auto connected = connect(deadline); !connected) {
        if (!is_transient(connected.error().code)) return fail(connected.error());
        idle.reason = connected.error().message;
        continue;
      }
    }
    auto update = stream_->next(deadline);
    if (!update) {
      stream_.reset();
      if (!is_transient(update.error().code)) return fail(update.error());
      idle.reason = update.error().message;
      continue;
    }
    if (note(*update)) return *std::move(update);
    if (update->what == WatchUpdate::What::idle) return idle;
    idle.reason.clear();
  }
}

}  // namespace croft::store::etcd
