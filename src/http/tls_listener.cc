#include "http/tls_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/token_bucket.h"
#include "http/tls_parts.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

using Nanos = std::chrono::nanoseconds;

constexpr int kBacklog = 512;
constexpr Nanos kLoadAgain = std::chrono::seconds{1};
constexpr Nanos kTellAgain = std::chrono::seconds{1};
/// More than a client with a chain of certificates needs before it has proven itself; then it is left.
constexpr std::size_t kHandshakeBytesMax = std::size_t{128} << 10;

Endpoint at(std::string host, std::uint16_t port) {
  Endpoint endpoint;
  endpoint.host = std::move(host);
  endpoint.port = port;
  return endpoint;
}

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

// ---------------------------------------------------------------- who a peer is

std::string name_in(const X509* certificate) {
  std::vector<std::string> names = tls::dns_names_of(certificate);
  return names.empty() ? tls::common_name_of(certificate) : std::move(names.front());
}

// ---------------------------------------------------------------- the transport

using Refused = std::function<void(const std::string& peer, const std::string& why)>;

class ServerTransport final : public GuardedTransport {
 public:
  ServerTransport(std::unique_ptr<tls::TlsTransport> transport, std::string address, Refused refused)
      : transport_(std::move(transport)), address_(std::move(address)), refused_(std::move(refused)) {}
  ~ServerTransport() override {
    if (!peer_) return;
    // Says goodbye, if that is possible at once.
    transport_->before_a_call();
    static_cast<void>(SSL_shutdown(transport_->connection()));
    ERR_clear_error();
  }
  ServerTransport(const ServerTransport&) = delete;
  ServerTransport& operator=(const ServerTransport&) = delete;

  [[nodiscard]] Proof prove() override {
    SSL* connection = transport_->connection();
    transport_->before_a_call();
    const int result = SSL_accept(connection);
    waits_for_room_ = false;
    if (result != 1) {
      const int why = SSL_get_error(connection, result);
      waits_for_room_ = why == SSL_ERROR_WANT_WRITE;
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return refuse(reason());
      if (BIO_number_read(SSL_get_rbio(connection)) > kHandshakeBytesMax) return refuse("its handshake has no end");
      return Proof::awaited;
    }
    const X509* certificate = SSL_get0_peer_certificate(connection);
    if (certificate == nullptr || SSL_get_verify_result(connection) != X509_V_OK) return refuse("no certificate");
    if (tls::protocol_of(connection) != tls::kProtocol) return refuse("it does not ask for HTTP/2 (ALPN h2)");
    std::string name = name_in(certificate);
    if (name.empty()) return refuse("its certificate has no name that can be used (DNS name or common name)");
    peer_ = std::make_shared<const GrpcPeer>(GrpcPeer{std::move(name), address_});
    return Proof::given;
  }
  [[nodiscard]] std::shared_ptr<const GrpcPeer> peer() const override { return peer_; }

  [[nodiscard]] Result<Moved> read(std::span<std::byte> into) override { return transport_->read(into); }
  [[nodiscard]] Result<Moved> write(std::span<const std::byte> from) override { return transport_->write(from); }
  [[nodiscard]] int descriptor() const override { return transport_->descriptor(); }
  [[nodiscard]] bool write_waits_for_read() const override { return transport_->write_waits_for_read(); }
  [[nodiscard]] bool read_waits_for_write() const override {
    return peer_ ? transport_->read_waits_for_write() : waits_for_room_;
  }

 private:
  [[nodiscard]] std::string reason() const {
    const long verdict = SSL_get_verify_result(transport_->connection());
    if (verdict != X509_V_OK) return std::string("its certificate: ") + X509_verify_cert_error_string(verdict);
    return ERR_peek_last_error() == 0 ? "it broke off the handshake" : tls::openssl_reason();
  }
  [[nodiscard]] Proof refuse(const std::string& why) const {
    ERR_clear_error();
    refused_(address_, why);
    return Proof::withheld;
  }

  std::unique_ptr<tls::TlsTransport> transport_;
  const std::string address_;
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
    if (std::equal(offered + at + 1, offered + at + 1 + size, tls::kProtocol.begin(), tls::kProtocol.end())) {
      *chosen = offered + at + 1;
      *chosen_size = static_cast<unsigned char>(size);
      return SSL_TLSEXT_ERR_OK;
    }
    at += size + 1;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

[[nodiscard]] Result<tls::Context> server_context(const TlsFiles& files) {
  TRY(tls::Context context, tls::make_context(files, TLS_server_method()));
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

}  // namespace

/// The context of new connections, and who was refused last. Connections keep it: they may outlive their listener.
class TlsListener::Credentials {
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
  tls::Context context_;
  TokenBucket loads_{1, kLoadAgain};
  std::string trouble_;  ///< the last that was told of new files
  TokenBucket tells_{1, kTellAgain};
};

TlsListener::TlsListener(TlsListenerOptions options, const Clock& clock)
    : options_(std::move(options)), credentials_(std::make_shared<Credentials>(options_, clock)) {}

TlsListener::~TlsListener() = default;

Result<std::unique_ptr<TlsListener>> TlsListener::listen(TlsListenerOptions options, const Clock& clock) {
  std::unique_ptr<TlsListener> listener(new TlsListener(std::move(options), clock));
  TRY_VOID(listener->open());
  return listener;
}

Result<void> TlsListener::open() {
  const TlsFiles& files = options_.files;
  const bool has_no_pair = (files.certificate_file.empty() && files.certificate_pem.empty()) ||
                           (files.key_file.empty() && files.key_pem.empty());
  if (!options_.is_plain && has_no_pair) {
    return fail(ErrorCode::invalid_argument, "a TLS server needs a certificate and its key");
  }
  sockaddr_storage address{};
  const Endpoint endpoint = at(options_.host, options_.port);
  const auto size = socket_address(endpoint, address);
  if (!size) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("cannot listen on \"{}\": not an IPv4 or IPv6 address", options_.host));
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
      return fail(ErrorCode::already_exists, fmt::format("cannot listen on {}: another program listens there", where));
    }
    if (why == EADDRNOTAVAIL) {
      return fail(ErrorCode::unavailable, fmt::format("cannot listen on {}: not an address of this machine", where));
    }
    return fail(system_error("listen on", where, why));
  }
  socklen_t got = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &got) != 0)
    return fail(system_error("look at", where, errno));
  port_ = port_of(address);
  return gate_.open(std::move(socket));
}

Result<std::vector<std::string>> certificate_names(const std::string& pem) {
  tls::start_openssl();
  const tls::Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const tls::Certificate certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  if (certificate) return tls::dns_names_of(certificate.get());
  return fail(ErrorCode::invalid_argument, "no certificate that can be read: " + tls::openssl_reason());
}

std::string TlsListener::where() const { return at(options_.host, port_).authority(); }

std::optional<Accepted> TlsListener::next() {
  auto socket = gate_.accept([](int) { return true; });
  if (!socket) return {};
  prepare(socket->get());
  std::string address = peer_of(socket->get());
  auto plain = socket_transport(*std::move(socket), address);
  if (options_.is_plain) return Accepted{std::move(plain)};
  auto pipe = std::make_unique<tls::Pipe>(tls::Pipe{plain.get(), 0});
  auto connection = tls::make_connection(credentials_->context(), *pipe);
  if (!connection) {
    credentials_->refused(address, connection.error().message);
    return {};  // out of memory: the others wait for the next round
  }
  SSL_set_accept_state(connection->get());
  auto transport =
      std::make_unique<tls::TlsTransport>(std::move(plain), std::move(pipe), *std::move(connection), address);
  auto guarded =
      std::make_unique<ServerTransport>(std::move(transport), std::move(address),
                                        [credentials = credentials_](const std::string& peer, const std::string& why) {
                                          credentials->refused(peer, why);
                                        });
  GuardedTransport* const guard = guarded.get();
  return Accepted{std::move(guarded), guard};
}

}  // namespace croft::os
