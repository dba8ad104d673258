#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/result.h"
#include "http/tls.h"
#include "http/transport.h"

// The common parts of the client's and the server's side of TLS. Only for http/tls*.cc and test_certificates.h.

namespace croft::os::tls {

template <auto function>
struct Free {
  template <class T>
  void operator()(T* object) const {
    function(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Connection = std::unique_ptr<SSL, Free<SSL_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

inline constexpr std::string_view kProtocol = "h2";

/// Takes the last reason that OpenSSL noted, and leaves nothing of it.
[[nodiscard]] std::string openssl_reason();

/// Starts OpenSSL without the machine's configuration file, which may name libraries to load. Once; cheap after that.
void start_openssl();

/// PEM that is given as a text, or in a file.
struct Pem {
  const std::string& text;
  const std::string& file;
  std::string_view what;  ///< "CA"
  [[nodiscard]] bool is_set() const { return !text.empty() || !file.empty(); }
  [[nodiscard]] std::string name() const;
};
[[nodiscard]] Pem ca_of(const TlsFiles& files);

/// A context for either side: TLS 1.3, or 1.2 with forward secrecy and without CBC; no sessions are kept; the peer's
/// certificate is verified by the CA. Errors: as make_tls has them for its files.
[[nodiscard]] Result<Context> make_context(const TlsFiles& files, const SSL_METHOD* method);

/// The bytes that a connection reads from and writes to. OpenSSL's own socket BIO writes with write(2), which ends the
/// process when the peer has gone.
struct Pipe {
  Transport* transport = nullptr;
  std::size_t readable = 0;  ///< bytes until the next look at the time
};
/// One call of OpenSSL goes on for as long as it gets records that are no data; so it does not get all of them.
inline constexpr std::size_t kReadableAtOnce = std::size_t{256} << 10;

/// A connection of the context over the pipe, which must outlive it. Error: internal.
[[nodiscard]] Result<Connection> make_connection(SSL_CTX* context, Pipe& pipe);

/// The DNS names of a certificate (SAN), and its common name. A name is empty where it is longer than a name may be or
/// has other bytes than visible ASCII, so that each may be compared and logged.
[[nodiscard]] std::vector<std::string> dns_names_of(const X509* certificate);
[[nodiscard]] std::string common_name_of(const X509* certificate);

/// The protocol that both sides agreed on (ALPN); empty: none.
[[nodiscard]] std::string_view protocol_of(const SSL* connection);

/// A connection whose hands are shaken, as a stream of bytes.
class TlsTransport final : public Transport {
 public:
  TlsTransport(std::unique_ptr<Transport> plain, std::unique_ptr<Pipe> pipe, Connection connection, std::string peer)
      : plain_(std::move(plain)), pipe_(std::move(pipe)), connection_(std::move(connection)), peer_(std::move(peer)) {}

  [[nodiscard]] Result<Moved> read(std::span<std::byte> into) override;
  [[nodiscard]] Result<Moved> write(std::span<const std::byte> from) override;
  [[nodiscard]] int descriptor() const override { return plain_->descriptor(); }
  [[nodiscard]] bool write_waits_for_read() const override { return write_waits_for_read_; }
  [[nodiscard]] bool read_waits_for_write() const override { return read_waits_for_write_; }
  [[nodiscard]] SSL* connection() const { return connection_.get(); }
  /// Before each call of OpenSSL.
  void before_a_call();

 private:
  [[nodiscard]] Result<Moved> broken(std::string_view doing) const;

  std::unique_ptr<Transport> plain_;
  std::unique_ptr<Pipe> pipe_;  ///< what connection_ reads from and writes to
  Connection connection_;
  std::string peer_;
  bool write_waits_for_read_ = false;
  bool read_waits_for_write_ = false;
};

}  // namespace croft::os::tls
