#pragma once

#include <sys/socket.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "http/http1_client.h"
#include "http/relay_fixture.h"
#include "os/file_descriptor.h"

namespace croft::os {

/// A server of HTTP/1.1 for tests, on 127.0.0.1: one connection after the other, one request each.
class Http1ServerFixture {
 public:
  /// Nothing: the connection is closed without an answer.
  using Handler = std::function<std::optional<HttpResponse>(const HttpRequest& request)>;

  /// With `raw` that is what is sent, whatever the handler answers.
  explicit Http1ServerFixture(Handler handler, std::string raw = {})
      : handler_(std::move(handler)), raw_(std::move(raw)), thread_([this] { run(); }) {}
  ~Http1ServerFixture() {
    ::shutdown(listener_.socket.get(), SHUT_RDWR);
    thread_.join();
  }
  Http1ServerFixture(const Http1ServerFixture&) = delete;
  Http1ServerFixture& operator=(const Http1ServerFixture&) = delete;

  [[nodiscard]] std::string where() const { return "127.0.0.1:" + std::to_string(listener_.port); }

 private:
  void run() {
    for (;;) {
      const FileDescriptor peer(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.is_open()) return;
      const auto response = handler_(request_of(peer));
      if (!response) continue;
      std::string text = "HTTP/1.1 " + std::to_string(response->status) + " said\r\n";
      for (const auto& [name, value] : response->headers) text.append(name).append(": ").append(value).append("\r\n");
      text += "Content-Length: " + std::to_string(response->body.size()) + "\r\n\r\n" + response->body;
      if (!raw_.empty()) text = raw_;
      for (std::size_t sent = 0; sent < text.size();) {
        const ssize_t size = ::send(peer.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (size <= 0) break;
        sent += static_cast<std::size_t>(size);
      }
    }
  }
  static HttpRequest request_of(const FileDescriptor& peer) {
    constexpr std::string_view kLength = "Content-Length: ";
    std::string all;
    for (;;) {
      const std::size_t head = all.find("\r\n\r\n");
      const std::size_t length = all.find(kLength);
      const std::size_t bytes = length < head ? std::stoul(all.substr(length + kLength.size())) : 0;
      char some[4096];
      const bool is_whole = head != all.npos && all.size() >= head + 4 + bytes;
      const ssize_t size = is_whole ? 0 : ::recv(peer.get(), some, sizeof some, 0);
      if (size > 0) {
        all.append(some, static_cast<std::size_t>(size));
        continue;
      }
      const std::size_t method = all.find(' '), target = all.find(' ', method + 1);
      if (head == all.npos || target > head) return {};
      return {all.substr(0, method), all.substr(method + 1, target - method - 1), {}, all.substr(head + 4)};
    }
  }

  const Handler handler_;
  const std::string raw_;
  const Listener listener_;
  std::thread thread_;
};

}  // namespace croft::os
