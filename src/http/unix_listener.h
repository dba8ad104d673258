#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_listener.h"
#include "http/transport.h"

namespace croft::os {

struct UnixListenerOptions {
  /// The users that may connect (SO_PEERCRED). The file's mode follows. It is 0600 for root and this process's own
  /// user; the file belongs to the one other user, if there is one; with several it is 0666, and the look at the peer
  /// alone decides.
  std::vector<std::uint32_t> users = {0};
  /// In the place of 0600. A mode with rights for a group: the file's group is root's where this process is root's.
  std::uint32_t file_mode = 0600;
  /// The mode of its directory, less the umask, where that has to be made; its parents have 0755.
  std::uint32_t directory_mode = 0755;
};

/// A Unix socket. A peer's user is checked before a byte is read: the connection of anybody who may not connect is
/// closed at once. The socket's file goes with the listener, or its closer(), if it is this one's still.
class UnixListener : public GrpcListener {
 public:
  /// Makes the socket, and its directory when that is missing. A socket that a dead process left is
  /// replaced. Errors: already_exists when another process listens there or holds `<path>.lock`, or the path is
  /// something else than a socket; invalid_argument for a path that is too long; else as system_error maps them.
  [[nodiscard]] static Result<std::unique_ptr<UnixListener>> listen(const std::string& path,
                                                                    const UnixListenerOptions& options,
                                                                    const Clock& clock);
};

/// No TLS, but a look at who listens on a Unix socket: the process must belong to root or to this process's user.
/// For endpoints of kind unix_socket with `secure` set.
class OwnPeer final : public TransportSecurity {
 public:
  /// Error: permission_denied.
  [[nodiscard]] Result<std::unique_ptr<Transport>> secure(std::unique_ptr<Transport> plain, const Endpoint& endpoint,
                                                          const Clock& clock, Deadline deadline) const override;
};

}  // namespace croft::os
