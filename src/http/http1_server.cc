#include "http/http1_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "base/assert.h"
#include "http/http1_parser.h"
#include "os/file_descriptor.h"

namespace croft::os {
namespace {

constexpr int kBacklog = 256;

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

[[nodiscard]] Result<socklen_t> parse_where(std::string_view where, Address& address) {
  std::memset(&address, 0, sizeof address);
  const std::size_t colon = where.rfind(':');
  std::uint16_t port = 0;
  const char* const end = where.data() + where.size();
  if (colon != where.npos) {
    const auto [stop, error] = std::from_chars(where.data() + colon + 1, end, port);
    if (error == std::errc() && stop == end) {
      std::string host(where.substr(0, colon));
      const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
      if (bracketed) host = host.substr(1, host.size() - 2);
      if (!bracketed && ::inet_pton(AF_INET, host.c_str(), &address.v4.sin_addr) == 1) {
        address.v4.sin_family = AF_INET;
        address.v4.sin_port = htons(port);
        return socklen_t{sizeof address.v4};
      }
      if (bracketed && ::inet_pton(AF_INET6, host.c_str(), &address.v6.sin6_addr) == 1) {
        address.v6.sin6_family = AF_INET6;
        address.v6.sin6_port = htons(port);
        return socklen_t{sizeof address.v6};
      }
    }
  }
  return fail(invalid_argument(
      fmt::format("cannot listen on \"{}\": it needs a numeric address and a port, 127.0.0.1:8080 or [::1]:0", where)));
}

std::string text_of(const HttpResponse& response, bool with_body) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, response.status < 400 ? "OK" : "Error");
  for (const auto& [name, value] : response.headers) text += fmt::format("{}: {}\r\n", name, value);
  text += fmt::format("Connection: close\r\nContent-Length: {}\r\n\r\n", response.body.size());
  if (with_body) text += response.body;
  return text;
}

class Server final : public Http1Server {
 public:
  Server(FileDescriptor listener, FileDescriptor stop, std::string where, Handler handler, const Clock& clock,
         const Http1ServerOptions& options)
      : listener_(std::move(listener)),
        stop_(std::move(stop)),
        where_(std::move(where)),
        handler_(std::move(handler)),
        clock_(clock),
        options_(options),
        acceptor_([this] { accept_all(); }) {}

  ~Server() override {
    const std::uint64_t one = 1;
    CROFT_ASSERT(::write(stop_.get(), &one, sizeof one) == sizeof one);  // stays readable: nobody reads it
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    acceptor_.join();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return connections_ == 0; });
  }

  [[nodiscard]] std::string where() const override { return where_; }

 private:
  enum class Ready : std::uint8_t { yes, timed_out, stopping };

  Ready poll_for(int descriptor, short events, Deadline deadline) const {
    for (;;) {
      const auto left = deadline.at_since_boot - clock_.now().since_boot;
      const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
      std::array<pollfd, 2> wanted{pollfd{stop_.get(), POLLIN, 0}, pollfd{descriptor, events, 0}};
      const int count =
          ::poll(wanted.data(), wanted.size(), static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, 60'000)));
      if (wanted[0].revents != 0 && count > 0) return Ready::stopping;
      if (count > 0) return Ready::yes;
      if (left <= std::chrono::nanoseconds{0}) return Ready::timed_out;
    }
  }

  class Talk final : public Exchange {
   public:
    Talk(const Server& server, int socket) : server_(server), socket_(socket) {}
    Waited wait(std::chrono::nanoseconds span, bool until_client_goes) override {
      constexpr std::chrono::hours kLongest{24 * 365};
      const auto deadline = Deadline::after(server_.clock_.now(), std::min<std::chrono::nanoseconds>(span, kLongest));
      // A descriptor that is negative is not looked at.
      switch (server_.poll_for(until_client_goes ? socket_ : -1, POLLRDHUP, deadline)) {
        case Ready::yes:
          return Waited::client_gone;
        case Ready::timed_out:
          return Waited::elapsed;
        case Ready::stopping:
          return Waited::stopping;
      }
      return Waited::stopping;
    }

   private:
    const Server& server_;
    int socket_;
  };

  void accept_all() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || connections_ < options_.connections_max; });
        if (stopping_) return;
      }
      const Deadline soon = Deadline::after(clock_.now(), std::chrono::hours(1));
      const Ready ready = poll_for(listener_.get(), POLLIN, soon);
      if (ready == Ready::stopping) return;
      if (ready == Ready::timed_out) continue;
      FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.is_open()) {
        // Out of descriptors: without a pause this would spin.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      {
        const std::lock_guard lock(mutex_);
        ++connections_;
      }
      try {
        std::thread([this, owned = std::move(socket)]() mutable {
          serve(std::move(owned));
          // Notified with the lock: behind it this object may be gone.
          const std::lock_guard lock(mutex_);
          --connections_;
          changed_.notify_all();
        }).detach();
      } catch (const std::system_error&) {
        const std::lock_guard lock(mutex_);
        --connections_;
      }
    }
  }

  void serve(FileDescriptor socket) const {
    const Deadline until = Deadline::after(clock_.now(), options_.patience);
    HttpRequest request;
    const auto parser = make_request_parser(request, {options_.header_bytes_max, options_.body_bytes_max});
    std::array<char, 16384> buffer;
    for (;;) {
      if (until.passed(clock_.now()) || poll_for(socket.get(), POLLIN, until) != Ready::yes) return;
      const ssize_t bytes = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (bytes <= 0) return;
      const auto done = parser->feed({buffer.data(), static_cast<std::size_t>(bytes)});
      if (!done) return answer(socket, {400, {}, done.error().message + "\n"}, true);
      if (*done) break;
    }
    Talk talk(*this, socket.get());
    if (const auto response = handler_(request, talk)) answer(socket, *response, request.method != "HEAD");
  }

  void answer(const FileDescriptor& socket, const HttpResponse& response, bool with_body) const {
    const Deadline until = Deadline::after(clock_.now(), options_.patience);
    const std::string text = text_of(response, with_body);
    std::string_view left = text;
    while (!left.empty()) {
      const ssize_t bytes = ::send(socket.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (bytes > 0) {
        left.remove_prefix(static_cast<std::size_t>(bytes));
      } else if (bytes < 0 && errno != EAGAIN && errno != EINTR) {
        return;
      } else if (poll_for(socket.get(), POLLOUT, until) != Ready::yes) {
        return;
      }
    }
    // Bytes that nobody has read would make the close a reset, which may overtake the answer.
    ::shutdown(socket.get(), SHUT_WR);
    const Deadline rest = Deadline::after(clock_.now(), std::chrono::seconds(1));
    std::array<char, 4096> dropped;
    for (int i = 0; i < 64 && poll_for(socket.get(), POLLIN, rest) == Ready::yes; ++i) {
      const ssize_t bytes = ::recv(socket.get(), dropped.data(), dropped.size(), 0);
      if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR)) return;
    }
  }

  const FileDescriptor listener_;
  const FileDescriptor stop_;
  const std::string where_;
  const Handler handler_;
  const Clock& clock_;
  const Http1ServerOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;        ///< guarded by mutex_
  std::size_t connections_ = 0;  ///< guarded by mutex_
  std::thread acceptor_;         ///< last: it uses all of the above
};

}  // namespace

Result<std::unique_ptr<Http1Server>> Http1Server::listen(std::string_view where, Handler handler, const Clock& clock,
                                                         const Http1ServerOptions& options) {
  Address address;
  TRY(socklen_t size, parse_where(where, address));
  const auto failed = [&](int why) {
    return fail(ErrorCode::unavailable,
                fmt::format("cannot listen on {}: {}", where, std::generic_category().message(why)));
  };
  FileDescriptor socket(::socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return failed(errno);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), &address.any, size) != 0 || ::listen(socket.get(), kBacklog) != 0) return failed(errno);
  if (::getsockname(socket.get(), &address.any, &size) != 0) return failed(errno);
  FileDescriptor stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.is_open()) return failed(errno);
  const std::uint16_t port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
  std::string found(where.substr(0, where.rfind(':') + 1));
  found += std::to_string(port);
  return std::make_unique<Server>(std::move(socket), std::move(stop), std::move(found), std::move(handler), clock,
                                  options);
}

}  // namespace croft::os
