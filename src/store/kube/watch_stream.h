#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "http/http2_connection.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// A watch on an HTTP/2 stream, whose answer has begun with 200.
class Http2WatchStream final : public WatchStream {
 public:
  Http2WatchStream(std::shared_ptr<os::Http2Stream> stream, std::size_t event_bytes_max)
      : stream_(std::move(stream)), lines_(event_bytes_max) {}

  [[nodiscard]] Result<std::optional<wire::kube::ApiEvent>> next(Deadline deadline) override;

 private:
  std::shared_ptr<os::Http2Stream> stream_;
  wire::kube::WatchLines lines_;
  std::optional<Error> end_;  ///< of the stream, behind what `lines_` has
};

}  // namespace croft::store::kube
