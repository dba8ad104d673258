#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/assert.h"
#include "http/transport.h"
#include "os/clock.h"
#include "os/file_descriptor.h"

namespace croft::os {

//

[[nodiscard]] inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

/// A socket that is connected, or a closed one.
[[nodiscard]] inline FileDescriptor connected_to(const Endpoint& endpoint) {
  sockaddr_storage address{};
  const auto size = socket_address(endpoint, address).value();
  FileDescriptor socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return {};
  return socket;
}

/// A socket of 127.0.0.1 that listens on a port of its own.
struct Listener {
  Listener() {
    sockaddr_in address = loopback(0);
    socket = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CROFT_ASSERT(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    CROFT_ASSERT(::listen(socket.get(), 16) == 0);
    socklen_t size = sizeof address;
    CROFT_ASSERT(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
  }
  /// Listens on a Unix socket.
  explicit Listener(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    CROFT_ASSERT(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    socket = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CROFT_ASSERT(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    CROFT_ASSERT(::listen(socket.get(), 16) == 0);
  }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port); }

  FileDescriptor socket;
  std::uint16_t port = 0;
};

/// A port of 127.0.0.1 for a server of another program to listen at, now and when it is started again. Below those that
/// the kernel gives to whoever connects or asks for any: one of these may be a client's of another test by the time
/// the server begins.
inline std::uint16_t port_for_a_server() {
  static std::minstd_rand random(std::random_device{}());
  for (;;) {
    const std::uint16_t port = std::uniform_int_distribution<std::uint16_t>(10000, 29999)(random);
    const FileDescriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(port);
    if (::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return port;
  }
}

/// Without it an answer in several parts waits for the other side's delayed acknowledgement.
inline void send_at_once(const FileDescriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Takes one connection and does with it what a test says.
class OneConnection {
 public:
  explicit OneConnection(std::function<void(int)> act)
      : thread_([this, act = std::move(act)] {
          const FileDescriptor socket(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
          send_at_once(socket);
          act(socket.get());
        }) {}
  OneConnection(const OneConnection&) = delete;
  OneConnection& operator=(const OneConnection&) = delete;
  ~OneConnection() { thread_.join(); }
  [[nodiscard]] Endpoint endpoint() const { return Endpoint::parse(listener_.url()).value(); }

 private:
  Listener listener_;
  std::thread thread_;
};

/// Stands between a client and a server on 127.0.0.1, and can lose what passes.
class Relay {
 public:
  Relay(Listener listener, std::uint16_t server_port)
      : listener_(std::move(listener)), server_port_(server_port), thread_([this] { run(); }) {}
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    stop_ = true;
    thread_.join();
  }

  [[nodiscard]] std::string url() const { return listener_.url(); }
  /// From now on what the server says is lost; requests still reach it.
  void lose_answers(bool lose) { lose_answers_ = lose; }
  /// From now on what the client says is lost.
  void lose_requests(bool lose) { lose_requests_ = lose; }
  /// Ends all connections there are.
  void cut() {
    cut_ = true;
    while (cut_) std::this_thread::yield();
  }
  [[nodiscard]] int accepted() const { return accepted_; }

 private:
  struct Pair {
    FileDescriptor client;
    FileDescriptor server;
    bool over = false;
  };

  void accept_one() {
    FileDescriptor client(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    FileDescriptor server = connected_to({Endpoint::Kind::tcp, false, "127.0.0.1", server_port_, {}});
    ++accepted_;
    if (!server.is_open()) return;
    send_at_once(client);
    send_at_once(server);
    pairs_.push_back({std::move(client), std::move(server), false});
  }

  /// Moves what is there; false at the end.
  static bool move(int from, int to, bool lose) {
    std::array<char, 65536> buffer;
    const ssize_t size = ::recv(from, buffer.data(), buffer.size(), 0);
    if (size <= 0) return false;
    return lose || ::send(to, buffer.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) == size;
  }

  void run() {
    while (!stop_) {
      std::vector<pollfd> wanted = {{listener_.socket.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        wanted.push_back({pair.client.get(), POLLIN, 0});
        wanted.push_back({pair.server.get(), POLLIN, 0});
      }
      ::poll(wanted.data(), wanted.size(), 5);
      std::size_t i = 1;
      for (Pair& pair : pairs_) {
        if (wanted[i++].revents != 0) {
          pair.over = !move(pair.client.get(), pair.server.get(), lose_requests_);
        }
        if (wanted[i++].revents != 0 && !pair.over) {
          pair.over = !move(pair.server.get(), pair.client.get(), lose_answers_);
        }
      }
      pairs_.remove_if([](const Pair& pair) { return pair.over; });
      if (cut_) pairs_.clear();
      cut_ = false;
      if (wanted[0].revents != 0) accept_one();
    }
  }

  Listener listener_;
  std::uint16_t server_port_;
  std::list<Pair> pairs_;
  std::atomic<bool> lose_answers_{false};
  std::atomic<bool> lose_requests_{false};
  std::atomic<bool> cut_{false};
  std::atomic<bool> stop_{false};
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

class SocketTest : public testing::Test {
 protected:
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }
  /// Whether it becomes so within some seconds.
  [[nodiscard]] bool soon(const std::function<bool()>& is_so) const {
    const Deadline deadline = in(std::chrono::seconds{20});
    while (!is_so() && !deadline.passed(clock_.now())) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    return is_so();
  }
  /// Everything until the other side closes, within a few seconds; "still open" behind it when it does not.
  [[nodiscard]] std::string all_of(const FileDescriptor& socket,
                                   std::chrono::nanoseconds span = std::chrono::seconds{20}) const {
    std::string heard;
    for (const Deadline deadline = in(span);;) {
      if (!wait_for_descriptor(socket.get(), true, false, clock_, deadline)) return heard + "still open";
      std::array<char, 4096> buffer;
      const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) return heard;
      heard.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }
  [[nodiscard]] bool is_closed(const FileDescriptor& socket) const { return !all_of(socket).ends_with("still open"); }

  SystemClock clock_;
};

}  // namespace croft::os
