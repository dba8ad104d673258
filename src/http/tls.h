#pragma once

#include <memory>
#include <string>

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

}  // namespace croft::os
