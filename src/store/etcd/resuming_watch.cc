#include "store/etcd/resuming_watch.h"

#include <algorithm>
#include <thread>

#include "base/assert.h"

namespace croft::store::etcd {
namespace {

using std::chrono::nanoseconds;
constexpr nanoseconds kResumePauseMin = std::chrono::milliseconds{50};
constexpr nanoseconds kResumePauseMax = std::chrono::seconds{2};

}  // namespace

void ResumingWatch::watch(const WatchCreate& watch) {
  CROFT_ASSERT(watch.id > 0 && watch.start_revision > 0);
  CROFT_ASSERT(!watches_.contains(watch.id));
  watches_[watch.id] = {watch, 0};
  // A stream that takes no more is lost, and next() will see to that.
  if (stream_ && !start(*stream_, watch.id)) stream_.reset();
}

void ResumingWatch::forget(std::int64_t id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  id_of_server_id_.erase(found->second.server_id);
  if (stream_ && !stream_->cancel(found->second.server_id)) stream_.reset();
  watches_.erase(found);
}

Result<void> ResumingWatch::start(WatchStream& stream, std::int64_t id) {
  Watched& watched = watches_.at(id);
  WatchCreate create = watched.create;
  create.id = watched.server_id = ++last_server_id_;
  id_of_server_id_[create.id] = id;
  return stream.add(create);
}

Result<void> ResumingWatch::connect(Deadline deadline) {
  pause(deadline);
  TRY(auto stream, kv_.open_watch(deadline));
  ++connects_;
  id_of_server_id_.clear();
  for (const auto& [id, watched] : watches_) TRY_VOID(start(*stream, id));
  stream_ = std::move(stream);
  return {};
}

/// Longer each time, until something comes of it.
void ResumingWatch::pause(Deadline deadline) {
  const nanoseconds jitter{static_cast<std::int64_t>(random_.next() % 1000) * pause_.count() / 1000};
  const nanoseconds left = deadline.at_since_boot - clock_.now().since_boot;
  const nanoseconds span = std::min(pause_ / 2 + jitter / 2, left);
  if (span > nanoseconds{0}) std::this_thread::sleep_for(span);
  pause_ = std::clamp(pause_ * 2, kResumePauseMin, kResumePauseMax);
}

/// Remembers where to resume, and gives the update the caller's id; false when it is not for the caller.
bool ResumingWatch::note(WatchUpdate& update) {
  using What = WatchUpdate::What;
  if (update.what != What::idle) pause_ = nanoseconds{0};
  const auto found = id_of_server_id_.find(update.id);
  if (found == id_of_server_id_.end()) return false;  // forgotten, or an answer for all
  WatchCreate& create = watches_.at(found->second).create;
  update.id = found->second;
  switch (update.what) {
    case What::events:
      create.start_revision = update.events.back().kv.mod_revision + 1;
      return true;
    case What::progress:
      // Sent for this watch, in order behind its events.
      create.start_revision = std::max(create.start_revision, update.revision + 1);
      return false;
    case What::compacted:
    case What::canceled:
      forget(found->second);  // the server keeps something of it until it is told
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
    if (late || update->what == WatchUpdate::What::idle) return idle;
    idle.reason.clear();
  }
}

}  // namespace croft::store::etcd
