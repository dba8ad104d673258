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
#include <cstring>
#include <list>
#include <random>
#include <string>
#include <thread>

#include "base/assert.h"
#include "os/file_descriptor.h"

namespace croft::os {

/// A socket of 127.0.0.1 that listens on a port of its own. For tests.
struct Listener {
  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
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
/// the server begins. For tests.
inline std::uint16_t port_for_a_server() {
  static std::minstd_rand random(std::random_device{}());
  for (;;) {
    const std::uint16_t port = std::uniform_int_distribution<std::uint16_t>(10000, 29999)(random);
    const FileDescriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return port;
  }
}

/// Without it an answer in several parts waits for the other side's delayed acknowledgement.
inline void send_at_once(const FileDescriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Stands between a client and a server on 127.0.0.1, and can lose what passes. For tests.
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
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(server_port_);
    FileDescriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ++accepted_;
    send_at_once(client);
    send_at_once(server);
    if (::connect(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
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

}  // namespace croft::os
