#include "agent/metrics/web_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace croft::edge {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

TEST(MetricsAddress, IsReadAndPrinted) {
  for (const char* text : {"127.0.0.1:9600", "0.0.0.0:1", "[::1]:65535", "[::]:9600", "[fd00::1]:80"}) {
    const auto address = MetricsAddress::parse(text);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_EQ(address->text(), text);
  }
  EXPECT_EQ(MetricsAddress::parse("[FD00:0::1]:080")->text(), "[fd00::1]:80");
  EXPECT_EQ(MetricsAddress::parse(":9600")->text(), "[::]:9600");
}

TEST(MetricsAddress, WhatIsWrongIsNamedWithItsRemedy) {
  const auto said = [](std::string_view text) {
    const auto address = MetricsAddress::parse(text);
    return address ? "read as " + address->text()
                   : std::string(name_of(address.error().code)) + ": " + address.error().message;
  };
  for (const char* text :
       {"", ":", "9600", "localhost:9600", "127.0.0.1", "::1:9600", "[::1]", "[::1]9600", "[127.0.0.1]:9600", "[]:9600",
        "[:9600", "[", "127.0.0.1.:9600", "[fe80::1%eth0]:9600", " 127.0.0.1:9600", "http://127.0.0.1:9600"}) {
    EXPECT_THAT(said(text), HasSubstr("must be an address and a port, as in 127.0.0.1:9600, [::1]:9600 or :9600"))
        << text;
  }
  for (const char* text : {"127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+80", "127.0.0.1:80s",
                           "127.0.0.1:80,0.0.0.0", "[::1]: 80"}) {
    EXPECT_THAT(said(text), HasSubstr("must end with a port, 1 to 65535")) << text;
  }
  EXPECT_EQ(said("127.0.0.1:0"),
            "invalid_argument: metrics address \"127.0.0.1:0\" has port 0, which is a port nobody knows: name one, or "
            "leave the flag out for no metrics");
  EXPECT_LT(said(std::string(100'000, 'x')).size(), 300U);
}

/// A socket that listens at a port of 127.0.0.1 that was free.
class Listening {
 public:
  Listening() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    auto* raw = reinterpret_cast<sockaddr*>(&address_);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(::bind(socket_, raw, size), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, raw, &size), 0);
  }
  ~Listening() { ::close(socket_); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  [[nodiscard]] MetricsAddress address() const {
    return {*net::parse_address("127.0.0.1"), ::ntohs(address_.sin_port)};
  }

 private:
  const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{};
};

TEST(MetricsServer, APortInUseIsAnError) {
  const Listening other;
  const auto server = serve_metrics([] { return std::string(); }, other.address());
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::already_exists);
  EXPECT_THAT(server.error().message, HasSubstr("metrics can't be served at " + other.address().text()));
  EXPECT_THAT(server.error().message, HasSubstr("Address already in use"));
}

/// A connection of a client.
class Client {
 public:
  explicit Client(std::uint16_t port, bool by_v6 = false)
      : socket_(::socket(by_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{10, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = ::htons(port);
    v4.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = ::htons(port);
    v6.sin6_addr = in6addr_loopback;
    const auto* raw = by_v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
    is_connected_ = ::connect(socket_, raw, by_v6 ? sizeof(v6) : sizeof(v4)) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] bool is_connected() const { return is_connected_; }
  void send(std::string_view text) const { static_cast<void>(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL)); }
  /// Until the server has nothing more to say.
  [[nodiscard]] std::string answer() const {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t size = 1; (size = ::recv(socket_, part.data(), part.size(), 0)) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(size));
    }
    return text;
  }

 private:
  const int socket_;
  bool is_connected_ = false;
};

/// A server at a port that was free a moment ago.
struct AtPort {
  explicit AtPort(const WebServer::Handler& handler) {
    take(WebServer::start(handler, {*net::parse_address("127.0.0.1"), port}, "desk"));
  }
  AtPort() = default;
  void take(Result<std::unique_ptr<WebServer>> started) {
    EXPECT_TRUE(started) << started.error().message;
    if (started) server = *std::move(started);
  }
  [[nodiscard]] std::string ask(std::string_view request, bool by_v6 = false) const {
    const Client client(port, by_v6);
    EXPECT_TRUE(client.is_connected());
    client.send(request);
    return client.answer();
  }

  std::uint16_t port = Listening().address().port;
  std::unique_ptr<WebServer> server;
};

struct Served : AtPort {
  explicit Served(const char* host = "127.0.0.1") {
    take(serve_metrics([this] { return text; }, {*net::parse_address(host), port}, &health));
  }
  ~Served() { server.reset(); }  // before what it uses
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  ManualClock clock;
  Health health{clock};
  std::string text = "croft_pool_capacity 1\n";
};

constexpr const char* kScrape = "GET /metrics HTTP/1.1\r\nHost: elsewhere\r\n\r\n";

bool has_v6() { return Client(1, true).is_connected() || errno == ECONNREFUSED; }

TEST(MetricsServer, ServesMetricsAndHealth) {
  Served served;
  const std::string scraped = served.ask(kScrape);
  EXPECT_THAT(scraped, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(scraped, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(scraped, EndsWith("\r\n\r\ncroft_pool_capacity 1\n"));
  EXPECT_THAT(served.ask("GET /metrics?x=y HTTP/1.0\r\n\r\n"), EndsWith("croft_pool_capacity 1\n"));
  EXPECT_THAT(served.ask("GET /livez HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(served.ask("GET /readyz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  served.health.set("collector", "");
  EXPECT_THAT(served.ask("GET /readyz HTTP/1.1\r\n\r\n"), EndsWith("readyz check passed\n"));
  const std::string head = served.ask("HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 22\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST(MetricsServer, ServesBothFamiliesAtAllAddresses) {
  if (!has_v6()) GTEST_SKIP() << "this machine has no IPv6";
  const Served both("::"), v6("::1"), v4("0.0.0.0");
  EXPECT_THAT(both.ask(kScrape), HasSubstr("200 OK"));
  EXPECT_THAT(both.ask(kScrape, true), HasSubstr("200 OK"));
  EXPECT_THAT(v6.ask(kScrape, true), HasSubstr("200 OK"));
  EXPECT_FALSE(Client(v6.port).is_connected());
  EXPECT_THAT(v4.ask(kScrape), HasSubstr("200 OK"));
  EXPECT_FALSE(Client(v4.port, true).is_connected());
}

TEST(MetricsServer, TakesNothingElse) {
  const Served served;
  for (const char* target : {"/", "/metrics/x", "/readyz/more", "/../etc/passwd", "*", "http://elsewhere/metrics"}) {
    EXPECT_THAT(served.ask(std::string("GET ") + target + " HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 ")) << target;
  }
  const std::string posted = served.ask("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(posted, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(posted, HasSubstr("Allow: GET, HEAD\r\n"));
  for (const char* broken :
       {"hello\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics HTTP/9.9\r\n\r\n", "\x16\x03\x01\r\n\r\n"}) {
    EXPECT_THAT(served.ask(broken), StartsWith("HTTP/1.1 400 ")) << broken;
  }
  const std::string large = "GET /metrics HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n";
  EXPECT_THAT(served.ask(large), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(served.ask(kScrape), HasSubstr("200 OK"));
}

TEST(WebServer, AHandlerSeesTheRequestAndSaysTheAnswer) {
  const AtPort served([](const WebRequest& request) -> WebAnswer {
    const std::string seen = std::string(request.path) + "|" + std::string(request.query) + "|" +
                             std::string(request.host) + "|" + std::string(request.authorization);
    return {403, seen, "application/json", {{"X-More", "yes"}}};
  });
  const std::string said =
      served.ask("GET /a/b?c=d&e HTTP/1.1\r\nHost: desk.example:1\r\nAuthorization: Bearer t\r\n\r\n");
  EXPECT_THAT(said, StartsWith("HTTP/1.1 403 Forbidden\r\n"));
  EXPECT_THAT(said, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(said, HasSubstr("X-More: yes\r\n"));
  EXPECT_THAT(said, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(said, HasSubstr("Cache-Control: no-store\r\n"));
  EXPECT_THAT(said, EndsWith("\r\n\r\n/a/b|c=d&e|desk.example:1|Bearer t"));
  EXPECT_THAT(served.ask("HEAD /?x HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\n")) << "no body";
}

TEST(WebServer, AHandlerThatThrowsIsOneFailedAnswer) {
  const AtPort served([](const WebRequest& request) -> WebAnswer {
    if (request.path.empty()) throw std::bad_alloc();
    return {200, "fine"};
  });
  EXPECT_THAT(served.ask("GET ? HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(served.ask("GET / HTTP/1.1\r\n\r\n"), EndsWith("fine"));
}

TEST(MetricsServer, WhoSaysNothingKeepsNobodyFromAnAnswer) {
  const Served served;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 150; ++i) {
    idle.push_back(std::make_unique<Client>(served.port));
    if (i % 2 == 0) idle.back()->send("GET /metrics HTT");
  }
  EXPECT_THAT(served.ask(kScrape), HasSubstr("200 OK"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
  EXPECT_EQ(idle.front()->answer(), "");  // its time is over
}

TEST(MetricsServer, EndsBesideOpenConnections) {
  auto served = std::make_unique<Served>();
  const Client idle(served->port);
  EXPECT_THAT(served->ask(kScrape), HasSubstr("200 OK"));
  served.reset();
  EXPECT_EQ(idle.answer(), "");
}

TEST(Health, WorkThatDoesNotEndIsStuck) {
  ManualClock clock;
  Health health(clock, 60s);
  EXPECT_TRUE(health.alive().good);
  EXPECT_EQ(health.alive().text, "ok\n");
  health.begin_work();
  clock.advance(60s);
  EXPECT_TRUE(health.alive().good);
  clock.advance(1s);
  EXPECT_FALSE(health.alive().good);
  EXPECT_THAT(health.alive().text, HasSubstr("61 s"));
  health.set("collector", "");
  EXPECT_FALSE(health.ready().good) << "who is stuck is not ready";
  health.end_work();
  EXPECT_TRUE(health.alive().good);
  clock.advance(24h);
  EXPECT_TRUE(health.alive().good) << "waiting has no limit";
}

TEST(Health, ReadyIsWhoCouldDoAllOfIt) {
  ManualClock clock;
  Health health(clock);
  EXPECT_FALSE(health.ready().good);
  EXPECT_EQ(health.ready().text, "[-]work failed: nothing was done yet\nreadyz check failed\n");
  health.set("collector", "");
  EXPECT_TRUE(health.ready().good);
  health.set("node ranges", "the store\nis \x1b[31maway");
  EXPECT_FALSE(health.ready().good);
  EXPECT_THAT(health.ready().text, HasSubstr("[+]collector ok\n[-]node ranges failed: the store"));
  EXPECT_THAT(health.ready().text, testing::Not(HasSubstr("\x1b")));
  health.set("node ranges", "");
  EXPECT_EQ(health.ready().text, "[+]collector ok\n[+]node ranges ok\nreadyz check passed\n");
  health.forget();
  EXPECT_FALSE(health.ready().good);
}

TEST(Watchdog, TellsOnceOfWorkThatIsStuckAndNothingOfWorkThatEnds) {
  ManualClock clock;
  Health health(clock, 60s);
  std::promise<std::string> told;
  std::atomic<int> count{0};
  const Watchdog watchdog(health, 1ms, [&](const std::string& text) {
    if (count++ == 0) told.set_value(text);
  });
  health.begin_work();
  health.end_work();
  clock.advance(1h);
  EXPECT_EQ(count, 0);
  health.begin_work();
  clock.advance(61s);
  EXPECT_THAT(told.get_future().get(), HasSubstr("61 s"));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(count, 1);
}

TEST(Watchdog, EndsThoughNothingWasStuck) {
  const ManualClock clock;
  const Health health(clock);
  const Watchdog watchdog(health, 1h, [](const std::string&) { FAIL(); });
}

}  // namespace
}  // namespace croft::edge
