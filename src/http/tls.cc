#include "http/tls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/pacing.h"
#include "base/texts.h"
#include "http/tls_parts.h"
#include "os/files.h"
#include "os/system_error.h"

namespace croft::os::tls {
namespace {

constexpr std::size_t kPemBytesMax = std::size_t{1} << 20;
constexpr std::string_view kProtocol = "h2";
/// As ALPN offers it: its length first.
constexpr std::string_view kHttp2 = "\x02h2";
constexpr std::string_view kHttp1 = "\x08http/1.1";

/// Takes the last reason that OpenSSL noted, and leaves nothing of it.
std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "unknown reason" : reason;
}

/// The peer has told us that it refuses.
bool is_alert(unsigned long code) { return ERR_GET_REASON(code) > SSL_AD_REASON_OFFSET; }

// ---------------------------------------------------------------- a BIO on a Transport

/// The bytes that a connection reads from and writes to. OpenSSL's own socket BIO writes with write(2), which ends the
/// process when the peer has gone.
struct Pipe {
  std::unique_ptr<Transport> transport;
  std::size_t readable = 0;  ///< bytes until the next look at the time
};
/// One call of OpenSSL goes on for as long as it gets records that are no data; so it does not get all of them.
constexpr std::size_t kReadableAtOnce = std::size_t{256} << 10;

int bio_write(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  auto* pipe = static_cast<Pipe*>(BIO_get_data(bio));
  const auto moved = pipe->transport->write(std::as_bytes(std::span(bytes, static_cast<std::size_t>(size))));
  if (moved && moved->would_block) BIO_set_retry_write(bio);
  return moved && !moved->would_block ? static_cast<int>(moved->bytes) : -1;
}

int bio_read(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  auto* pipe = static_cast<Pipe*>(BIO_get_data(bio));
  const std::size_t room = std::min(static_cast<std::size_t>(size), pipe->readable);
  Result<Transport::Moved> moved = Transport::Moved{0, true, false};
  if (room > 0) moved = pipe->transport->read(std::as_writable_bytes(std::span(bytes, room)));
  if (!moved) return -1;
  pipe->readable -= moved->bytes;
  if (moved->would_block) BIO_set_retry_read(bio);
  return moved->would_block ? -1 : static_cast<int>(moved->bytes);  // 0: the end
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* transport_bio() {
  static BIO_METHOD* const kMethod = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "transport");
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_ctrl(method, bio_control);
    return method;
  }();
  return kMethod;
}

// ---------------------------------------------------------------- files

/// PEM that is given as a text, or in a file.
struct Pem {
  const std::string& text;
  const std::string& file;
  std::string_view what;  ///< "CA"
  [[nodiscard]] bool is_set() const { return !text.empty() || !file.empty(); }
  [[nodiscard]] std::string name() const {
    return text.empty() ? file : fmt::format("({} in the configuration)", what);
  }
};
Pem ca_of(const TlsFiles& files) { return {files.ca_pem, files.ca_file, "CA"}; }
Pem certificate_of(const TlsFiles& files) { return {files.certificate_pem, files.certificate_file, "certificate"}; }
Pem key_of(const TlsFiles& files) { return {files.key_pem, files.key_file, "key"}; }

Error bad_file(const Pem& pem, std::string_view what) {
  return make_error(ErrorCode::permission_denied, "TLS file {} {}: {}", pem.name(), what, openssl_reason());
}

using ReadFile = Result<std::string> (*)(const std::string&, std::size_t);

[[nodiscard]] Result<Bio> open_pem(const Pem& pem, std::string& content, ReadFile how = read_file) {
  if (pem.text.empty()) {
    auto read = how(pem.file, kPemBytesMax);
    if (!read) {
      // Something else in a file's place is as little a certificate as what can't be read.
      const bool is_none = read.error().code == ErrorCode::invalid_argument;
      Error error = std::move(read).error().in("TLS file");
      if (is_none) error.code = ErrorCode::permission_denied;
      return fail(std::move(error));
    }
    content = *std::move(read);
  } else {
    if (pem.text.size() > kPemBytesMax) return fail(ErrorCode::invalid_argument, pem.name() + " is too long");
    content = pem.text;
  }
  return Bio(BIO_new_mem_buf(content.data(), static_cast<int>(content.size())));
}

/// All certificates of a file. Error when there is none.
[[nodiscard]] Result<std::vector<Certificate>> read_certificates(const Pem& pem) {
  std::string content;
  TRY(const Bio bio, open_pem(pem, content));
  ERR_clear_error();
  std::vector<Certificate> certificates;
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) certificates.emplace_back(one);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (certificates.empty() || !at_end) return fail(bad_file(pem, "has no certificate that can be read"));
  ERR_clear_error();
  return certificates;
}

[[nodiscard]] Result<void> use_ca(SSL_CTX* context, const Pem& pem) {
  TRY(const auto certificates, read_certificates(pem));
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const Certificate& one : certificates) {
    if (X509_STORE_add_cert(store, one.get()) != 1) return fail(bad_file(pem, "can not be used as CA"));
  }
  return {};
}

[[nodiscard]] Result<void> use_certificate(SSL_CTX* context, const TlsFiles& files) {
  const Pem certificate = certificate_of(files);
  const Pem key_pem = key_of(files);
  TRY(const auto certificates, read_certificates(certificate));
  if (SSL_CTX_use_certificate(context, certificates.front().get()) != 1) {
    return fail(bad_file(certificate, "can not be used"));
  }
  for (std::size_t i = 1; i < certificates.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, certificates[i].get()) != 1) {
      return fail(bad_file(certificate, "can not be used"));
    }
  }
  std::string content;
  TRY(const Bio bio, open_pem(key_pem, content, read_secret_file));
  // Without a callback OpenSSL would ask the terminal for the password of an encrypted key.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  const bool is_encrypted = content.find("BEGIN ENCRYPTED PRIVATE KEY") != content.npos ||
                            content.find("Proc-Type: 4,ENCRYPTED") != content.npos;
  OPENSSL_cleanse(content.data(), content.size());
  if (!key && is_encrypted) {
    ERR_clear_error();
    return fail(ErrorCode::permission_denied,
                "TLS file {}: the key has a passphrase, which nobody is there to type: write it without one "
                "(openssl pkey -in KEY -out NEW, mode 0600)",
                key_pem.name());
  }
  if (!key) return fail(bad_file(key_pem, "has no key that can be read"));
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return fail(bad_file(key_pem, fmt::format("does not belong to {}", certificate.name())));
  }
  return {};
}

}  // namespace

void start_openssl() {
  static std::once_flag once;
  std::call_once(once, [] { OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr); });
}

Result<Context> make_context(const TlsFiles& files, const SSL_METHOD* method) {
  start_openssl();
  Context context(SSL_CTX_new(method));
  if (!context) return fail(ErrorCode::internal, "OpenSSL: " + openssl_reason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // For TLS 1.2: a key of its own for each connection, and no padding for anybody to ask about (CBC). The suites of
  // etcd's and Kubernetes' own servers are among these.
  if (SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
    return fail(ErrorCode::internal, "OpenSSL: " + openssl_reason());
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // The same bytes are offered again after a write that would block, from a buffer that may have moved.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context.get(), 1);  // one recv for all there is, instead of two a record
  if (!ca_of(files).is_set()) return fail(ErrorCode::invalid_argument, "TLS needs the file of a CA");
  TRY_VOID(use_ca(context.get(), ca_of(files)));
  if (certificate_of(files).is_set() != key_of(files).is_set()) {
    return fail(ErrorCode::invalid_argument, "TLS needs a certificate and its key, or neither");
  }
  if (certificate_of(files).is_set()) TRY_VOID(use_certificate(context.get(), files));
  return context;
}

namespace {

/// The protocol that both sides agreed on (ALPN); empty: none.
std::string_view protocol_of(const SSL* connection) {
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(connection, &protocol, &size);
  return {reinterpret_cast<const char*>(protocol), size};
}

// ---------------------------------------------------------------- names

/// As long as a DNS name may be, and more than X.509 allows a common name.
constexpr std::size_t kNameBytesMax = 253;

/// A name as it may stand in a log and be compared with others: visible ASCII; else empty.
std::string plain_name(const ASN1_STRING* text) {
  const auto* bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(text));
  if (size > kNameBytesMax) return {};
  std::string name(bytes, size);
  const bool visible = std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  return visible ? name : std::string();
}

std::vector<std::string> dns_names_of(const X509* certificate) {
  using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;
  const Names all(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> names;
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* one = sk_GENERAL_NAME_value(all.get(), i);
    if (one->type == GEN_DNS) names.push_back(plain_name(one->d.dNSName));
  }
  return names;
}

/// The first DNS name of a certificate (SAN), else its common name. Empty where that is longer than a name may be or
/// has other bytes than visible ASCII, so that each may be compared and logged.
std::string name_in(const X509* certificate) {
  std::vector<std::string> names = dns_names_of(certificate);
  if (!names.empty()) return std::move(names.front());
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  return at < 0 ? std::string() : plain_name(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

// ---------------------------------------------------------------- the transport

/// A connection of TLS as a stream of bytes, once its hands are shaken.
class TlsTransport : public Transport {
 public:
  TlsTransport(std::unique_ptr<Transport> plain, std::string whom) : pipe_{std::move(plain)}, whom_(std::move(whom)) {}

  /// First. Error: internal.
  [[nodiscard]] Result<void> open(SSL_CTX* context) {
    connection_.reset(SSL_new(context));
    Bio bio(BIO_new(transport_bio()));
    if (!connection_ || !bio) return fail(ErrorCode::internal, "OpenSSL: " + openssl_reason());
    BIO_set_data(bio.get(), &pipe_);
    BIO_set_init(bio.get(), 1);
    BIO* const one = bio.release();  // the connection owns it from here on, for both directions
    SSL_set_bio(connection_.get(), one, one);
    return {};
  }

  [[nodiscard]] Result<Moved> read(std::span<std::byte> into) override {
    std::size_t bytes = 0;
    before_a_call();
    const int result = SSL_read_ex(connection_.get(), into.data(), into.size(), &bytes);
    return moved(result, bytes, true);
  }
  [[nodiscard]] Result<Moved> write(std::span<const std::byte> from) override {
    std::size_t bytes = 0;
    before_a_call();
    const int result = SSL_write_ex(connection_.get(), from.data(), from.size(), &bytes);
    return moved(result, bytes, false);
  }
  [[nodiscard]] int descriptor() const override { return pipe_.transport->descriptor(); }
  [[nodiscard]] bool write_waits_for_read() const override { return write_waits_for_read_; }
  [[nodiscard]] bool read_waits_for_write() const override { return read_waits_for_write_; }
  [[nodiscard]] SSL* connection() const { return connection_.get(); }
  /// Before each call of OpenSSL.
  void before_a_call() {
    ERR_clear_error();
    pipe_.readable = kReadableAtOnce;
  }

 private:
  /// In TLS 1.3 a server refuses our certificate only after our side of the handshake is complete: the alert arrives
  /// with the first read.
  [[nodiscard]] Result<Moved> moved(int result, std::size_t bytes, bool reading) {
    const int why = result == 1 ? SSL_ERROR_NONE : SSL_get_error(connection_.get(), result);
    (reading ? read_waits_for_write_ : write_waits_for_read_) =
        why == (reading ? SSL_ERROR_WANT_WRITE : SSL_ERROR_WANT_READ);
    if (why == SSL_ERROR_NONE) return Moved{bytes, false, false};
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return Moved{0, true, false};
    if (reading && why == SSL_ERROR_ZERO_RETURN) return Moved{0, false, true};
    const char* doing = reading ? "read from" : "write to";
    const unsigned long code = ERR_peek_last_error();
    if (code == 0) return fail(ErrorCode::unavailable, "cannot {} {}: the connection was cut", doing, whom_);
    return fail(is_alert(code) ? ErrorCode::permission_denied : ErrorCode::unavailable, "cannot {} {}: TLS: {}", doing,
                whom_, openssl_reason());
  }

  Pipe pipe_;  ///< what connection_ reads from and writes to
  Connection connection_;
  bool write_waits_for_read_ = false;
  bool read_waits_for_write_ = false;

 protected:
  const std::string whom_;  ///< the peer, for messages
};

// ---------------------------------------------------------------- the client's handshake

/// Says which server is meant, and by which protocol.
[[nodiscard]] Result<void> expect_server(SSL* connection, const TlsFiles& files, const Endpoint& endpoint) {
  X509_VERIFY_PARAM* verify = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const std::string_view alpn = files.http1 ? kHttp1 : kHttp2;
  bool set = SSL_set_alpn_protos(connection, reinterpret_cast<const unsigned char*>(alpn.data()),
                                 static_cast<unsigned>(alpn.size())) == 0;  // its success
  const std::string& server_name = files.server_name;
  if (server_name.empty()) {
    set = set && X509_VERIFY_PARAM_set1_ip_asc(verify, endpoint.host.c_str()) == 1;
  } else {
    set = set && X509_VERIFY_PARAM_set1_host(verify, server_name.c_str(), server_name.size()) == 1 &&
          SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                   const_cast<char*>(server_name.c_str())) == 1;
  }
  return set ? Result<void>() : fail(ErrorCode::invalid_argument, "{}: TLS: {}", endpoint.text(), openssl_reason());
}

Error handshake_error(SSL* connection, const Endpoint& endpoint, const TlsFiles& files) {
  const std::string where = endpoint.text();
  const long verdict = SSL_get_verify_result(connection);
  if (verdict != X509_V_OK) {
    ERR_clear_error();
    return make_error(ErrorCode::permission_denied, "the certificate of {} is refused: {} (CA {})", where,
                      X509_verify_cert_error_string(verdict), ca_of(files).name());
  }
  const unsigned long code = ERR_peek_last_error();
  if (code == 0) return make_error(ErrorCode::unavailable, "{} broke off the TLS handshake", where);
  return make_error(is_alert(code) ? ErrorCode::permission_denied : ErrorCode::unavailable, "no TLS with {}: {}", where,
                    openssl_reason());
}

class Tls final : public TransportSecurity {
 public:
  explicit Tls(TlsFiles files) : files_(std::move(files)) {}

  [[nodiscard]] Result<std::unique_ptr<Transport>> secure(std::unique_ptr<Transport> plain, const Endpoint& endpoint,
                                                          const Clock& clock, Deadline deadline) const override {
    TRY(const Context context, make_context(files_, TLS_client_method()));
    auto transport = std::make_unique<TlsTransport>(std::move(plain), endpoint.text());
    TRY_VOID(transport->open(context.get()));
    SSL* const connection = transport->connection();
    TRY_VOID(expect_server(connection, files_, endpoint));
    for (;;) {
      transport->before_a_call();
      const int result = SSL_connect(connection);
      if (result == 1) break;
      const int why = SSL_get_error(connection, result);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
        return fail(handshake_error(connection, endpoint, files_));
      }
      const bool to_write = why == SSL_ERROR_WANT_WRITE;
      // Also for a peer that always has something for us.
      if (deadline.passed(clock.now()) ||
          !wait_for_descriptor(transport->descriptor(), !to_write, to_write, clock, deadline)) {
        return fail(ErrorCode::deadline_exceeded, "no TLS with {}: no answer in time", endpoint.text());
      }
    }
    const std::string_view agreed = protocol_of(connection);
    const bool speaks_http1 = agreed.empty() || agreed == kHttp1.substr(1);
    if (files_.http1 ? speaks_http1 : agreed == kProtocol) return transport;
    return fail(ErrorCode::unavailable, "{} does not offer {}", endpoint.text(),
                files_.http1 ? "HTTP/1.1 (ALPN)" : "HTTP/2 (ALPN h2)");
  }

 private:
  TlsFiles files_;
};

// ---------------------------------------------------------------- sockets of the server

using Nanos = std::chrono::nanoseconds;

constexpr int kBacklog = 512;
constexpr Nanos kLoadAgain = std::chrono::seconds{1};
constexpr Nanos kTellAgain = std::chrono::seconds{1};
/// More than a client with a chain of certificates needs before it has proven itself; then it is left.
constexpr std::size_t kHandshakeBytesMax = std::size_t{128} << 10;

Endpoint at(std::string host, std::uint16_t port) { return {Endpoint::Kind::tcp, false, std::move(host), port, {}}; }

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

std::string peer_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "a peer that is gone";
  const void* const bytes = address.ss_family == AF_INET
                                ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                                : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  std::array<char, INET6_ADDRSTRLEN> host{};
  ::inet_ntop(address.ss_family, bytes, host.data(), host.size());
  return at(host.data(), port_of(address)).authority();
}

bool set_option(int socket, int level, int name, int value) {
  return ::setsockopt(socket, level, name, &value, sizeof value) == 0;
}

/// A peer whose machine lost its power says nothing any more: its calls must not stay for ever.
void prepare(int socket) {
  constexpr int kSilentSeconds = 15;
  constexpr int kBetweenSeconds = 5;
  constexpr int kProbes = 3;
  constexpr int kUnacknowledgedMillis = 30000;
  // Best effort: without them it works as well, and forgets later.
  static_cast<void>(set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1) &&
                    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1) &&
                    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kSilentSeconds) &&
                    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kBetweenSeconds) &&
                    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes) &&
                    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMillis));
}

// ---------------------------------------------------------------- the server's side of a connection

using Refused = std::function<void(const std::string& peer, const std::string& why)>;

class ServerTransport final : public TlsTransport, public Guard {
 public:
  ServerTransport(std::unique_ptr<Transport> plain, std::string address, Refused refused)
      : TlsTransport(std::move(plain), std::move(address)), refused_(std::move(refused)) {}
  ~ServerTransport() override {
    if (!peer_) return;
    // Says goodbye, if that is possible at once.
    before_a_call();
    static_cast<void>(SSL_shutdown(connection()));
    ERR_clear_error();
  }
  ServerTransport(const ServerTransport&) = delete;
  ServerTransport& operator=(const ServerTransport&) = delete;

  [[nodiscard]] Proof prove() override {
    before_a_call();
    const int result = SSL_accept(connection());
    waits_for_room_ = false;
    if (result != 1) {
      const int why = SSL_get_error(connection(), result);
      waits_for_room_ = why == SSL_ERROR_WANT_WRITE;
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return refuse(reason());
      if (BIO_number_read(SSL_get_rbio(connection())) > kHandshakeBytesMax) return refuse("its handshake has no end");
      return Proof::awaited;
    }
    const X509* certificate = SSL_get0_peer_certificate(connection());
    if (certificate == nullptr || SSL_get_verify_result(connection()) != X509_V_OK) return refuse("no certificate");
    if (protocol_of(connection()) != kProtocol) return refuse("it does not ask for HTTP/2 (ALPN h2)");
    std::string name = name_in(certificate);
    if (name.empty()) return refuse("its certificate has no name that can be used (DNS name or common name)");
    peer_ = std::make_shared<const GrpcPeer>(GrpcPeer{std::move(name), whom_});
    return Proof::given;
  }
  [[nodiscard]] std::shared_ptr<const GrpcPeer> peer() const override { return peer_; }

  [[nodiscard]] bool read_waits_for_write() const override {
    return peer_ ? TlsTransport::read_waits_for_write() : waits_for_room_;
  }

 private:
  [[nodiscard]] std::string reason() const {
    const long verdict = SSL_get_verify_result(connection());
    if (verdict != X509_V_OK) return std::string("its certificate: ") + X509_verify_cert_error_string(verdict);
    return ERR_peek_last_error() == 0 ? "it broke off the handshake" : openssl_reason();
  }
  [[nodiscard]] Proof refuse(const std::string& why) const {
    ERR_clear_error();
    refused_(whom_, why);
    return Proof::withheld;
  }

  const Refused refused_;
  std::shared_ptr<const GrpcPeer> peer_;
  bool waits_for_room_ = false;
};

// ---------------------------------------------------------------- the files

int choose_http2(SSL*, const unsigned char** chosen, unsigned char* chosen_size, const unsigned char* offered,
                 unsigned offered_size, void*) {
  for (unsigned at = 0; at < offered_size;) {
    const unsigned size = offered[at];
    if (size > offered_size - at - 1) break;
    if (std::equal(offered + at + 1, offered + at + 1 + size, kProtocol.begin(), kProtocol.end())) {
      *chosen = offered + at + 1;
      *chosen_size = static_cast<unsigned char>(size);
      return SSL_TLSEXT_ERR_OK;
    }
    at += size + 1;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

[[nodiscard]] Result<Context> server_context(const TlsFiles& files) {
  TRY(Context context, make_context(files, TLS_server_method()));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  constexpr long kChainBytesMax = 32L << 10;
  SSL_CTX_set_max_cert_list(context.get(), kChainBytesMax);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_http2, nullptr);
  return context;
}

/// The context of new connections, and who was refused last. Connections keep it: they may outlive their listener.
class Credentials {
 public:
  Credentials(const TlsListenerOptions& options, const Clock& clock)
      : files_(options.files), tell_(options.tell), clock_(clock) {}

  [[nodiscard]] Result<void> load() {
    TRY(context_, server_context(files_));
    return {};
  }

  [[nodiscard]] SSL_CTX* context() {
    if (!loads_.take(clock_.now().since_boot)) return context_.get();
    if (auto fresh = server_context(files_)) {
      context_ = *std::move(fresh);
      trouble_.clear();
    } else if (std::exchange(trouble_, fresh.error().message) != fresh.error().message) {
      tell_(fmt::format("TLS: the certificates of before go on, as the new ones can not be used: {}",
                        fresh.error().message));
    }
    return context_.get();
  }

  void refused(const std::string& peer, const std::string& why) {
    if (!tells_.take(clock_.now().since_boot)) return;
    tell_(fmt::format("TLS: refused {}: {}", peer, why));
  }

 private:
  const TlsFiles files_;
  const std::function<void(const std::string&)> tell_;
  const Clock& clock_;
  Context context_;
  TokenBucket loads_{1, kLoadAgain};
  std::string trouble_;  ///< the last that was told of new files
  TokenBucket tells_{1, kTellAgain};
};

class TcpListener final : public TlsListener {
 public:
  TcpListener(TlsListenerOptions options, const Clock& clock)
      : options_(std::move(options)), credentials_(std::make_shared<Credentials>(options_, clock)) {}

  [[nodiscard]] std::uint16_t port() const override { return port_; }
  [[nodiscard]] std::string where() const override { return at(options_.host, port_).authority(); }
  [[nodiscard]] std::optional<Accepted> next() override {
    auto socket = accept([](int) { return true; });
    if (!socket) return {};
    prepare(socket->get());
    std::string address = peer_of(socket->get());
    auto plain = socket_transport(*std::move(socket), address);
    if (options_.is_plain) return Accepted{std::move(plain)};
    auto transport = std::make_unique<ServerTransport>(
        std::move(plain), address, [credentials = credentials_](const std::string& peer, const std::string& why) {
          credentials->refused(peer, why);
        });
    if (const auto opened = transport->open(credentials_->context()); !opened) {
      credentials_->refused(address, opened.error().message);
      return {};  // out of memory: the others wait for the next round
    }
    SSL_set_accept_state(transport->connection());
    Guard* const guard = transport.get();
    return Accepted{std::move(transport), guard};
  }

  [[nodiscard]] Result<void> open() {
    const TlsFiles& files = options_.files;
    if (!options_.is_plain && !(certificate_of(files).is_set() && key_of(files).is_set())) {
      return fail(ErrorCode::invalid_argument, "a TLS server needs a certificate and its key");
    }
    sockaddr_storage address{};
    const Endpoint endpoint = at(options_.host, options_.port);
    const auto size = socket_address(endpoint, address);
    if (!size) {
      return fail(ErrorCode::invalid_argument, "cannot listen on \"{}\": not an IPv4 or IPv6 address", options_.host);
    }
    if (!options_.is_plain) TRY_VOID(credentials_->load());
    const std::string where = endpoint.authority();
    FileDescriptor socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open()) return fail(system_error("make a socket for", where, errno));
    const bool v6 = address.ss_family == AF_INET6;
    // One that was stopped a moment ago leaves connections behind that still end.
    if (!set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1) ||
        (v6 && !set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1))) {
      return fail(system_error("make a socket for", where, errno));
    }
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), *size) != 0 ||
        ::listen(socket.get(), kBacklog) != 0) {
      const int why = errno;
      if (why == EADDRINUSE) {
        return fail(ErrorCode::already_exists, "cannot listen on {}: another program listens there", where);
      }
      if (why == EADDRNOTAVAIL) {
        return fail(ErrorCode::unavailable, "cannot listen on {}: not an address of this machine", where);
      }
      return fail(system_error("listen on", where, why));
    }
    socklen_t got = sizeof address;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &got) != 0)
      return fail(system_error("look at", where, errno));
    port_ = port_of(address);
    return GrpcListener::open(std::move(socket));
  }

 private:
  const TlsListenerOptions options_;
  const std::shared_ptr<Credentials> credentials_;
  std::uint16_t port_ = 0;
};

}  // namespace
}  // namespace croft::os::tls

namespace croft::os {

std::shared_ptr<const TransportSecurity> make_tls(TlsFiles files) {
  return std::make_shared<tls::Tls>(std::move(files));
}

Result<std::unique_ptr<TlsListener>> TlsListener::listen(TlsListenerOptions options, const Clock& clock) {
  auto listener = std::make_unique<tls::TcpListener>(std::move(options), clock);
  TRY_VOID(listener->open());
  return listener;
}

Result<std::vector<std::string>> certificate_names(const std::string& pem) {
  tls::start_openssl();
  const tls::Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const tls::Certificate certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  if (certificate) return tls::dns_names_of(certificate.get());
  return fail(ErrorCode::invalid_argument, "no certificate that can be read: " + tls::openssl_reason());
}

}  // namespace croft::os
