#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include "base/clock.h"
#include "http/grpc_server.h"
#include "http/http2_frames_fixture.h"

namespace croft::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

/// Writes down what it is told.
class Notes final : public GrpcHandler {
 public:
  [[nodiscard]] bool serves(std::string_view method) override { return method == "/a/Unary"; }
  void on_request(GrpcRequest request) override {
    told.push_back("request " + request.message);
    last = request.call;
    requests.push_back(std::move(request));
  }

  std::vector<std::string> told;
  std::vector<GrpcRequest> requests;
  GrpcCallId last = 0;
};

/// What came back on one stream.
struct Reply {
  std::map<std::string, std::string> fields;  ///< headers and trailers
  std::string data;
  bool ended = false;
  std::optional<std::uint32_t> reset;
};

class GrpcSessionTest : public testing::Test {
 protected:
  GrpcSessionTest() { make(); }
  ~GrpcSessionTest() override { nghttp2_hd_inflate_del(inflater_); }

  void make() {
    if (inflater_ != nullptr) nghttp2_hd_inflate_del(inflater_);
    EXPECT_EQ(nghttp2_hd_inflate_new(&inflater_), 0);
    replies_.clear();
    session_ = std::make_unique<GrpcSession>(7, notes_, options_, memory_, clock_);
  }
  void say(const std::string& bytes) { session_->receive(std::as_bytes(std::span(bytes))); }
  void greet() { say(http2_greeting()); }

  /// Takes what the session sends.
  void listen() {
    for (std::string_view bytes = session_->unsent(); !bytes.empty(); bytes = session_->unsent()) {
      heard_ += bytes;
      session_->sent(bytes.size());
    }
    while (heard_.size() >= 9) {
      const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(heard_[i])); };
      const std::size_t size = at(0) << 16U | at(1) << 8U | at(2);
      if (heard_.size() < 9 + size) break;
      const std::uint32_t stream = at(5) << 24U | at(6) << 16U | at(7) << 8U | at(8);
      take_frame(static_cast<Http2Type>(at(3)), static_cast<std::uint8_t>(at(4)), stream, heard_.substr(9, size));
      heard_.erase(0, 9 + size);
    }
  }
  void take_frame(Http2Type type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
    ++frames_;
    Reply& reply = replies_[stream];
    if (type == Http2Type::goaway) goodbye_ = static_cast<unsigned char>(payload[7]);
    if (type == Http2Type::rst_stream) reply.reset = static_cast<unsigned char>(payload[3]);
    if (type == Http2Type::data) reply.data += payload;
    if (type == Http2Type::headers) inflate(payload, reply);
    if (type == Http2Type::data || type == Http2Type::headers) reply.ended = (flags & kEndStream) != 0;
  }
  void inflate(const std::string& block, Reply& reply) {
    const auto* in = reinterpret_cast<const std::uint8_t*>(block.data());
    for (std::size_t left = block.size();;) {
      nghttp2_nv field{};
      int flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, in, left, 1);
      ASSERT_GE(used, 0);
      in += used;
      left -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
        reply.fields[std::string(reinterpret_cast<char*>(field.name), field.namelen)] =
            std::string(reinterpret_cast<char*>(field.value), field.valuelen);
      }
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
  }
  /// What came back for a whole request that is answered by the session itself, as "HTTP status, code of gRPC".
  std::string answer_to(const std::string& bytes, std::uint32_t stream = 1) {
    say(bytes);
    listen();
    const Reply& reply = replies_[stream];
    if (reply.fields.empty()) return reply.reset ? "reset " + std::to_string(*reply.reset) : "nothing";
    EXPECT_TRUE(reply.ended);
    EXPECT_EQ(reply.data, "");
    return reply.fields.at(":status") + ", " + reply.fields.at("grpc-status");
  }
  /// So many calls.
  static std::string ask_for(std::uint32_t calls) {
    std::string all;
    for (std::uint32_t i = 0; i < calls; ++i) {
      all += grpc_headers(2 * i + 1, "/a/Unary") + http2_data(2 * i + 1, grpc_framed("x"));
    }
    return all;
  }
  /// Says it again and again, taking what comes, until the session is over: how often.
  int until_over(const std::string& bytes, int most = 100'000) {
    for (int i = 1; i <= most; ++i) {
      say(bytes);
      session_->sent(session_->unsent().size());
      if (session_->is_over()) return i;
    }
    return most + 1;
  }

  ManualClock clock_;
  Notes notes_;
  GrpcSessionOptions options_;
  GrpcMemory memory_;
  std::unique_ptr<GrpcSession> session_;
  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string heard_;
  std::map<std::uint32_t, Reply> replies_;
  std::optional<std::uint32_t> goodbye_;
  int frames_ = 0;
};

TEST_F(GrpcSessionTest, AUnaryCall) {
  EXPECT_FALSE(session_->has_greeted());
  greet();
  EXPECT_TRUE(session_->has_greeted());
  say(grpc_headers(1, "/a/Unary", {{"grpc-timeout", "250m"}}) + http2_data(1, grpc_framed("hello")));
  ASSERT_THAT(notes_.told, ElementsAre("request hello"));
  EXPECT_EQ(session_->in_hand(), 1U);
  EXPECT_EQ(GrpcSession::connection_of(notes_.last), 7U);
  EXPECT_EQ(notes_.requests[0].method, "/a/Unary");
  EXPECT_EQ(notes_.requests[0].deadline.at_since_boot, clock_.now().since_boot + 250ms);
  EXPECT_FALSE(*notes_.requests[0].hung_up);
  session_->answer({notes_.last, GrpcCode::ok, "not said", "world"});
  session_->answer({notes_.last, GrpcCode::internal, "twice", ""});
  EXPECT_EQ(session_->in_hand(), 0U);
  listen();
  const Reply& reply = replies_[1];
  EXPECT_EQ(reply.fields.at(":status"), "200");
  EXPECT_EQ(reply.fields.at("content-type"), "application/grpc");
  EXPECT_EQ(reply.fields.at("grpc-status"), "0");
  EXPECT_EQ(reply.data, grpc_framed("world"));
  EXPECT_TRUE(reply.ended);
  EXPECT_FALSE(reply.reset);
  EXPECT_EQ(memory_.bytes, 0U);
  EXPECT_FALSE(session_->is_over());
}

TEST_F(GrpcSessionTest, AnEmptyMessageIsAMessage) {
  greet();
  say(grpc_headers(1, "/a/Unary") + http2_data(1, grpc_framed("")));
  ASSERT_THAT(notes_.told, ElementsAre("request "));
  session_->answer({notes_.last, GrpcCode::ok, "", ""});
  listen();
  EXPECT_EQ(replies_[1].data, grpc_framed(""));
}

TEST_F(GrpcSessionTest, TheTextOfAnErrorTravelsEncodedAndNotWithoutEnd) {
  greet();
  for (const std::uint32_t stream : {1U, 3U})
    say(grpc_headers(stream, "/a/Unary") + http2_data(stream, grpc_framed("")));
  session_->answer({notes_.requests[0].call, GrpcCode::not_found, "100%\n\xC3\xBC", "not said"});
  session_->answer({notes_.requests[1].call, GrpcCode::internal, std::string(100'000, '\n'), ""});
  listen();
  EXPECT_EQ(replies_[1].fields.at("grpc-status"), "5");
  EXPECT_EQ(replies_[1].fields.at("grpc-message"), "100%25%0A%C3%BC");
  EXPECT_EQ(replies_[1].data, "");
  EXPECT_LT(replies_[3].fields.at("grpc-message").size(), 8192U);
}

TEST_F(GrpcSessionTest, RequestsThatAreNoneAreAnswered) {
  const std::string one = http2_data(1, grpc_framed("x"));
  const std::string gzip = std::string("\1\0\0\0\1x", 6);
  const struct {
    const char* what;
    std::string bytes;
    const char* answer;
  } cases[] = {
      {"another content-type", grpc_headers(1, "/a/Unary", {{"content-type", "text/plain"}}) + one, "415, 3"},
      {"gRPC for browsers", grpc_headers(1, "/a/Unary", {{"content-type", "application/grpc-web"}}) + one, "415, 3"},
      {"JSON", grpc_headers(1, "/a/Unary", {{"content-type", "application/grpc+json"}}) + one, "415, 3"},
      {"no content-type", grpc_headers(1, "/a/Unary", {{"content-type", ""}}) + one, "415, 3"},
      {"no te", grpc_headers(1, "/a/Unary", {{"te", ""}}) + one, "200, 13"},
      {"another te", grpc_headers(1, "/a/Unary", {{"te", "gzip"}}) + one, "reset 1"},
      {"GET", grpc_headers(1, "/a/Unary", {{":method", "GET"}}, kEndHeaders | kEndStream), "405, 13"},
      {"no path", grpc_headers(1, "", {{":path", ""}}) + one, "reset 1"},
      {"no method", grpc_headers(1, "/a/Unary", {{":method", ""}}) + one, "reset 1"},
      {"no such method", grpc_headers(1, "/a/b") + one, "200, 12"},
      {"a path as of files", grpc_headers(1, "/../../etc/passwd") + one, "200, 12"},
      {"no timeout", grpc_headers(1, "/a/Unary", {{"grpc-timeout", "soon"}}) + one, "200, 3"},
      {"compressed", grpc_headers(1, "/a/Unary", {{"grpc-encoding", "gzip"}}) + http2_data(1, gzip), "200, 12"},
      {"compressed with nothing", grpc_headers(1, "/a/Unary") + http2_data(1, gzip), "200, 13"},
      {"another flag", grpc_headers(1, "/a/Unary") + http2_data(1, std::string("\7\0\0\0\0", 5)), "200, 13"},
      {"no message", grpc_headers(1, "/a/Unary") + http2_data(1, ""), "200, 3"},
      {"no body", grpc_headers(1, "/a/Unary", {}, kEndHeaders | kEndStream), "200, 3"},
      {"half a message", grpc_headers(1, "/a/Unary") + http2_data(1, grpc_framed("xy").substr(0, 6)), "200, 3"},
      {"half a prefix", grpc_headers(1, "/a/Unary") + http2_data(1, std::string("\0\0", 2)), "200, 3"},
      {"two messages", grpc_headers(1, "/a/Unary") + http2_data(1, grpc_framed("x") + grpc_framed("y")), "200, 3"},
      {"much metadata",
       grpc_headers(1, "/a/Unary", {{"x-a", std::string(5000, 'x')}, {"x-b", std::string(5000, 'x')}}) + one, "200, 8"},
  };
  for (const auto& one_case : cases) {
    SCOPED_TRACE(one_case.what);
    make();
    greet();
    EXPECT_EQ(answer_to(one_case.bytes), one_case.answer);
    EXPECT_EQ(notes_.told.size(), 0U);
    EXPECT_EQ(memory_.bytes, 0U);
    // And the connection goes on.
    say(grpc_headers(3, "/a/Unary", {{"content-type", "application/grpc+proto; x"}}) +
        http2_data(3, grpc_framed("next")));
    EXPECT_THAT(notes_.told, ElementsAre("request next"));
    notes_.told.clear();
  }
}

TEST_F(GrpcSessionTest, AMessageThatIsTooLongIsRefusedByItsLength) {
  greet();
  const std::size_t most = options_.message_bytes_max;
  const auto begins = [&](std::uint32_t stream, std::size_t length) {
    return grpc_headers(stream, "/a/Unary") + http2_data(stream, '\0' + big_endian(length, 4), false);
  };
  EXPECT_EQ(answer_to(begins(1, most + 1), 1), "200, 3");
  EXPECT_THAT(replies_[1].fields.at("grpc-message"), HasSubstr("no more than 65536"));
  EXPECT_EQ(replies_[1].reset, NGHTTP2_NO_ERROR);  // it need not go on
  EXPECT_EQ(answer_to(begins(3, 1'000'000), 3), "200, 8");
  EXPECT_EQ(answer_to(begins(5, UINT32_MAX), 5), "200, 8");
  EXPECT_EQ(memory_.bytes, 0U);
  say(http2_data(5, std::string(16384, 'x'), false));  // was on its way
  EXPECT_EQ(memory_.bytes, 0U);
  say(grpc_headers(7, "/a/Unary"));
  const std::string whole = http2_data(7, grpc_framed(std::string(most, 'x')));
  for (std::size_t at = 0; at < whole.size(); at += 1000) {
    say(whole.substr(at, 1000));
    listen();  // windows
  }
  ASSERT_EQ(notes_.requests.size(), 1U);
  EXPECT_EQ(notes_.requests[0].message.size(), most);
  EXPECT_GE(memory_.bytes, most);  // as long as the call is there
  session_->answer({notes_.last, GrpcCode::ok, "", ""});
  listen();
  EXPECT_EQ(memory_.bytes, 0U);
}

TEST_F(GrpcSessionTest, MessagesOfAllTogetherHaveABound) {
  memory_.bytes_max = 10'000;
  greet();
  say(grpc_headers(1, "/a/Unary") + http2_data(1, grpc_framed(std::string(9000, 'x'))));
  ASSERT_EQ(notes_.requests.size(), 1U);
  EXPECT_EQ(answer_to(grpc_headers(3, "/a/Unary") + http2_data(3, grpc_framed(std::string(9000, 'x'))), 3), "200, 8");
  session_->answer({notes_.last, GrpcCode::ok, "", ""});
  listen();
  say(grpc_headers(5, "/a/Unary") + http2_data(5, grpc_framed(std::string(9000, 'x'))));
  EXPECT_EQ(notes_.requests.size(), 2U);
  session_->hang_up();
  EXPECT_EQ(memory_.bytes, 0U);
}

TEST_F(GrpcSessionTest, WhatIsAnsweredHasABoundOfAllTogether) {
  memory_.bytes_max = 100'000;
  say(std::string(kHttp2Preface) +
      http2_frame(Http2Type::settings, 0, 0, big_endian(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2) + big_endian(0, 4)) +
      ask_for(30));
  for (const GrpcRequest& request : notes_.requests) {
    if (!session_->is_over()) session_->answer({request.call, GrpcCode::ok, "", std::string(10'000, 'x')});
  }
  EXPECT_TRUE(session_->is_over());
  EXPECT_LT(memory_.bytes, 120'000U);
  session_->hang_up();
  EXPECT_EQ(memory_.bytes, 0U);
}

TEST_F(GrpcSessionTest, WhoTakesACallBackHasHungUp) {
  greet();
  const std::string cancel = big_endian(NGHTTP2_CANCEL, 4);
  say(grpc_headers(1, "/a/Unary") + http2_data(1, grpc_framed("x")));
  say(http2_frame(Http2Type::rst_stream, 0, 1, cancel));
  EXPECT_TRUE(*notes_.requests[0].hung_up);
  EXPECT_EQ(session_->in_hand(), 0U);
  session_->answer({notes_.requests[0].call, GrpcCode::ok, "", "too late"});
  listen();
  EXPECT_EQ(replies_[1].data, "");
}

TEST_F(GrpcSessionTest, APeerThatIsGoneTakesItsCallsAlong) {
  greet();
  say(grpc_headers(1, "/a/Unary") + http2_data(1, grpc_framed("x")));
  session_.reset();
  EXPECT_TRUE(*notes_.requests[0].hung_up);
}

TEST_F(GrpcSessionTest, AfterAGoodbyeWhatIsOpenIsAnsweredAndNothingBegins) {
  greet();
  say(grpc_headers(1, "/a/Unary") + http2_data(1, grpc_framed("x")));
  session_->go_away();
  listen();
  EXPECT_EQ(goodbye_, NGHTTP2_NO_ERROR);
  say(grpc_headers(3, "/a/Unary") + http2_data(3, grpc_framed("y")));
  EXPECT_THAT(notes_.told, ElementsAre("request x"));
  EXPECT_FALSE(session_->is_over());
  session_->answer({notes_.last, GrpcCode::ok, "", "z"});
  EXPECT_FALSE(session_->is_over());
  listen();
  EXPECT_EQ(replies_[1].data, grpc_framed("z"));
  EXPECT_TRUE(session_->is_over());
}

TEST_F(GrpcSessionTest, WhatIsNoHttp2IsOver) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), std::string(100, '\0'),
        std::string(kHttp2Preface) + std::string(1000, '\xFF'), http2_greeting() + std::string(1000, '\xFF'),
        http2_greeting() + http2_frame(Http2Type::headers, kEndHeaders, 2, hpack(grpc_fields("/a/Unary"))),
        http2_greeting() + http2_frame(Http2Type::headers, kEndHeaders, 1, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF")}) {
    make();
    say(bytes);
    for (int i = 0; i < 3; ++i) session_->sent(session_->unsent().size());
    EXPECT_TRUE(session_->is_over()) << testing::PrintToString(bytes.substr(0, 60));
    say(bytes);
    EXPECT_EQ(notes_.told.size(), 0U);
  }
}

TEST_F(GrpcSessionTest, CallsAtOnceHaveABound) {
  greet();
  listen();
  say(http2_frame(Http2Type::settings, kAck, 0));
  for (std::uint32_t i = 0; i < options_.streams_max; ++i) {
    say(grpc_headers(2 * i + 1, "/a/Unary") + http2_data(2 * i + 1, grpc_framed("x")));
  }
  EXPECT_EQ(session_->in_hand(), 32U);
  say(grpc_headers(65, "/a/Unary") + http2_data(65, grpc_framed("x")));
  EXPECT_EQ(session_->in_hand(), 32U);
  listen();
  EXPECT_TRUE(session_->is_over() || replies_[65].reset);
}

TEST_F(GrpcSessionTest, FloodsAreLeft) {
  const std::string settings =
      http2_frame(Http2Type::settings, 0, 0, big_endian(NGHTTP2_SETTINGS_ENABLE_PUSH, 2) + big_endian(0, 4));
  std::uint32_t stream = 1;
  const std::map<std::string, std::string> floods = {
      {"pings", http2_frame(Http2Type::ping, 0, 0, "12345678")},
      {"settings", settings},
      {"empty data", http2_data(1, "", false)},
      {"bytes of data", http2_data(1, std::string(1, '\0'), false)},
      {"priorities", http2_frame(Http2Type::priority, 0, 9, std::string(5, '\1'))},
      {"windows", http2_frame(Http2Type::window_update, 0, 0, big_endian(1, 4))},
      {"data of a call that is over", http2_data(3, "", false)},
      {"unknown frames", http2_frame(Http2Type::unknown, 0, 0, "x")},
  };
  for (const auto& [what, bytes] : floods) {
    SCOPED_TRACE(what);
    make();
    greet();
    say(grpc_headers(1, "/a/Unary") + grpc_headers(3, "/a/No", {}, kEndHeaders | kEndStream));
    listen();
    EXPECT_LE(until_over(bytes), 2001);
  }
  for (const bool whole : {false, true}) {
    make();
    greet();
    int times = 0;
    for (stream = 1; !session_->is_over() && times < 5000; stream += 2, ++times) {
      say(grpc_headers(stream, "/a/Unary") + (whole ? http2_data(stream, grpc_framed("x")) : "") +
          http2_frame(Http2Type::rst_stream, 0, stream, big_endian(NGHTTP2_CANCEL, 4)));
      session_->sent(session_->unsent().size());
    }
    EXPECT_LE(times, 1001);
    EXPECT_EQ(session_->in_hand(), 0U);
  }
  make();
  greet();
  say(http2_frame(Http2Type::headers, 0, 1, hpack(grpc_fields("/a/Unary"))));
  EXPECT_LE(until_over(http2_frame(Http2Type::continuation, 0, 1, hpack({{"x", "y"}}))), 10);
}

/// Who does not read what he makes us send.
TEST_F(GrpcSessionTest, WhatWaitsToBeSentHasABound) {
  for (const std::string& bytes :
       {http2_frame(Http2Type::ping, 0, 0, "12345678"), http2_frame(Http2Type::settings, 0, 0)}) {
    make();
    greet();
    std::size_t most = 0;
    for (int i = 0; i < 100'000 && !session_->is_over(); ++i) {
      say(bytes);
      most = std::max(most, session_->unsent().size());
      clock_.advance(1ms);  // not too many a second
    }
    EXPECT_TRUE(session_->is_over());
    EXPECT_LT(most, 200'000U);
  }
  // No window for the body, and asked again and again.
  make();
  say(std::string(kHttp2Preface) +
      http2_frame(Http2Type::settings, 0, 0, big_endian(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2) + big_endian(0, 4)) +
      ask_for(30));
  const auto answer_up_to = [&](std::size_t end) {
    for (std::size_t i = 0; i < end; ++i) {
      session_->answer({notes_.requests[i].call, GrpcCode::ok, "", std::string(40'000, 'x')});
    }
  };
  answer_up_to(25);
  listen();
  EXPECT_EQ(replies_[1].data, "");
  EXPECT_FALSE(session_->is_over());
  answer_up_to(30);
  EXPECT_TRUE(session_->is_over());
}

TEST_F(GrpcSessionTest, WhoIsBusyIsNoFlood) {
  greet();
  // Much at once, each with some frames besides, in no time at all.
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    say(grpc_headers(2 * i + 1, "/a/Unary") + http2_data(2 * i + 1, grpc_framed("x")) +
        http2_frame(Http2Type::ping, 0, 0, "12345678") +
        http2_frame(Http2Type::window_update, 0, 0, big_endian(10, 4)));
    session_->answer({notes_.last, GrpcCode::ok, "", "y"});
    session_->sent(session_->unsent().size());
    ASSERT_FALSE(session_->is_over()) << i;
  }
  // A watch of many days.
  for (int i = 0; i < 20'000; ++i) {
    say(http2_frame(Http2Type::ping, 0, 0, "12345678"));
    session_->sent(session_->unsent().size());
    clock_.advance(1s);
    ASSERT_FALSE(session_->is_over()) << i;
  }
}

}  // namespace
}  // namespace croft::os
