#include "http/tls_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "http/tls_parts.h"
#include "os/files.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

using Nanos = std::chrono::nanoseconds;

constexpr int kBacklog = 512;
constexpr Nanos kLookAgain = std::chrono::seconds{1};
constexpr Nanos kTellAgain = std::chrono::seconds{1};
/// More than a client with a chain of certificates needs before it has proven itself; then it is left.
constexpr std::size_t kHandshakeBytesMax = std::size_t{128} << 10;

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

/// The length of the address; nothing when it is none.
std::optional<socklen_t> fill(SocketAddress& address, const std::string& host, std::uint16_t port) {
  std::memset(&address, 0, sizeof address);
  if (::inet_pton(AF_INET, host.c_str(), &address.v4.sin_addr) == 1) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(port);
    return sizeof address.v4;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &address.v6.sin6_addr) == 1) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(port);
    return sizeof address.v6;
  }
  return {};
}

std::uint16_t port_of(const SocketAddress& address) {
  return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}

std::string text_of(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.any.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &address.v4.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), port_of(address));
  }
  ::inet_ntop(AF_INET6, &address.v6.sin6_addr, text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), port_of(address));
}

std::string peer_of(int socket) {
  SocketAddress address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, &address.any, &size) != 0) return "a peer that is gone";
  return text_of(address);
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

class Socket final : public Transport {
 public:
  explicit Socket(FileDescriptor socket) : socket_(std::move(socket)) {}

  [[nodiscard]] Result<Moved> read(std::span<std::byte> into) override {
    return moved(::recv(socket_.get(), into.data(), into.size(), 0), true);
  }
  [[nodiscard]] Result<Moved> write(std::span<const std::byte> from) override {
    return moved(::send(socket_.get(), from.data(), from.size(), MSG_NOSIGNAL), false);
  }
  [[nodiscard]] int descriptor() const override { return socket_.get(); }

 private:
  /// Whatever breaks the connection of a peer, the server only closes it.
  [[nodiscard]] static Result<Moved> moved(ssize_t bytes, bool reading) {
    if (bytes > 0) return Moved{static_cast<std::size_t>(bytes), false, false};
    if (bytes == 0) return Moved{0, !reading, reading};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Moved{0, true, false};
    return fail(ErrorCode::unavailable, "the connection broke");
  }

  FileDescriptor socket_;
};

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
    if (!tls::speaks_http2(connection)) return refuse("it does not ask for HTTP/2 (ALPN h2)");
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

struct Stamp {
  FileId id;
  std::uint64_t bytes = 0;
  WallTime modified;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

/// The stamp that tells whether a file is another one now; nothing when it is not there.
std::optional<Stamp> stamp_of(const std::string& path) {
  const auto status = file_status(path);
  const auto modified = modification_time(path);
  if (!status || !*status || !modified) return {};
  return Stamp{(*status)->id, (*status)->bytes, *modified};
}

using Stamps = std::vector<std::optional<Stamp>>;

Stamps stamps_of(const TlsFiles& files) {
  Stamps stamps;
  for (const std::string* path : {&files.ca_file, &files.certificate_file, &files.key_file}) {
    stamps.push_back(path->empty() ? std::nullopt : stamp_of(*path));
  }
  return stamps;
}

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
    stamps_ = stamps_of(files_);
    looked_ = clock_.now().since_boot;
    TRY(context_, server_context(files_));
    return {};
  }

  [[nodiscard]] SSL_CTX* context() {
    const Nanos now = clock_.now().since_boot;
    if (now - looked_ < kLookAgain) return context_.get();
    looked_ = now;
    // The look is before the reading: what changes in between is seen as a change the next time.
    Stamps stamps = stamps_of(files_);
    if (stamps == stamps_) return context_.get();
    stamps_ = std::move(stamps);
    auto fresh = server_context(files_);
    if (fresh) {
      context_ = *std::move(fresh);
      tell_(fmt::format("TLS: read {} again", files_.certificate_file));
    } else {
      tell_(fmt::format("TLS: the certificates of before go on, as the new ones can not be used: {}",
                        fresh.error().message));
    }
    return context_.get();
  }

  void refused(const std::string& peer, const std::string& why) {
    const Nanos now = clock_.now().since_boot;
    if (told_ && now - *told_ < kTellAgain) return;
    told_ = now;
    tell_(fmt::format("TLS: refused {}: {}", peer, why));
  }

 private:
  const TlsFiles files_;
  const std::function<void(const std::string&)> tell_;
  const Clock& clock_;
  tls::Context context_;
  Stamps stamps_;
  Nanos looked_{};
  std::optional<Nanos> told_;
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
  SocketAddress address{};
  const auto size = fill(address, options_.host, options_.port);
  if (!size) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("cannot listen on \"{}\": not an IPv4 or IPv6 address", options_.host));
  }
  if (!options_.is_plain) TRY_VOID(credentials_->load());
  const std::string where = text_of(address);
  FileDescriptor socket(::socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return fail(system_error("make a socket for", where, errno));
  const bool v6 = address.any.sa_family == AF_INET6;
  // One that was stopped a moment ago leaves connections behind that still end.
  if (!set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1) ||
      (v6 && !set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1))) {
    return fail(system_error("make a socket for", where, errno));
  }
  if (::bind(socket.get(), &address.any, *size) != 0 || ::listen(socket.get(), kBacklog) != 0) {
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
  if (::getsockname(socket.get(), &address.any, &got) != 0) return fail(system_error("look at", where, errno));
  port_ = port_of(address);
  return gate_.open(std::move(socket));
}

std::function<void()> TlsListener::closer() const {
  return [] {};
}

Result<std::vector<std::string>> certificate_names(const std::string& pem) {
  tls::start_openssl();
  const tls::Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const tls::Certificate certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  if (certificate) return tls::dns_names_of(certificate.get());
  return fail(ErrorCode::invalid_argument, "no certificate that can be read: " + tls::openssl_reason());
}

std::string TlsListener::where() const {
  SocketAddress address{};
  static_cast<void>(fill(address, options_.host, port_));
  return text_of(address);
}

std::optional<Accepted> TlsListener::next() {
  auto socket = gate_.accept([](int) { return true; });
  if (!socket) return {};
  prepare(socket->get());
  if (options_.is_plain) return Accepted{*std::move(socket), nullptr};
  std::string address = peer_of(socket->get());
  auto plain = std::make_unique<Socket>(*std::move(socket));
  auto pipe = std::make_unique<tls::Pipe>(tls::Pipe{plain.get(), 0});
  auto connection = tls::make_connection(credentials_->context(), *pipe);
  if (!connection) {
    credentials_->refused(address, connection.error().message);
    return {};  // out of memory: the others wait for the next round
  }
  SSL_set_accept_state(connection->get());
  auto transport =
      std::make_unique<tls::TlsTransport>(std::move(plain), std::move(pipe), *std::move(connection), address);
  return Accepted{FileDescriptor(), std::make_unique<ServerTransport>(
                                        std::move(transport), std::move(address),
                                        [credentials = credentials_](const std::string& peer, const std::string& why) {
                                          credentials->refused(peer, why);
                                        })};
}

}  // namespace croft::os
