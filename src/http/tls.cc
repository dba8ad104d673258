#include "http/tls.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "http/tls_parts.h"

namespace croft::os {
namespace {

using tls::ca_of;
using tls::Connection;
using tls::Context;
using tls::kReadableAtOnce;
using tls::openssl_reason;
using tls::Pipe;
using tls::TlsTransport;

/// As ALPN offers it: its length first.
constexpr std::string_view kHttp2 = "\x02h2";
constexpr std::string_view kHttp1 = "\x08http/1.1";

// ---------------------------------------------------------------- the handshake

[[nodiscard]] Result<Connection> connection_to(SSL_CTX* context, const TlsFiles& files, const Endpoint& endpoint,
                                               Pipe& pipe) {
  TRY(Connection connection, tls::make_connection(context, pipe));
  X509_VERIFY_PARAM* verify = SSL_get0_param(connection.get());
  X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const std::string_view alpn = files.http1 ? kHttp1 : kHttp2;
  bool set = SSL_set_alpn_protos(connection.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                                 static_cast<unsigned>(alpn.size())) == 0;  // its success
  const std::string& server_name = files.server_name;
  if (server_name.empty()) {
    set = set && X509_VERIFY_PARAM_set1_ip_asc(verify, endpoint.host.c_str()) == 1;
  } else {
    set = set && X509_VERIFY_PARAM_set1_host(verify, server_name.c_str(), server_name.size()) == 1 &&
          SSL_ctrl(connection.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                   const_cast<char*>(server_name.c_str())) == 1;
  }
  if (!set) return fail(ErrorCode::invalid_argument, fmt::format("{}: TLS: {}", endpoint.text(), openssl_reason()));
  return connection;
}

Error handshake_error(SSL* connection, const Endpoint& endpoint, const TlsFiles& files) {
  const std::string where = endpoint.text();
  const long verdict = SSL_get_verify_result(connection);
  if (verdict != X509_V_OK) {
    ERR_clear_error();
    return {ErrorCode::permission_denied,
            fmt::format("the certificate of {} is refused: {} (CA {})", where, X509_verify_cert_error_string(verdict),
                        ca_of(files).name()),
            {}};
  }
  const unsigned long code = ERR_peek_last_error();
  if (code == 0) return {ErrorCode::unavailable, fmt::format("{} broke off the TLS handshake", where), {}};
  const bool alert = ERR_GET_REASON(code) > SSL_AD_REASON_OFFSET;
  return {alert ? ErrorCode::permission_denied : ErrorCode::unavailable,
          fmt::format("no TLS with {}: {}", where, openssl_reason()),
          {}};
}

class Tls final : public TransportSecurity {
 public:
  explicit Tls(TlsFiles files) : files_(std::move(files)) {}

  [[nodiscard]] Result<std::unique_ptr<Transport>> secure(std::unique_ptr<Transport> plain, const Endpoint& endpoint,
                                                          const Clock& clock, Deadline deadline) const override {
    TRY(const Context context, tls::make_context(files_, TLS_client_method()));
    auto pipe = std::make_unique<Pipe>(Pipe{plain.get(), 0});
    TRY(Connection connection, connection_to(context.get(), files_, endpoint, *pipe));
    for (;;) {
      ERR_clear_error();
      pipe->readable = kReadableAtOnce;
      const int result = SSL_connect(connection.get());
      if (result == 1) break;
      const int why = SSL_get_error(connection.get(), result);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
        return fail(handshake_error(connection.get(), endpoint, files_));
      }
      const bool to_write = why == SSL_ERROR_WANT_WRITE;
      // Also for a peer that always has something for us.
      if (deadline.passed(clock.now()) ||
          !wait_for_descriptor(plain->descriptor(), !to_write, to_write, clock, deadline)) {
        return fail(ErrorCode::deadline_exceeded, fmt::format("no TLS with {}: no answer in time", endpoint.text()));
      }
    }
    const std::string_view agreed = tls::protocol_of(connection.get());
    const bool speaks_http1 = agreed.empty() || agreed == kHttp1.substr(1);
    if (files_.http1 ? !speaks_http1 : agreed != tls::kProtocol) {
      return fail(ErrorCode::unavailable, fmt::format("{} does not offer {}", endpoint.text(),
                                                      files_.http1 ? "HTTP/1.1 (ALPN)" : "HTTP/2 (ALPN h2)"));
    }
    return std::make_unique<TlsTransport>(std::move(plain), std::move(pipe), std::move(connection), endpoint.text());
  }

 private:
  TlsFiles files_;
};

}  // namespace

std::shared_ptr<const TransportSecurity> make_tls(TlsFiles files) { return std::make_shared<Tls>(std::move(files)); }

}  // namespace croft::os
