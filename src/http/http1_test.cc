#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "http/http1_client.h"
#include "http/http1_parser.h"
#include "http/http1_server.h"
#include "os/clock.h"

namespace croft::os {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(HttpUrl, ReadsWhatItShould) {
  const HttpUrl plain = HttpUrl::parse("http://API.service.ucloud.cn/").value();
  EXPECT_EQ(plain, (HttpUrl{false, "api.service.ucloud.cn", false, 80, ""}));
  EXPECT_EQ(plain.text(), "http://api.service.ucloud.cn");
  const HttpUrl deep = HttpUrl::parse("https://[fd00::1]:8443/node-a/").value();
  EXPECT_EQ(deep, (HttpUrl{true, "fd00::1", true, 8443, "/node-a"}));
  EXPECT_EQ(deep.authority(), "[fd00::1]:8443");
  EXPECT_EQ(HttpUrl::parse(deep.text()).value(), deep);
  EXPECT_TRUE(HttpUrl::parse("http://10.0.0.1:8080").value().is_numeric);
  for (const char* wrong : {"",
                            "ftp://a",
                            "http://",
                            "http://:80",
                            "http://a:0",
                            "http://a:65536",
                            "http://a:8x",
                            "http://a?b",
                            "http://a#b",
                            "http://u:p@a",
                            "http://10.0.0.256",
                            "http://[fd00::1",
                            "http://[10.0.0.1]",
                            "http://fd00::1",
                            "http://a b",
                            "http://a\r\nX:",
                            "http://a/\x7f",
                            "http://[fd00::1]x",
                            "http://-a",
                            "http://a_b"}) {
    EXPECT_FALSE(HttpUrl::parse(wrong)) << wrong;
  }
  EXPECT_EQ(HttpUrl::parse("http://me:secret@a").error().message.find("secret"), std::string::npos);
}

Result<HttpResponse> read_in_pieces(std::string_view text, std::size_t piece, const Http1Limits& limits = {}) {
  HttpResponse response;
  const auto parser = make_response_parser(response, limits);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    TRY(const bool done, parser->feed(text.substr(at, piece)));
    if (done) return response;
  }
  TRY_VOID(parser->end());
  return response;
}

TEST(Http1Parser, ReadsAnswersHoweverTheyCome) {
  for (const std::size_t piece : {1, 2, 7, 1000}) {
    const auto sized = read_in_pieces("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello", piece).value();
    EXPECT_EQ(sized.body, "hello");
    ASSERT_EQ(sized.headers.size(), 2U);
    EXPECT_EQ(sized.headers[1].second, "b");
    const std::string chunked =
        "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
    EXPECT_EQ(read_in_pieces(chunked, piece).value().body, "abcde");
    EXPECT_EQ(read_in_pieces(chunked, piece).value().status, 503);
    EXPECT_EQ(read_in_pieces("HTTP/1.0 200 OK\r\n\r\nto the end", piece).value().body, "to the end");
    EXPECT_EQ(read_in_pieces("HTTP/1.1 204 None\r\n\r\n", piece).value().body, "");
  }
}

TEST(Http1Parser, RefusesWhatIsNone) {
  for (const char* wrong :
       {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n"}) {
    EXPECT_FALSE(read_in_pieces(wrong, 3)) << wrong;
  }
}

TEST(Http1Parser, HasLimits) {
  const Http1Limits limits{256, 10};
  EXPECT_FALSE(read_in_pieces("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world", 100, limits));
  EXPECT_FALSE(read_in_pieces("HTTP/1.1 200 OK\r\n\r\nhello world", 1, limits));
  EXPECT_FALSE(read_in_pieces("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nabcdefgh\r\n8\r\nabcdefgh\r\n",
                              9, limits));
  EXPECT_FALSE(read_in_pieces("HTTP/1.1 200 OK\r\nX: " + std::string(300, 'x'), 50, limits));
  EXPECT_TRUE(read_in_pieces("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhelloworld", 100, limits));
}

class Http1 : public testing::Test {
 protected:
  std::unique_ptr<Http1Server> serve(Http1Server::Handler handler, const Http1ServerOptions& options = {}) {
    return Http1Server::listen("127.0.0.1:0", std::move(handler), clock, options).value();
  }
  Http1Client client(const Http1Server& server, const std::string& path = {}, std::size_t body_max = 1 << 20) {
    Http1Options options;
    options.body_bytes_max = body_max;
    return {HttpUrl::parse("http://" + server.where() + path).value(), options, clock};
  }
  Deadline in(std::chrono::nanoseconds span) { return Deadline::after(clock.now(), span); }

  SystemClock clock;
};

TEST_F(Http1, AsksAndIsAnswered) {
  HttpRequest seen;
  const auto server = serve([&](const HttpRequest& request, Http1Server::Exchange&) -> std::optional<HttpResponse> {
    seen = request;
    return HttpResponse{201, {{"X-Back", "yes"}}, std::string(100'000, 'b')};
  });
  const HttpRequest request{"POST", "/?Action=A", {{"X-Test", "1 2"}}, std::string(50'000, 'a')};
  auto asked = client(*server, "/node-a");
  const auto response = asked.call(request, in(seconds(10)));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body.size(), 100'000U);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/node-a/?Action=A");
  EXPECT_EQ(seen.body, request.body);
}

TEST_F(Http1, TellsWhetherAnythingWasSent) {
  const auto server = serve([&](const HttpRequest& request, Http1Server::Exchange& exchange) {
    if (request.target == "/hang") exchange.wait(std::chrono::hours(1), true);
    return std::optional<HttpResponse>();
  });
  auto asked = client(*server);
  EXPECT_EQ(asked.call({"GET", "/lost", {}, {}}, in(seconds(10))).error().code, ErrorCode::unknown_outcome);
  EXPECT_EQ(asked.call({"GET", "/hang", {}, {}}, in(milliseconds(80))).error().code, ErrorCode::unknown_outcome);
  EXPECT_EQ(asked.call({"GET", "/", {}, {}}, in(milliseconds(0))).error().code, ErrorCode::deadline_exceeded);
  for (const HttpRequest& wrong :
       {HttpRequest{"GE T", "/", {}, {}}, HttpRequest{"GET", "/a b", {}, {}}, HttpRequest{"GET", "", {}, {}},
        HttpRequest{"GET", "/", {{"A", "b\r\nC: d"}}, {}}, HttpRequest{"GET", "/", {{"A:", "b"}}, {}}}) {
    EXPECT_EQ(asked.call(wrong, in(seconds(1))).error().code, ErrorCode::invalid_argument);
  }
  Http1Client nobody(HttpUrl::parse("http://127.0.0.1:1").value(), {}, clock);
  EXPECT_EQ(nobody.call({}, in(seconds(5))).error().code, ErrorCode::unavailable);
}

TEST_F(Http1, TakesNoMoreThanItsLimit) {
  const auto server = serve([&](const HttpRequest&, Http1Server::Exchange&) {
    return std::optional(HttpResponse{200, {}, std::string(2000, 'x')});
  });
  EXPECT_EQ(client(*server, {}, 1000).call({}, in(seconds(10))).error().code, ErrorCode::unknown_outcome);
  EXPECT_EQ(client(*server, {}, 2000).call({}, in(seconds(10))).value().body.size(), 2000U);
}

TEST_F(Http1, LooksUpNamesAndRemembersThem) {
  const auto server = serve([&](const HttpRequest&, Http1Server::Exchange&) {
    return std::optional(HttpResponse{200, {}, "ok"});
  });
  const std::string port = server->where().substr(server->where().rfind(':'));
  const HttpUrl url = HttpUrl::parse("http://api.example" + port).value();
  bool is_away = false;
  Http1Options options;
  options.look_up = [&](const std::string& name, Deadline) -> Result<std::vector<std::string>> {
    EXPECT_EQ(name, "api.example");
    if (is_away) return fail(ErrorCode::unavailable, "no resolver");
    return std::vector<std::string>{"127.0.0.2", "127.0.0.1"};  // nobody is at the first
  };
  Http1Client asked(url, options, clock);
  EXPECT_TRUE(asked.call({}, in(seconds(10))));
  is_away = true;
  EXPECT_TRUE(asked.call({}, in(seconds(10))));
  EXPECT_EQ(Http1Client(url, options, clock).call({}, in(seconds(1))).error().code, ErrorCode::unavailable);
  EXPECT_EQ(Http1Client(url, {}, clock).call({}, in(seconds(1))).error().code, ErrorCode::invalid_argument);
}

TEST_F(Http1, ServerEndsAtOnceAndHasBounds) {
  std::atomic<int> stopped = 0;
  std::atomic<int> inside = 0;
  Http1ServerOptions options;
  options.connections_max = 4;
  auto server = serve(
      [&](const HttpRequest&, Http1Server::Exchange& exchange) {
        ++inside;
        if (exchange.wait(std::chrono::hours(1), false) == Http1Server::Waited::stopping) ++stopped;
        return std::optional<HttpResponse>();
      },
      options);
  std::vector<std::thread> threads;
  auto asked = client(*server);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_FALSE(asked.call({}, in(seconds(60)))); });
  }
  while (inside < 4) std::this_thread::sleep_for(milliseconds(5));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(inside, 4);
  const auto before = clock.now().since_boot;
  server.reset();
  EXPECT_LT(clock.now().since_boot - before, seconds(5));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(stopped, 4);
}

TEST_F(Http1, ServerNoticesClientsThatGo) {
  std::atomic<bool> gone = false;
  const auto server = serve([&](const HttpRequest&, Http1Server::Exchange& exchange) {
    gone = exchange.wait(std::chrono::hours(1), true) == Http1Server::Waited::client_gone;
    return std::optional<HttpResponse>();
  });
  EXPECT_FALSE(client(*server).call({}, in(milliseconds(50))));
  for (int i = 0; i < 2000 && !gone; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_TRUE(gone);
}

TEST_F(Http1, ServerListensOnNumbersOnly) {
  const auto handler = [](const HttpRequest&, Http1Server::Exchange&) { return std::optional<HttpResponse>(); };
  for (const char* wrong :
       {"", "localhost:0", "127.0.0.1", "::1:0", "[127.0.0.1]:0", "127.0.0.1:x", "[::1]", "127.0.0.1:65536"}) {
    EXPECT_EQ(Http1Server::listen(wrong, handler, clock).error().code, ErrorCode::invalid_argument) << wrong;
  }
  const auto first = serve(handler);
  EXPECT_EQ(Http1Server::listen(first->where(), handler, clock).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace croft::os
