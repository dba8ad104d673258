#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

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

}  // namespace croft::os
