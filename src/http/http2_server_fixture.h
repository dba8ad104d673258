#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "http/relay_fixture.h"

namespace croft::os {

/// A server of HTTP/2 on 127.0.0.1, made of nghttp2, which answers as a test says. For tests only.
class Http2TestServer {
 public:
  struct Request {
    std::map<std::string, std::string> headers;  ///< with the pseudo-headers
    std::string body;
    int connection = 0;  ///< the how many-eth that was taken, from 1 on
    [[nodiscard]] std::string header(const std::string& name) const {
      const auto found = headers.find(name);
      return found == headers.end() ? "" : found->second;
    }
    [[nodiscard]] std::string path() const { return header(":path"); }
  };
  struct Response {
    int status = 200;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    bool stays_open = false;  ///< more of the body comes with say()
    enum class Instead {
      nothing,
      silence,         ///< no answer at all
      cut,             ///< the connection ends without one
      refused_stream,  ///< RST_STREAM
      goaway_below,    ///< GOAWAY whose last stream is below this one
    } instead = Instead::nothing;
    bool says_goodbye = false;  ///< GOAWAY behind the answer
  };
  using Handler = std::function<Response(const Request&)>;

  explicit Http2TestServer(Handler handler)
      : handler_(std::move(handler)), port_(listener_.port), acceptor_([this] { accept_all(); }) {}
  Http2TestServer(const Http2TestServer&) = delete;
  Http2TestServer& operator=(const Http2TestServer&) = delete;
  ~Http2TestServer() { stop(); }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Ends all connections and takes no more.
  void stop() {
    stop_ = true;
    if (acceptor_.joinable()) acceptor_.join();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    listener_.socket = FileDescriptor();
  }
  /// Adds to the body of the answers that stay open; with `end` nothing follows.
  void say(const std::string& bytes, bool end = false) {
    const std::lock_guard lock(mutex_);
    said_ += bytes;
    said_all_ = end;
  }
  [[nodiscard]] std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  struct Stream {
    Request request;
    std::string body;
    std::size_t taken = 0;
    bool stays_open = false;
    std::size_t said_taken = 0;
  };
  struct Connection {
    Http2TestServer* server = nullptr;
    nghttp2_session* session = nullptr;
    int number = 0;
    bool cut = false;
    std::map<std::int32_t, Stream> streams;
  };

  static nghttp2_nv pair(const std::string& name, const std::string& value) {
    return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
            reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(), 0};
  }
  static std::string text_of(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* data) {
    auto& stream = static_cast<Connection*>(data)->streams[frame->hd.stream_id];
    stream.request.headers[text_of(name, name_size)] = text_of(value, value_size);
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                     void* data) {
    static_cast<Connection*>(data)->streams[id].request.body += text_of(bytes, size);
    return 0;
  }
  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* data) {
    static_cast<Connection*>(data)->streams.erase(id);
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    const bool may_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      auto& connection = *static_cast<Connection*>(data);
      connection.server->answer(connection, frame->hd.stream_id);
    }
    return 0;
  }
  static ssize_t read_body(nghttp2_session*, std::int32_t id, std::uint8_t* into, std::size_t size,
                           std::uint32_t* flags, nghttp2_data_source*, void* data) {
    auto& connection = *static_cast<Connection*>(data);
    Stream& stream = connection.streams[id];
    const std::lock_guard lock(connection.server->mutex_);
    const std::string& said = connection.server->said_;
    if (stream.stays_open && stream.said_taken < said.size()) {
      stream.body.append(said, stream.said_taken);
      stream.said_taken = said.size();
    }
    const std::size_t bytes = std::min(size, stream.body.size() - stream.taken);
    std::copy_n(stream.body.data() + stream.taken, bytes, into);
    stream.taken += bytes;
    if (stream.taken == stream.body.size()) {
      if (!stream.stays_open || connection.server->said_all_) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
      } else if (bytes == 0) {
        return NGHTTP2_ERR_DEFERRED;
      }
    }
    return static_cast<ssize_t>(bytes);
  }

  void answer(Connection& connection, std::int32_t id) {
    using Instead = Response::Instead;
    Stream& stream = connection.streams[id];
    stream.request.connection = connection.number;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(stream.request);
    }
    Response response = handler_(stream.request);
    switch (response.instead) {
      case Instead::silence:
        return;
      case Instead::cut:
        connection.cut = true;
        return;
      case Instead::refused_stream:
        nghttp2_submit_rst_stream(connection.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
        return;
      case Instead::goaway_below:
        nghttp2_submit_goaway(connection.session, NGHTTP2_FLAG_NONE, id - 2 < 0 ? 0 : id - 2, NGHTTP2_NO_ERROR, nullptr,
                              0);
        return;
      case Instead::nothing:
        break;
    }
    stream.body = std::move(response.body);
    stream.stays_open = response.stays_open;
    const std::string status = std::to_string(response.status);
    std::vector<nghttp2_nv> pairs = {pair(":status", status)};
    for (const auto& [name, value] : response.headers) pairs.push_back(pair(name, value));
    nghttp2_data_provider provider{};
    provider.read_callback = read_body;
    nghttp2_submit_response(connection.session, id, pairs.data(), pairs.size(), &provider);
    if (response.says_goodbye) {
      nghttp2_submit_goaway(connection.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR, nullptr, 0);
    }
  }

  void serve(const FileDescriptor& socket, int number) {
    Connection connection;
    connection.server = this;
    connection.number = number;
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_server_new(&connection.session, callbacks, &connection);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(connection.session, NGHTTP2_FLAG_NONE, nullptr, 0);
    while (!stop_ && !connection.cut && step(socket, connection)) {
    }
    nghttp2_session_del(connection.session);
  }

  bool step(const FileDescriptor& socket, Connection& connection) const {
    for (auto& [id, stream] : connection.streams) {
      if (stream.stays_open) nghttp2_session_resume_data(connection.session, id);
    }
    const std::uint8_t* out = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(connection.session, &out)) > 0;) {
      if (::send(socket.get(), out, static_cast<std::size_t>(size), MSG_NOSIGNAL) != size) return false;
    }
    pollfd wanted{socket.get(), POLLIN, 0};
    constexpr int kMilliseconds = 2;
    if (::poll(&wanted, 1, kMilliseconds) <= 0) return true;
    std::array<std::uint8_t, 65536> buffer;
    const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    return size > 0 && nghttp2_session_mem_recv(connection.session, buffer.data(), static_cast<std::size_t>(size)) >= 0;
  }

  void accept_all() {
    while (!stop_) {
      pollfd wanted{listener_.socket.get(), POLLIN, 0};
      constexpr int kMilliseconds = 2;
      if (::poll(&wanted, 1, kMilliseconds) <= 0) continue;
      FileDescriptor socket(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      send_at_once(socket);
      const int number = ++connections_;
      threads_.emplace_back([this, number, socket = std::move(socket)] { serve(socket, number); });
    }
  }

  Handler handler_;
  Listener listener_;
  std::uint16_t port_;
  std::atomic<bool> stop_{false};
  std::atomic<int> connections_{0};
  mutable std::mutex mutex_;
  std::vector<Request> requests_;     ///< guarded by mutex_
  std::string said_;                  ///< guarded by mutex_
  bool said_all_ = false;             ///< guarded by mutex_
  std::vector<std::thread> threads_;  ///< of the acceptor, then of stop()
  std::thread acceptor_;
};

}  // namespace croft::os
