#include "http/http2_connection.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include "base/clock.h"
#include "http/grpc_channel.h"
#include "http/http2_frames_fixture.h"
#include "http/relay_fixture.h"

namespace croft::os {
namespace {

using namespace std::chrono_literals;

void send_all(int socket, std::string_view bytes) {
  ASSERT_EQ(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

/// Reads until the client has closed, and throws it away.
void drain(int socket) {
  std::array<char, 4096> buffer;
  while (::recv(socket, buffer.data(), buffer.size(), 0) > 0) {
  }
}

constexpr std::string_view kEmptySettings("\0\0\0\4\0\0\0\0\0", 9);

/// A server made of nghttp2, which does with each whole request what a test says.
class Server {
 public:
  using Act = std::function<void(Server&, std::int32_t stream, const std::string& body)>;

  static void serve(int socket, const Act& act) {
    Server server;
    server.act_ = act;
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_server_new(&server.session_, callbacks, &server);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(server.session_, NGHTTP2_FLAG_NONE, nullptr, 0);
    std::array<std::uint8_t, 65536> buffer;
    for (;;) {
      const std::uint8_t* out = nullptr;
      for (ssize_t size = 0; (size = nghttp2_session_mem_send(server.session_, &out)) > 0;) {
        if (::send(socket, out, static_cast<std::size_t>(size), MSG_NOSIGNAL) != size) break;
      }
      if (server.close_) break;
      const ssize_t size = ::recv(socket, buffer.data(), buffer.size(), 0);
      if (size <= 0 || nghttp2_session_mem_recv(server.session_, buffer.data(), static_cast<std::size_t>(size)) < 0)
        break;
    }
    nghttp2_session_del(server.session_);
  }

  /// Answers with a body, and a status of 0 behind it.
  void answer(std::int32_t stream, std::string body) {
    answers_[stream] = {std::move(body), 0};
    const std::array<nghttp2_nv, 2> headers = {pair(":status", "200"), pair("content-type", "application/grpc")};
    nghttp2_data_provider provider{};
    provider.read_callback = read_answer;
    nghttp2_submit_response(session_, stream, headers.data(), headers.size(), &provider);
  }
  void headers_only(std::int32_t stream, const std::vector<Http2Header>& list) {
    std::vector<nghttp2_nv> pairs;
    for (const Http2Header& h : list) pairs.push_back(pair(h.name, h.value));
    nghttp2_submit_response(session_, stream, pairs.data(), pairs.size(), nullptr);
  }
  /// After what is queued.
  void close() { close_ = true; }
  [[nodiscard]] nghttp2_session* session() const { return session_; }

 private:
  struct Answer {
    std::string body;
    std::size_t taken = 0;
  };

  static nghttp2_nv pair(std::string_view name, std::string_view value) {
    return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
            reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(), 0};
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes, std::size_t size,
                     void* self) {
    static_cast<Server*>(self)->bodies_[stream].append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    auto& self = *static_cast<Server*>(data);
    const bool request = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (request && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      self.act_(self, frame->hd.stream_id, self.bodies_[frame->hd.stream_id]);
    }
    return 0;
  }
  static ssize_t read_answer(nghttp2_session* session, std::int32_t stream, std::uint8_t* into, std::size_t size,
                             std::uint32_t* flags, nghttp2_data_source*, void* data) {
    Answer& answer = static_cast<Server*>(data)->answers_[stream];
    const std::size_t bytes = std::min(size, answer.body.size() - answer.taken);
    std::copy_n(answer.body.data() + answer.taken, bytes, into);
    answer.taken += bytes;
    if (answer.taken == answer.body.size()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv status = pair("grpc-status", "0");
      nghttp2_submit_trailer(session, stream, &status, 1);
    }
    return static_cast<ssize_t>(bytes);
  }

  nghttp2_session* session_ = nullptr;
  Act act_;
  std::map<std::int32_t, std::string> bodies_;
  std::map<std::int32_t, Answer> answers_;
  bool close_ = false;
};

/// One connection to such a server.
std::function<void(int)> serving(Server::Act act) {
  return [act = std::move(act)](int socket) { Server::serve(socket, act); };
}

const std::vector<Http2Header> kGet = {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "peer"}};
const std::vector<Http2Header> kPost = {
    {":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "peer"}};

class Http2Test : public SocketTest {
 protected:
  [[nodiscard]] std::shared_ptr<GrpcChannel> connect(const OneConnection& server, const GrpcOptions& options = {}) {
    auto channel = GrpcChannel::connect(server.endpoint(), nullptr, options, clock_, in(10s));
    EXPECT_TRUE(channel) << channel.error().message;
    return *std::move(channel);
  }
  [[nodiscard]] std::shared_ptr<Http2Connection> http2(const OneConnection& server, const Http2Options& options = {}) {
    auto transport = connect_transport(server.endpoint(), nullptr, clock_, in(10s));
    EXPECT_TRUE(transport) << transport.error().message;
    return Http2Connection::make(*std::move(transport), "peer", options, clock_);
  }
  [[nodiscard]] GrpcReply call_to(const OneConnection& server, const GrpcOptions& options = {}) {
    return connect(server, options)->call("/test.Test/Call", "request", in(10s));
  }
};

TEST_F(Http2Test, AnEcho) {
  const OneConnection server(
      serving([](Server& peer, std::int32_t stream, const std::string& body) { peer.answer(stream, body); }));
  const auto channel = connect(server);
  for (const std::string& message : {std::string("a"), std::string(), std::string(3'000'000, 'x')}) {
    const GrpcReply reply = channel->call("/test.Test/Call", message, in(10s));
    ASSERT_TRUE(reply.status.ok()) << reply.status.message;
    EXPECT_EQ(reply.message, message);
  }
}

TEST_F(Http2Test, ThreadsShareAConnection) {
  const OneConnection server([](int socket) {
    // Answers in pairs, the later first: nobody may depend on being answered before the other.
    std::vector<std::pair<std::int32_t, std::string>> waiting;
    Server::serve(socket, [&](Server& peer, std::int32_t stream, const std::string& body) {
      waiting.emplace_back(stream, body);
      if (waiting.size() < 4) return;
      for (; !waiting.empty(); waiting.pop_back()) peer.answer(waiting.back().first, waiting.back().second);
    });
  });
  const auto channel = connect(server);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string message = std::to_string(t) + "/" + std::to_string(i);
        if (channel->call("/test.Test/Call", message, in(20s)).message == message) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

TEST_F(Http2Test, TheServersOwnRefusal) {
  const OneConnection server(serving([](Server& peer, std::int32_t stream, const std::string&) {
    peer.headers_only(stream, {{":status", "200"}, {"grpc-status", "9"}, {"grpc-message", "not%20now"}});
  }));
  const GrpcReply reply = call_to(server);
  EXPECT_EQ(reply.status.code, GrpcCode::failed_precondition);
  EXPECT_EQ(reply.status.message, "not now");
  EXPECT_TRUE(reply.status.from_server);
}

TEST_F(Http2Test, OkWithoutAWholeMessageIsNoSuccess) {
  for (const std::string& body : {std::string(), grpc_framed("cut").substr(0, 6),
                                  grpc_framed("one") + grpc_framed("two"), std::string("\1\0\0\0\0", 5)}) {
    const OneConnection server(
        serving([&](Server& peer, std::int32_t stream, const std::string&) { peer.answer(stream, body); }));
    const GrpcReply reply = call_to(server);
    EXPECT_EQ(reply.status.code, GrpcCode::internal);
    EXPECT_FALSE(reply.status.from_server);
    EXPECT_FALSE(reply.status.surely_not_processed);
  }
}

TEST_F(Http2Test, AStreamThatIsRefusedWasNotProcessedAndOneThatIsResetMayHaveBeen) {
  for (const auto& [code, surely] :
       {std::pair{NGHTTP2_REFUSED_STREAM, true}, {NGHTTP2_INTERNAL_ERROR, false}, {NGHTTP2_CANCEL, false}}) {
    const OneConnection server(serving([&, code = code](Server& peer, std::int32_t stream, const std::string&) {
      nghttp2_submit_rst_stream(peer.session(), 0, stream, static_cast<std::uint32_t>(code));
    }));
    const GrpcReply reply = call_to(server);
    EXPECT_EQ(reply.status.code, GrpcCode::unavailable);
    EXPECT_EQ(reply.status.surely_not_processed, surely) << reply.status.message;
  }
}

TEST_F(Http2Test, AGoodbyeTellsWhichRequestsWereNotSeen) {
  for (const auto& [last, surely] : {std::pair{0, true}, {1, false}}) {
    const OneConnection server(serving([&, last = last](Server& peer, std::int32_t, const std::string&) {
      nghttp2_submit_goaway(peer.session(), 0, last, NGHTTP2_NO_ERROR, nullptr, 0);
      peer.close();
    }));
    const auto channel = connect(server);
    const GrpcReply reply = channel->call("/test.Test/Call", "request", in(10s));
    EXPECT_EQ(reply.status.code, GrpcCode::unavailable);
    EXPECT_EQ(reply.status.surely_not_processed, surely) << reply.status.message;
    EXPECT_FALSE(channel->is_usable());
    const GrpcReply next = channel->call("/test.Test/Call", "request", in(10s));
    EXPECT_TRUE(next.status.surely_not_processed);
  }
}

TEST_F(Http2Test, GarbageIsNoAnswer) {
  for (const std::string& garbage :
       {std::string("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), std::string(100, '\xFF'),
        // HEADERS before SETTINGS; SETTINGS of a length that is none; DATA on stream 0.
        std::string("\0\0\0\1\4\0\0\0\1", 9), std::string("\0\0\1\4\0\0\0\0\0x", 10),
        std::string(kEmptySettings) + std::string("\0\0\1\0\0\0\0\0\0x", 10)}) {
    const OneConnection server([&](int socket) {
      send_all(socket, garbage);
      drain(socket);
    });
    const GrpcReply reply = call_to(server);
    EXPECT_EQ(reply.status.code, GrpcCode::internal) << reply.status.message;
    EXPECT_NE(reply.status.message.find("does not speak HTTP/2"), std::string::npos) << reply.status.message;
  }
}

TEST_F(Http2Test, HalfAFrameIsTheEndOfTheConnection) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{8}}) {
    const OneConnection server([&](int socket) { send_all(socket, kEmptySettings.substr(0, size)); });
    const auto channel = connect(server);
    EXPECT_EQ(channel->wait_until_ready(in(10s)).error().code, ErrorCode::unavailable);
    EXPECT_TRUE(channel->call("/test.Test/Call", "request", in(10s)).status.surely_not_processed);
  }
}

TEST_F(Http2Test, AServerThatSaysNothingIsGivenUp) {
  const OneConnection server(drain);
  GrpcOptions options;
  options.http2.settings_timeout = 50ms;
  const GrpcReply reply = call_to(server, options);
  EXPECT_EQ(reply.status.code, GrpcCode::unavailable);
  EXPECT_FALSE(reply.status.surely_not_processed) << "it was sent";
}

TEST_F(Http2Test, AServerThatFallsSilentIsNoticed) {
  const OneConnection server([](int socket) {
    send_all(socket, kEmptySettings);
    drain(socket);
  });
  GrpcOptions options;
  options.http2.ping_after = 50ms;
  options.http2.ping_timeout = 50ms;
  const GrpcReply reply = call_to(server, options);
  EXPECT_EQ(reply.status.code, GrpcCode::unavailable);
  EXPECT_NE(reply.status.message.find("silent"), std::string::npos) << reply.status.message;
}

TEST_F(Http2Test, TheDeadlineEndsOneCallAndNotTheConnection) {
  const OneConnection server([](int socket) {
    int count = 0;
    Server::serve(socket, [&](Server& peer, std::int32_t stream, const std::string& body) {
      if (++count > 1) peer.answer(stream, body);
    });
  });
  const auto channel = connect(server);
  const GrpcReply late = channel->call("/test.Test/Call", "1", in(50ms));
  EXPECT_EQ(late.status.code, GrpcCode::deadline_exceeded);
  EXPECT_FALSE(late.status.surely_not_processed);
  const GrpcReply passed = channel->call("/test.Test/Call", "2", in(0ms));
  EXPECT_EQ(passed.status.code, GrpcCode::deadline_exceeded);
  EXPECT_TRUE(passed.status.surely_not_processed);
  EXPECT_EQ(channel->call("/test.Test/Call", "3", in(10s)).message, "3");
}

TEST_F(Http2Test, BoundsOfAnAnswer) {
  GrpcOptions options;
  options.message_bytes_max = 1000;
  const OneConnection server(serving([](Server& peer, std::int32_t stream, const std::string&) {
    peer.answer(stream, grpc_framed(std::string(stream == 1 ? 100'000 : 1000, 'x')));
  }));
  const auto channel = connect(server, options);
  EXPECT_EQ(channel->call("/test.Test/Call", "1", in(10s)).status.code, GrpcCode::resource_exhausted);
  EXPECT_TRUE(channel->call("/test.Test/Call", "2", in(10s)).status.ok()) << "the connection goes on";

  options.http2.header_bytes_max = 1000;
  const std::string long_value(2000, 'x');
  const OneConnection talker(serving([&](Server& peer, std::int32_t stream, const std::string&) {
    peer.headers_only(stream, {{":status", "200"}, {"grpc-status", "0"}, {"x", long_value}});
  }));
  EXPECT_EQ(call_to(talker, options).status.code, GrpcCode::internal);
}

TEST_F(Http2Test, BoundsOfAnswersThatNobodyHasTaken) {
  const OneConnection server(serving(
      [](Server& peer, std::int32_t stream, const std::string&) { peer.answer(stream, std::string(4000, 'x')); }));
  Http2Options options;
  options.unread_bytes_max = 10'000;
  const auto connection = http2(server, options);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<Http2Stream>> streams;
    for (int i = 0; i < 4; ++i) {
      const auto opened = connection->open(kPost, "", true, 5000);
      ASSERT_TRUE(opened) << opened.error().message;
      streams.push_back(*opened);
    }
    // The last is answered behind the others.
    const auto last = streams[3]->read_all(in(10s));
    ASSERT_TRUE(last.failure);
    EXPECT_EQ(last.failure->error.code, ErrorCode::invalid_argument);
    EXPECT_NE(last.failure->error.message.find("together"), std::string::npos) << last.failure->error.message;
    EXPECT_EQ(streams[0]->read_all(in(10s)).bytes.size(), 4000U) << "those before it are whole";
    EXPECT_EQ(streams[1]->read_all(in(10s)).bytes.size(), 4000U);
  }
}

TEST_F(Http2Test, AnAnswerThatOthersHaveTakenInBeforeItIsReadStillComesWhole) {
  // More than the window of a stream, which is used up before anybody reads the stream itself.
  const std::string body(6'000'000, 'x');
  const OneConnection server(serving([&](Server& peer, std::int32_t stream, const std::string&) {
    const bool is_stuck = stream > 1 && nghttp2_session_get_stream_remote_window_size(peer.session(), 1) == 0;
    peer.answer(stream, stream == 1 ? body : is_stuck ? "stuck" : "not yet");
  }));
  const auto connection = http2(server);
  const auto long_one = connection->open(kPost, "", true, body.size());
  ASSERT_TRUE(long_one) << long_one.error().message;
  for (std::string seen; seen != "stuck";) {
    const auto other = connection->open(kPost, "", true, 100);
    ASSERT_TRUE(other) << other.error().message;
    const auto received = (*other)->read_all(in(10s));
    ASSERT_FALSE(received.failure) << received.failure->error.message;
    seen = received.bytes;
  }
  const auto received = (*long_one)->read_all(in(10s));
  EXPECT_FALSE(received.failure) << received.failure->error.message;
  EXPECT_EQ(received.bytes.size(), body.size());
}

TEST_F(Http2Test, HeadersAreThereBeforeTheBodyAndInterimOnesAreNone) {
  std::atomic<int> step{0};
  const auto reached = [&](int wanted) {
    while (step < wanted) std::this_thread::sleep_for(1ms);
  };
  const OneConnection server([&](int socket) {
    send_all(socket, kEmptySettings);
    reached(1);  // who answers what was not asked speaks no HTTP/2
    send_all(socket, http2_frame(Http2Type::headers, kEndHeaders, 1, hpack({{":status", "103"}, {"link", "x"}})));
    reached(2);
    send_all(socket, http2_frame(Http2Type::headers, kEndHeaders, 1, hpack({{":status", "200"}, {"a", "b"}})));
    reached(3);
    send_all(socket, http2_data(1, "body"));
    drain(socket);
  });
  const auto connection = http2(server);
  const auto stream = connection->open(kGet, "", true, 100);
  ASSERT_TRUE(stream) << stream.error().message;
  step = 1;
  EXPECT_FALSE((*stream)->wait_for_headers(in(50ms)));
  step = 2;
  EXPECT_TRUE((*stream)->wait_for_headers(in(10s)));
  const auto headers = (*stream)->headers();
  ASSERT_EQ(headers.size(), 2U);
  EXPECT_EQ(headers[0].value, "200");
  EXPECT_EQ(headers[1].value, "b");
  EXPECT_TRUE((*stream)->read(in(20ms)).timed_out);
  step = 3;
  EXPECT_EQ((*stream)->read_all(in(10s)).bytes, "body");
  EXPECT_TRUE((*stream)->wait_for_headers(in(0s)));
}

TEST_F(Http2Test, HeadersThatNeverComeAreNotWaitedForBehindTheEnd) {
  const OneConnection server([](int socket) { send_all(socket, kEmptySettings); });
  const auto connection = http2(server);
  const auto stream = connection->open(kGet, "", true, 100);
  if (!stream) return;  // the end was seen already
  EXPECT_TRUE((*stream)->wait_for_headers(in(10s)));
  EXPECT_TRUE((*stream)->read(in(10s)).failure);
}

/// Without a body the headers end the request; an empty frame of data behind a GET is what some servers refuse.
TEST_F(Http2Test, ARequestWithoutABodyEndsWithItsHeaders) {
  std::string seen;
  std::atomic<bool> done{false};
  const OneConnection server([&](int socket) {
    send_all(socket, kEmptySettings);
    std::array<char, 4096> buffer;
    for (ssize_t size = 0; !done && (size = ::recv(socket, buffer.data(), buffer.size(), 0)) > 0;) {
      seen.append(buffer.data(), static_cast<std::size_t>(size));
      const std::string data_frame("\x00\x01\x00\x00\x00\x01", 6);
      if (seen.find(data_frame) != seen.npos || seen.find(std::string("\x01\x05\x00\x00\x00\x01", 6)) != seen.npos) {
        done = true;
        send_all(socket, http2_frame(Http2Type::headers, kEndHeaders | kEndStream, 1, hpack({{":status", "200"}})));
        drain(socket);
      }
    }
  });
  {
    const auto connection = http2(server);
    const auto stream = connection->open(kGet, "", true, 100);
    ASSERT_TRUE(stream) << stream.error().message;
    EXPECT_TRUE((*stream)->read_all(in(10s)).ended);
  }
  // Written before the answer, which was read.
  EXPECT_NE(seen.find(std::string("\x01\x05\x00\x00\x00\x01", 6)), std::string::npos);
}

/// A peer that begins an answer and always has more to say; each look at it takes a millisecond.
class ForEver final : public Transport {
 public:
  ForEver(std::string_view begin, std::string more, ManualClock& clock)
      : bytes_(begin), more_(std::move(more)), clock_(clock) {}
  [[nodiscard]] Result<Moved> read(std::span<std::byte> into) override {
    clock_.advance(1ms);
    while (bytes_.size() < into.size()) bytes_ += more_;
    std::copy_n(std::as_bytes(std::span(bytes_)).begin(), into.size(), into.begin());
    bytes_.erase(0, into.size());
    return Moved{into.size(), false, false};
  }
  [[nodiscard]] Result<Moved> write(std::span<const std::byte> from) override {
    return Moved{from.size(), false, false};
  }
  [[nodiscard]] int descriptor() const override { return -1; }

 private:
  std::string bytes_;
  const std::string more_;
  ManualClock& clock_;
};

TEST(Http2Peer, ThatKeepsTalkingIsNotListenedToBeyondTheDeadline) {
  const std::string unknown_frame = std::string("\x00\x00\x08\x50\x00\x00\x00\x00\x00", 9) + "whatever";
  const std::string empty_data("\x00\x00\x00\x00\x00\x00\x00\x00\x01", 9);
  const std::string one_byte("\x00\x00\x01\x00\x00\x00\x00\x00\x01x", 10);
  const std::string header_frame("\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88", 10);
  for (const std::string& more : {unknown_frame, empty_data, one_byte}) {
    for (const bool whole : {true, false}) {
      ManualClock clock;
      const auto connection = Http2Connection::make(
          std::make_unique<ForEver>(std::string(kEmptySettings) + header_frame, more, clock), "peer", {}, clock);
      const auto stream = connection->open(kPost, "", true, 64U << 20);
      if (!stream) continue;  // it was seen to break the protocol
      const Deadline deadline = Deadline::after(clock.now(), 1s);
      for (bool over = false; !over;) {
        const auto received = whole ? (*stream)->read_all(deadline) : (*stream)->read(deadline);
        over = received.ended || received.failure || received.timed_out || received.late;
      }
      EXPECT_LT(clock.now().since_boot, deadline.at_since_boot + 100ms);
    }
  }
}

TEST_F(Http2Test, AConnectionThatIsRefusedOrForbidden) {
  Endpoint endpoint;
  endpoint.host = "127.0.0.1";
  {
    const Listener closed_at_once;
    endpoint.port = closed_at_once.port;
  }
  EXPECT_EQ(connect_transport(endpoint, nullptr, clock_, in(10s)).error().code, ErrorCode::unavailable);
  endpoint.secure = true;
  EXPECT_EQ(connect_transport(endpoint, nullptr, clock_, in(10s)).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace croft::os
