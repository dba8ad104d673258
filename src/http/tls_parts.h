#pragma once

#include <memory>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/result.h"
#include "http/tls.h"

// The parts of TLS that tests use too. Only for http/tls.cc and tests.

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

/// Starts OpenSSL without the machine's configuration file, which may name libraries to load. Once; cheap after that.
void start_openssl();

/// A context for either side: TLS 1.3, or 1.2 with forward secrecy and without CBC; no sessions are kept; the peer's
/// certificate is verified by the CA. Errors: as make_tls has them for its files.
[[nodiscard]] Result<Context> make_context(const TlsFiles& files, const SSL_METHOD* method);

}  // namespace croft::os::tls
