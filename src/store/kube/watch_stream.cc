#include "store/kube/watch_stream.h"

namespace croft::store::kube {

Result<std::optional<wire::kube::ApiEvent>> Http2WatchStream::next(Deadline deadline) {
  for (bool late = false;;) {
    TRY(const auto line, lines_.next());
    if (line) {
      TRY(auto event, wire::kube::decode_event(*line));
      return std::optional(std::move(event));
    }
    if (end_) return fail(lines_.has_rest() ? end_->in("a watch broke off within an event") : *end_);
    // An event that comes byte by byte must not be waited for beyond the deadline.
    if (late) return std::optional<wire::kube::ApiEvent>();
    auto received = stream_->read(deadline);
    if (received.timed_out) return std::optional<wire::kube::ApiEvent>();
    late = received.late;
    lines_.add(received.bytes);
    if (received.ended) end_ = Error{ErrorCode::unavailable, "the API server has ended the watch", {}};
    if (received.failure) {
      end_ = received.failure->error.in("watch");
      // Too much at once is also nothing that can be read.
      end_->code = end_->code == ErrorCode::invalid_argument || end_->code == ErrorCode::corrupt
                       ? ErrorCode::corrupt
                       : ErrorCode::unavailable;
    }
  }
}

}  // namespace croft::store::kube
