#include "http/transport.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>

#include "base/assert.h"
#include "base/printable.h"
#include "base/texts.h"
#include "http/url/url.h"

namespace croft::os {
namespace {

constexpr std::size_t kUnixPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;

Error wrong(std::string_view text, std::string_view why) {
  return make_error(ErrorCode::invalid_argument, "endpoint \"{}\" {}", without_user_info(text), why);
}

[[nodiscard]] Result<Endpoint> parse_unix(std::string_view text, std::string_view path) {
  if (!path.starts_with('/')) return fail(wrong(text, "needs an absolute path after \"unix:\""));
  if (path.size() > kUnixPathBytesMax) {
    return fail(wrong(text, fmt::format("has a path longer than {} bytes", kUnixPathBytesMax)));
  }
  if (path.find('\0') != path.npos) return fail(wrong(text, "has a path with a NUL byte"));
  return Endpoint{Endpoint::Kind::unix_socket, false, {}, 0, std::string(path)};
}

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view text) {
  for (const std::string_view scheme : {"unix://", "unix:"}) {
    if (text.starts_with(scheme)) return parse_unix(text, text.substr(scheme.size()));
  }
  if (!text.starts_with("http")) return fail(wrong(text, "must begin with http://, https:// or unix:"));
  TRY(const wire::Url url, wire::Url::parse(text));
  if (!url.is_numeric) {
    return fail(
        wrong(text, "must have a numeric address: 10.0.0.1, or [fd00::1] with brackets; names are not looked up"));
  }
  std::string_view rest = text;
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (!url.path.empty() || !rest.ends_with(fmt::format(":{}", url.port))) {
    return fail(wrong(text, "must end with a port, as in :2379, and no path"));
  }
  return Endpoint{Kind::tcp, url.secure, url.host, url.port, {}};
}

Result<Endpoint> Endpoint::parse_numeric(std::string_view text, bool secure) {
  auto endpoint = text.ends_with('/') ? Result<Endpoint>(fail(wrong(text, "must end with a port")))
                                      : parse(fmt::format("http{}://{}", secure ? "s" : "", text));
  if (endpoint) return endpoint;
  return fail(wrong(text, "is no ADDRESS:PORT with a numeric address, as in 10.0.0.2:7312 or [fd00::2]:7312"));
}

std::string Endpoint::text() const {
  if (kind == Kind::unix_socket) return "unix:" + path;
  return (secure ? "https://" : "http://") + authority();
}

std::string Endpoint::authority() const {
  if (kind == Kind::unix_socket) return "localhost";
  const bool bracketed = host.find(':') != host.npos;
  return bracketed ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

namespace {

/// The code of a connection that could not be made, or broke. Which of the many reasons it is helps a person, not a
/// program: all but a missing right may pass.
Error socket_error(std::string_view doing, std::string_view where, int error_number) {
  const bool forbidden = error_number == EACCES || error_number == EPERM;
  return make_error(forbidden ? ErrorCode::permission_denied : ErrorCode::unavailable, "cannot {} {}: {}", doing, where,
                    std::generic_category().message(error_number));
}

class SocketTransport final : public Transport {
 public:
  SocketTransport(FileDescriptor socket, std::string peer) : socket_(std::move(socket)), peer_(std::move(peer)) {}

  [[nodiscard]] Result<Moved> read(std::span<std::byte> into) override {
    return moved(::recv(socket_.get(), into.data(), into.size(), 0), true);
  }
  // MSG_NOSIGNAL: a peer that has gone is an error, not the end of the process.
  [[nodiscard]] Result<Moved> write(std::span<const std::byte> from) override {
    return moved(::send(socket_.get(), from.data(), from.size(), MSG_NOSIGNAL), false);
  }
  [[nodiscard]] int descriptor() const override { return socket_.get(); }

 private:
  [[nodiscard]] Result<Moved> moved(ssize_t bytes, bool reading) const {
    const int why = errno;
    if (bytes > 0) return Moved{static_cast<std::size_t>(bytes), false, false};
    if (bytes == 0) return Moved{0, !reading, reading};
    if (why == EAGAIN || why == EWOULDBLOCK || why == EINTR) return Moved{0, true, false};
    return fail(socket_error(reading ? "read from" : "write to", peer_, why));
  }

  FileDescriptor socket_;
  std::string peer_;
};

[[nodiscard]] Result<void> wait_until_connected(int socket, const std::string& where, const Clock& clock,
                                                Deadline deadline) {
  if (!wait_for_descriptor(socket, false, true, clock, deadline)) {
    return fail(ErrorCode::deadline_exceeded, "cannot connect to {}: no answer in time", where);
  }
  int why = 0;
  socklen_t size = sizeof why;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &why, &size) != 0) why = errno;
  if (why != 0) return fail(socket_error("connect to", where, why));
  return {};
}

[[nodiscard]] Result<std::unique_ptr<Transport>> connect_plain(const Endpoint& endpoint, const Clock& clock,
                                                               Deadline deadline) {
  sockaddr_storage address;
  TRY(const socklen_t size, socket_address(endpoint, address));
  const std::string where = endpoint.text();
  FileDescriptor socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return fail(socket_error("make a socket for", where, errno));
  if (endpoint.kind == Endpoint::Kind::tcp) {
    // Requests are small and each waits for its answer. Without it they only become slower: no error to report.
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    const int why = errno;
    if (why != EINPROGRESS && why != EINTR) return fail(socket_error("connect to", where, why));
    TRY_VOID(wait_until_connected(socket.get(), where, clock, deadline));
  }
  if (endpoint.kind == Endpoint::Kind::tcp && is_connected_to_itself(socket.get())) {
    return fail(socket_error("connect to", where, ECONNREFUSED));
  }
  return socket_transport(std::move(socket), where);
}

}  // namespace

Result<std::unique_ptr<Transport>> connect_transport(const Endpoint& endpoint, const TransportSecurity* security,
                                                     const Clock& clock, Deadline deadline) {
  if (endpoint.secure && security == nullptr) {
    return fail(ErrorCode::invalid_argument, "{} needs TLS files: at least a CA", endpoint.text());
  }
  TRY(auto plain, connect_plain(endpoint, clock, deadline));
  if (!endpoint.secure) return plain;
  return security->secure(std::move(plain), endpoint, clock, deadline);
}

std::unique_ptr<Transport> socket_transport(FileDescriptor socket, std::string peer) {
  return std::make_unique<SocketTransport>(std::move(socket), std::move(peer));
}

Result<unsigned> socket_address(const Endpoint& endpoint, sockaddr_storage& address) {
  std::memset(&address, 0, sizeof address);
  if (endpoint.kind == Endpoint::Kind::unix_socket) {
    auto& local = reinterpret_cast<sockaddr_un&>(address);
    local.sun_family = AF_UNIX;
    if (endpoint.path.empty() || endpoint.path.size() >= sizeof local.sun_path) {
      return fail(ErrorCode::invalid_argument, "{} is no path of a socket", endpoint.path);
    }
    std::copy(endpoint.path.begin(), endpoint.path.end(), local.sun_path);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + endpoint.path.size() + 1);
  }
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  if (::inet_pton(AF_INET, endpoint.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    return socklen_t{sizeof v4};
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (::inet_pton(AF_INET6, endpoint.host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    return socklen_t{sizeof v6};
  }
  return fail(ErrorCode::invalid_argument, "{} is no numeric address", endpoint.host);
}

bool is_connected_to_itself(int socket) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_size) != 0) return false;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) return false;
  return here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

bool wait_for_descriptor(int descriptor, bool readable, bool writable, const Clock& clock, Deadline deadline) {
  for (;;) {
    const auto now = clock.now().since_boot;
    const auto left = deadline.at_since_boot > now ? deadline.at_since_boot - now : std::chrono::nanoseconds{0};
    // Rounded up: a wait that ends a little too early would spin until the deadline.
    const auto milliseconds =
        std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), INT_MAX);
    pollfd wanted{descriptor, static_cast<short>((readable ? POLLIN : 0) | (writable ? POLLOUT : 0)), 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(milliseconds));
    if (ready > 0) return true;
    CROFT_ASSERT(ready == 0 || errno == EINTR || errno == ENOMEM);
    if (left <= std::chrono::nanoseconds{0}) return false;
  }
}

}  // namespace croft::os
