#include "store/etcd/watch_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "store/etcd/verdict.h"

namespace croft::store::etcd {
namespace {

std::size_t bytes_of(const std::vector<Event>& events) {
  constexpr std::size_t kEventBytes = sizeof(Event);
  std::size_t bytes = events.size() * kEventBytes;
  for (const Event& event : events) {
    bytes += event.kv.key.size() + event.kv.value.size();
    if (event.previous) bytes += event.previous->value.size();
  }
  return bytes;
}

}  // namespace

Result<void> GrpcWatchStream::add(const WatchCreate& watch) {
  if (watch.id <= 0 || watch.key.empty()) {
    return fail(ErrorCode::invalid_argument, "a watch needs an id above 0 and a key");
  }
  const std::lock_guard lock(mutex_);
  TRY_VOID(stream_->write(wire::etcd::encode(wire::etcd::WatchRequest(watch))));
  unanswered_.push_back(watch.id);
  asked_for_.insert(watch.id);
  return {};
}

Result<void> GrpcWatchStream::cancel(std::int64_t id) {
  return stream_->write(wire::etcd::encode(wire::etcd::WatchRequest(wire::etcd::WatchCancel{id})));
}

Result<WatchUpdate> GrpcWatchStream::next(Deadline deadline) {
  for (;;) {
    if (lost_) return fail(*lost_);
    auto received = stream_->read(deadline);
    if (received.status) {
      lost_ = received.status->ok() ? Error{ErrorCode::unavailable, "etcd ended the stream", {}}
                                    : verdict_on(*received.status, false).error;
      lost_ = lost_->in("watch");
      continue;
    }
    if (!received.message) return WatchUpdate();
    auto response = wire::etcd::decode_watch(*received.message);
    auto update = response ? take(*std::move(response)) : fail(response.error());
    if (!update) {
      lost_ = update.error();
      continue;
    }
    if (*update) return **std::move(update);
    if (deadline.passed(clock_.now())) return WatchUpdate();
  }
}

bool GrpcWatchStream::was_asked_for(std::int64_t id) {
  const std::lock_guard lock(mutex_);
  return asked_for_.contains(id);
}

void GrpcWatchStream::forget_pieces(std::int64_t id) {
  const auto found = pieces_.find(id);
  if (found == pieces_.end()) return;
  pieces_bytes_ -= found->second.bytes;
  pieces_.erase(found);
}

/// Which watch a creation's answer is for: newer servers give a refused one the id -1, but all answer in order.
std::int64_t GrpcWatchStream::answered(std::int64_t id) {
  const std::lock_guard lock(mutex_);
  if (id <= 0 && !unanswered_.empty()) id = unanswered_.front();
  const auto found = std::find(unanswered_.begin(), unanswered_.end(), id);
  if (found != unanswered_.end()) unanswered_.erase(found);
  return id;
}

Result<std::optional<WatchUpdate>> GrpcWatchStream::take(wire::etcd::WatchResponse response) {
  using What = WatchUpdate::What;
  WatchUpdate update;
  update.id = response.created ? answered(response.id) : response.id;
  update.revision = response.revision;
  update.cluster = response.cluster;
  if (!was_asked_for(update.id)) return std::optional<WatchUpdate>();  // answers for the stream as a whole have -1
  if (response.canceled) {
    forget_pieces(update.id);
    {
      const std::lock_guard lock(mutex_);
      asked_for_.erase(asked_for_.find(update.id));
    }
    update.what = response.compact_revision != 0 ? What::compacted : What::canceled;
    update.compact_revision = response.compact_revision;
    update.reason = std::move(response.cancel_reason);
    return std::optional(std::move(update));
  }
  if (response.created) {
    update.what = What::created;
    return std::optional(std::move(update));
  }
  Pieces& pieces = pieces_[update.id];
  const std::size_t bytes = bytes_of(response.events);
  pieces.bytes += bytes;
  pieces_bytes_ += bytes;
  if (pieces_bytes_ > events_bytes_max_) {
    return fail(ErrorCode::corrupt, fmt::format("watch: one answer of etcd has more than {} bytes", events_bytes_max_));
  }
  std::move(response.events.begin(), response.events.end(), std::back_inserter(pieces.events));
  if (response.fragment) return std::optional<WatchUpdate>();
  update.events = std::move(pieces.events);
  forget_pieces(update.id);
  update.what = update.events.empty() ? What::progress : What::events;
  return std::optional(std::move(update));
}

}  // namespace croft::store::etcd
