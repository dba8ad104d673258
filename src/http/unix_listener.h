#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_listener.h"
#include "http/transport.h"
#include "os/file_descriptor.h"
#include "os/file_lock.h"

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

/// A Unix socket with a gate, for a loop that waits for many descriptors. A peer is checked before a byte is read, and
/// running out of descriptors refuses connections instead of ending the service. It never blocks. Not synchronised.
class UnixListener final : public GrpcListener {
 public:
  /// Makes the socket, and its directory when that is missing. A socket that a dead process left is
  /// replaced. Errors: already_exists when another process listens there or holds `<path>.lock`, or the path is
  /// something else than a socket; invalid_argument for a path that is too long; else as system_error maps them.
  [[nodiscard]] static Result<std::unique_ptr<UnixListener>> listen(const std::string& path,
                                                                    const UnixListenerOptions& options,
                                                                    const Clock& clock);
  /// Removes the socket's file, if it is this one's still.
  ~UnixListener() override;

  [[nodiscard]] int descriptor() const override { return gate_.descriptor(); }
  /// Without a guard: the look at the user has been enough. A connection of anybody who may not connect is closed at
  /// once.
  [[nodiscard]] std::optional<Accepted> next() override;
  [[nodiscard]] bool is_stuck() const override { return gate_.is_stuck(); }
  /// Removes the socket's file, if it is still this one's, so that nobody finds the way any more.
  [[nodiscard]] std::function<void()> closer() const override;
  [[nodiscard]] std::string where() const override { return path_; }
  [[nodiscard]] const Counts& counts() const override { return gate_.counts(); }

 private:
  UnixListener(std::string path, const UnixListenerOptions& options, const Clock& clock);
  [[nodiscard]] Result<void> make_directory() const;
  [[nodiscard]] Result<void> open();
  struct FileAccess {
    std::uint32_t mode = 0;
    std::uint32_t owner = 0;
  };
  [[nodiscard]] FileAccess file_access() const;
  [[nodiscard]] bool may_connect(int connection) const;

  const std::string path_;
  const UnixListenerOptions options_;
  const Clock& clock_;
  FileLock lock_;
  AcceptGate gate_;
  std::uint64_t inode_ = 0;
  std::uint64_t device_ = 0;
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
