#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_listener.h"
#include "http/transport.h"

namespace croft::os {

/// PEM files. They are read when a connection is made, so that certificates that were renewed are used from then on.
struct TlsFiles {
  std::string ca_file;           ///< who may have signed the server's certificate; needed, or `ca_pem`
  std::string certificate_file;  ///< ours, with the intermediate ones after it; empty: none
  std::string key_file;          ///< belongs to certificate_file; not encrypted; not for others to read (mode 0600)
  /// The name the server's certificate must have. Empty: the endpoint's own address, as IP SAN.
  std::string server_name;
  /// HTTP/1.1 is to be spoken: that is what ALPN offers, and a server that knows no ALPN will do.
  bool http1 = false;

  /// The same as text, for who has no files; each wins over its file.
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;
};

/// TLS 1.3, or 1.2 with forward secrecy and without CBC, as client, with ALPN `h2` (or `http/1.1`). A server whose
/// certificate is not signed by the CA, is not valid now or is not for the endpoint's address is refused. The machine's
/// own list of authorities and OpenSSL's configuration file are not looked at. Safe to use from several threads.
[[nodiscard]] std::shared_ptr<const TransportSecurity> make_tls(TlsFiles files);

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
