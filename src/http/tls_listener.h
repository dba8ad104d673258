#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_listener.h"
#include "http/tls.h"

namespace croft::os {

struct TlsListenerOptions {
  std::string host;        ///< numeric, IPv4 or IPv6 without brackets; `0.0.0.0` and `::` are all of their family
  std::uint16_t port = 0;  ///< 0: one that is free
  /// Ours, and who may have signed those of the peers. All three are needed; `server_name` says nothing here.
  /// Files are read again when somebody connects, once a second at most: later connections meet the new ones. A
  /// file that can not be used is told, and the old ones go on.
  TlsFiles files;
  /// No TLS: anybody may connect, and nobody has a name.
  bool is_plain = false;
  /// Told, for a log, in the thread of the server: certificates that could not be read again, and peers that were
  /// refused, with the reason. Refusals are told once a second at most; GrpcServer counts the others. Must not
  /// block.
  std::function<void(const std::string&)> tell = [](const std::string&) {};
};

/// The DNS names of the first certificate in a PEM. Error: invalid_argument when none can be read.
[[nodiscard]] Result<std::vector<std::string>> certificate_names(const std::string& pem);

/// TCP with TLS for peers that have a certificate of our CA, and for nobody else. TLS is as make_tls has it, with a
/// certificate for clients (extended key usage) that is valid now, and ALPN `h2`. Sessions are not resumed, so that
/// each connection shows its certificate anew. A peer that is silent for half a minute while something is on its way to
/// it counts as gone.
class TlsListener : public GrpcListener {
 public:
  /// Errors: invalid_argument for an address that is none; already_exists when another program listens there;
  /// unavailable when the address is not this machine's; those of make_tls for its files.
  [[nodiscard]] static Result<std::unique_ptr<TlsListener>> listen(TlsListenerOptions options, const Clock& clock);
  /// The one it has, also when 0 was asked for.
  [[nodiscard]] virtual std::uint16_t port() const = 0;
};

}  // namespace croft::os
