#pragma once

#include <functional>
#include <optional>

#include "base/result.h"
#include "http/grpc_listener.h"
#include "os/file_descriptor.h"

namespace croft::os {

/// Accepts the connections of a listening socket, which must not block. Running out of descriptors refuses
/// connections instead of ending the service. Not synchronised.
class AcceptGate {
 public:
  /// Takes the socket, and a descriptor to spare. Error: as system_error maps that there is none.
  [[nodiscard]] Result<void> open(FileDescriptor socket);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// The next connection, not blocking, that `may_connect` lets in; nothing when nobody else waits, or when many were
  /// refused: descriptor() is readable still, then.
  [[nodiscard]] std::optional<FileDescriptor> accept(const std::function<bool(int connection)>& may_connect);
  /// GrpcListener::is_stuck().
  [[nodiscard]] bool is_stuck() const { return stuck_; }
  [[nodiscard]] const GrpcListener::Counts& counts() const { return counts_; }

 private:
  void refuse_without_descriptor();

  FileDescriptor socket_;
  FileDescriptor spare_;  ///< given up for a moment when there are no others
  bool stuck_ = false;
  GrpcListener::Counts counts_;
};

}  // namespace croft::os
