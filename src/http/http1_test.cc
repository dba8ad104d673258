#include <future>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "http/http1_client.h"
#include "http/http1_server_fixture.h"
#include "os/clock.h"

namespace croft::os {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Http1 : public testing::Test {
 protected:
  Http1Client client(const Http1ServerFixture& server, const std::string& path = {}) {
    return {wire::Url::parse("http://" + server.where() + path).value(), {}, clock};
  }
  /// What the client makes of an answer of these bytes.
  Result<HttpResponse> read(const std::string& bytes, std::size_t header_max = 32 << 10,
                            std::size_t body_max = 1 << 20) {
    const Http1ServerFixture server([](const HttpRequest&) { return HttpResponse(); }, bytes);
    Http1Options options;
    options.header_bytes_max = header_max;
    options.body_bytes_max = body_max;
    return Http1Client(wire::Url::parse("http://" + server.where()).value(), options, clock).call({}, in(seconds(10)));
  }
  Deadline in(std::chrono::nanoseconds span) { return Deadline::after(clock.now(), span); }

  SystemClock clock;
};

TEST_F(Http1, ReadsAnswersOfAllKinds) {
  const auto sized = read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello").value();
  EXPECT_EQ(sized.body, "hello");
  ASSERT_EQ(sized.headers.size(), 2U);
  EXPECT_EQ(sized.headers[1].second, "b");
  const std::string chunked =
      "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
  EXPECT_EQ(read(chunked).value().body, "abcde");
  EXPECT_EQ(read(chunked).value().status, 503);
  EXPECT_EQ(read("HTTP/1.0 200 OK\r\n\r\nto the end").value().body, "to the end");
  EXPECT_EQ(read("HTTP/1.1 204 None\r\n\r\n").value().body, "");
}

TEST_F(Http1, RefusesWhatIsNoAnswer) {
  for (const char* wrong : {"HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                            "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                            "SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    EXPECT_EQ(read(wrong).error().code, ErrorCode::unknown_outcome) << wrong;
  }
}

TEST_F(Http1, HasLimits) {
  EXPECT_FALSE(read("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world", 256, 10));
  EXPECT_FALSE(read("HTTP/1.1 200 OK\r\n\r\nhello world", 256, 10));
  EXPECT_FALSE(
      read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nabcdefgh\r\n8\r\nabcdefgh\r\n", 256, 10));
  EXPECT_FALSE(read("HTTP/1.1 200 OK\r\nX: " + std::string(300, 'x'), 256, 10));
  EXPECT_TRUE(read("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhelloworld", 256, 10));
}

TEST_F(Http1, AsksAndIsAnswered) {
  HttpRequest seen;
  const Http1ServerFixture server([&](const HttpRequest& request) {
    seen = request;
    return HttpResponse{201, {{"X-Back", "yes"}}, std::string(100'000, 'b')};
  });
  const HttpRequest request{"POST", "/?Action=A", {{"X-Test", "1 2"}}, std::string(50'000, 'a')};
  const auto response = client(server, "/node-a").call(request, in(seconds(10)));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body.size(), 100'000U);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/node-a/?Action=A");
  EXPECT_EQ(seen.body, request.body);
}

TEST_F(Http1, TellsWhetherAnythingWasSent) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  const Http1ServerFixture server([&](const HttpRequest& request) {
    if (request.target == "/hang") ended.wait();
    return std::optional<HttpResponse>();
  });
  auto asked = client(server);
  EXPECT_EQ(asked.call({"GET", "/lost", {}, {}}, in(seconds(10))).error().code, ErrorCode::unknown_outcome);
  EXPECT_EQ(asked.call({"GET", "/hang", {}, {}}, in(milliseconds(80))).error().code, ErrorCode::unknown_outcome);
  end.set_value();
  EXPECT_EQ(asked.call({"GET", "/", {}, {}}, in(milliseconds(0))).error().code, ErrorCode::deadline_exceeded);
  for (const HttpRequest& wrong :
       {HttpRequest{"GE T", "/", {}, {}}, HttpRequest{"GET", "/a b", {}, {}}, HttpRequest{"GET", "", {}, {}},
        HttpRequest{"GET", "/", {{"A", "b\r\nC: d"}}, {}}, HttpRequest{"GET", "/", {{"A:", "b"}}, {}}}) {
    EXPECT_EQ(asked.call(wrong, in(seconds(1))).error().code, ErrorCode::invalid_argument);
  }
  Http1Client nobody(wire::Url::parse("http://127.0.0.1:1").value(), {}, clock);
  EXPECT_EQ(nobody.call({}, in(seconds(5))).error().code, ErrorCode::unavailable);
}

TEST_F(Http1, LooksUpNamesAndRemembersThem) {
  const Http1ServerFixture server([](const HttpRequest&) { return HttpResponse{200, {}, "ok"}; });
  const std::string port = server.where().substr(server.where().rfind(':'));
  const wire::Url url = wire::Url::parse("http://api.example" + port).value();
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

}  // namespace
}  // namespace croft::os
