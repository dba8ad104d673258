#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "os/file_descriptor.h"

struct sockaddr_storage;

namespace croft::os {

/// Where a server listens. Numeric: a static program can look up no names, and a plugin that waits for DNS waits for
/// the network it is about to make.
struct Endpoint {
  enum class Kind : std::uint8_t { tcp, unix_socket } kind = Kind::tcp;
  bool secure = false;     ///< TLS
  std::string host;        ///< tcp: the address, IPv6 without brackets
  std::uint16_t port = 0;  ///< tcp
  std::string path;        ///< unix_socket

  /// Reads `http://1.2.3.4:2379`, `https://[fd00::1]:2379` (a single `/` may follow) and `unix:/path`.
  /// Error: invalid_argument, saying what is wrong: another scheme, a name instead of an address, no port, a path.
  [[nodiscard]] static Result<Endpoint> parse(std::string_view text);
  /// Reads `1.2.3.4:7312` and `[fd00::1]:7312`, and nothing else: what somebody else said, who may not lead to a socket
  /// of this machine. Error: as parse().
  [[nodiscard]] static Result<Endpoint> parse_numeric(std::string_view text, bool secure);
  /// As parse() reads it.
  [[nodiscard]] std::string text() const;
  /// The `:authority` of requests: "1.2.3.4:2379"; "localhost" for a Unix socket.
  [[nodiscard]] std::string authority() const;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// A connected stream of bytes that never blocks.
class Transport {
 public:
  virtual ~Transport() = default;

  /// The result of one read or write. `bytes` may be less than asked; 0 with neither flag cannot be.
  struct Moved {
    std::size_t bytes = 0;
    bool would_block = false;  ///< nothing now: poll descriptor()
    bool ended = false;        ///< read: the peer has closed its side in order
  };
  /// Error: unavailable, with the reason; the transport is of no use after that.
  [[nodiscard]] virtual Result<Moved> read(std::span<std::byte> into) = 0;
  [[nodiscard]] virtual Result<Moved> write(std::span<const std::byte> from) = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Whether what blocks a write is that the peer must be read first, or the other way round (TLS).
  [[nodiscard]] virtual bool write_waits_for_read() const { return false; }
  [[nodiscard]] virtual bool read_waits_for_write() const { return false; }
};

/// Puts TLS on a connected transport (http/tls.h). An interface, so that a program without https doesn't carry OpenSSL.
class TransportSecurity {
 public:
  virtual ~TransportSecurity() = default;
  /// Shakes hands as client until the deadline. Errors: permission_denied when a certificate, ours or the server's, is
  /// refused, naming the reason; as os::read_file for its files; unavailable; deadline_exceeded.
  [[nodiscard]] virtual Result<std::unique_ptr<Transport>> secure(std::unique_ptr<Transport> plain,
                                                                  const Endpoint& endpoint, const Clock& clock,
                                                                  Deadline deadline) const = 0;
};

/// Connects to an endpoint: TCP without delay, or a Unix socket; with `security` when the endpoint asks for it.
/// Errors: unavailable (refused, unreachable, no such socket), deadline_exceeded, permission_denied; those of
/// TransportSecurity::secure. Nothing has been sent to an HTTP server then.
[[nodiscard]] Result<std::unique_ptr<Transport>> connect_transport(const Endpoint& endpoint,
                                                                   const TransportSecurity* security,
                                                                   const Clock& clock, Deadline deadline);

/// A connected socket that does not block, and nothing on top. `peer` is for messages.
[[nodiscard]] std::unique_ptr<Transport> socket_transport(FileDescriptor socket, std::string peer);

/// Writes an endpoint as the kernel takes it, and returns the length. Error: invalid_argument.
[[nodiscard]] Result<unsigned> socket_address(const Endpoint& endpoint, sockaddr_storage& address);

/// Whether the other end of a TCP socket is this one. Where nobody listens on a port of those that the kernel gives to
/// clients, it may give the very same, and connects the socket to itself.
[[nodiscard]] bool is_connected_to_itself(int socket);

/// Waits until a descriptor can be read (or written, as asked) or has an error, or the deadline; false at the deadline.
[[nodiscard]] bool wait_for_descriptor(int descriptor, bool readable, bool writable, const Clock& clock,
                                       Deadline deadline);

}  // namespace croft::os
