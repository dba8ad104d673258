#include "store/kube/client.h"

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "http/http2_server_fixture.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/scratch_directory.h"
#include "store/kube/format/api.h"

namespace croft::store::kube {
namespace {

using namespace std::chrono_literals;
using Method = Request::Method;
using Outcome = Answer::Outcome;
using Server = os::Http2TestServer;
using Instead = Server::Response::Instead;

/// Passes bytes as they are: the tests look at what goes to a server of https, not at TLS.
class NoTls final : public os::TransportSecurity {
 public:
  [[nodiscard]] Result<std::unique_ptr<os::Transport>> secure(std::unique_ptr<os::Transport> plain, const os::Endpoint&,
                                                              const Clock&, Deadline) const override {
    return plain;
  }
};

/// The real clock, and what tests add to it.
class ShiftedClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override {
    Instant now = clock_.now();
    now.since_boot += std::chrono::nanoseconds(shift_);
    now.wall += std::chrono::nanoseconds(shift_);
    return now;
  }
  void advance(std::chrono::nanoseconds span) { shift_ += span.count(); }

 private:
  os::SystemClock clock_;
  std::atomic<std::int64_t> shift_{0};
};

Server::Response json(int status, std::string body) {
  return {status, {{"content-type", "application/json"}}, std::move(body)};
}

Server::Response refusal(int status, const std::string& reason,
                         std::vector<std::pair<std::string, std::string>> more = {}) {
  auto response = json(status, R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":")" +
                                   reason + R"(","code":)" + std::to_string(status) + "}");
  for (auto& header : more) response.headers.push_back(std::move(header));
  return response;
}

Server::Response instead(Instead what) {
  Server::Response response;
  response.instead = what;
  return response;
}

class KubeClientTest : public testing::Test {
 protected:
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }

  /// Options for servers of "https" without TLS.
  [[nodiscard]] ClientOptions options_for(const std::vector<std::uint16_t>& ports) {
    ClientOptions options;
    for (const std::uint16_t port : ports) options.access.servers.push_back({true, "127.0.0.1", true, port, ""});
    options.access.ca.data = "CA";
    options.make_security = [this](os::TlsFiles files) {
      tls_.push_back(std::move(files));
      return std::make_shared<NoTls>();
    };
    options.sleep = [this](std::chrono::nanoseconds span) {
      slept_ += span;
      clock_.advance(span);
    };
    return options;
  }
  [[nodiscard]] std::unique_ptr<Api> client_of(ClientOptions options) {
    auto client = make_client(std::move(options), clock_, random_);
    EXPECT_TRUE(client) << client.error().message;
    return *std::move(client);
  }
  [[nodiscard]] std::unique_ptr<Api> client_of(const Server& server) { return client_of(options_for({server.port()})); }

  static Request get(std::string path = "/api/v1/pods") { return {Method::get, std::move(path), {}}; }
  static Request put(std::string body = "{}") { return {Method::put, "/api/v1/pods/a", std::move(body)}; }

  ShiftedClock clock_;
  SeededRandom random_{1};
  std::vector<os::TlsFiles> tls_;
  std::chrono::nanoseconds slept_{0};
};

TEST_F(KubeClientTest, EachMethodAsItIsSent) {
  Server server([](const Server::Request& request) { return json(200, request.body); });
  auto options = options_for({server.port()});
  options.access.servers.front().path = "/k8s/c";
  options.access.token = "secret";
  const auto client = client_of(std::move(options));
  EXPECT_EQ(client->call(get("/api/v1/pods?limit=5"), in(10s)).outcome, Outcome::done);
  const Answer posted = client->call({Method::post, "/p", "{\"a\":1}"}, in(10s));
  EXPECT_EQ(posted.outcome, Outcome::done);
  EXPECT_EQ(posted.http_status, 200);
  EXPECT_EQ(posted.body, "{\"a\":1}");
  EXPECT_EQ(client->call(put("{}"), in(10s)).body, "{}");
  const std::string body = wire::kube::encode_delete_options({"u", "7"});
  EXPECT_EQ(client->call({Method::delete_object, "/d", body}, in(10s)).body, body);

  const auto seen = server.requests();
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0].path(), "/k8s/c/api/v1/pods?limit=5");
  EXPECT_EQ(seen[0].header(":method"), "GET");
  EXPECT_EQ(seen[0].header(":scheme"), "https");
  EXPECT_EQ(seen[0].header(":authority"), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(seen[0].header("authorization"), "Bearer secret");
  EXPECT_EQ(seen[0].header("user-agent"), "croft/" CROFT_VERSION);
  EXPECT_EQ(seen[0].header("accept"), "application/json");
  EXPECT_EQ(seen[0].header("content-type"), "");
  EXPECT_EQ(seen[1].header(":method"), "POST");
  EXPECT_EQ(seen[1].header("content-type"), "application/json");
  EXPECT_EQ(seen[2].header(":method"), "PUT");
  EXPECT_EQ(seen[3].header(":method"), "DELETE");
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(KubeClientTest, ARefusalHasItsStatusAndItsCode) {
  std::atomic<int> status{404};
  std::string reason = "NotFound";
  Server server([&](const Server::Request&) { return refusal(status, reason); });
  const auto client = client_of(server);
  const auto code = [&](int http, const std::string& why) {
    reason = why;
    status = http;
    const Answer answer = client->call(put(), in(10s));
    EXPECT_EQ(answer.outcome, Outcome::refused) << http;
    EXPECT_EQ(answer.http_status, http);
    EXPECT_EQ(answer.status.code, http);
    EXPECT_EQ(answer.status.reason, why);
    EXPECT_NE(answer.error.message.find("PUT /api/v1/pods/a: no (" + why + ", HTTP "), std::string::npos)
        << answer.error.message;
    return answer.error.code;
  };
  EXPECT_EQ(code(400, "BadRequest"), ErrorCode::refused_by_configuration);
  EXPECT_EQ(code(401, "Unauthorized"), ErrorCode::permission_denied);
  EXPECT_EQ(code(403, "Forbidden"), ErrorCode::permission_denied);
  EXPECT_EQ(code(404, "NotFound"), ErrorCode::not_found);
  EXPECT_EQ(code(409, "AlreadyExists"), ErrorCode::already_exists);
  EXPECT_EQ(code(409, "Conflict"), ErrorCode::conflict);
  EXPECT_EQ(code(410, "Expired"), ErrorCode::too_old);
  EXPECT_EQ(code(413, "RequestEntityTooLarge"), ErrorCode::storage_full);
  EXPECT_EQ(code(422, "Invalid"), ErrorCode::refused_by_configuration);
  EXPECT_EQ(server.requests().size(), 9U);  // none was asked twice
}

TEST_F(KubeClientTest, AWriteThatMayHaveBeenProcessedIsUnknownAndNotRepeated) {
  std::atomic<int> status{0};
  Server server([&](const Server::Request&) { return status == 0 ? instead(Instead::cut) : refusal(status, "X"); });
  const auto client = client_of(server);
  std::size_t expected = 0;
  for (const int http : {0, 500, 502, 503, 504, 302}) {
    status = http;
    const Answer answer = client->call({Method::post, "/p", "{}"}, in(10s));
    EXPECT_EQ(answer.outcome, Outcome::unknown) << http;
    EXPECT_EQ(answer.error.code, ErrorCode::unknown_outcome);
    EXPECT_EQ(answer.http_status, http);
    EXPECT_NE(answer.error.message.find("may or may not"), std::string::npos) << answer.error.message;
    EXPECT_EQ(server.requests().size(), ++expected) << http;
  }
}

TEST_F(KubeClientTest, ASilentServerMakesAWriteUnknownAtTheDeadline) {
  Server server([](const Server::Request&) { return instead(Instead::silence); });
  auto options = options_for({server.port()});
  options.request_timeout = 100ms;
  const auto client = client_of(std::move(options));
  const Answer answer = client->call(put(), in(10s));
  EXPECT_EQ(answer.outcome, Outcome::unknown);
  EXPECT_EQ(server.requests().size(), 1U);
  const Answer read = client->call(get(), in(300ms));
  EXPECT_EQ(read.outcome, Outcome::not_done);
  EXPECT_EQ(read.error.code, ErrorCode::deadline_exceeded) << read.error.message;
}

TEST_F(KubeClientTest, AReadIsAskedAgain) {
  std::atomic<int> count{0};
  std::atomic<int> status{0};
  Server server([&](const Server::Request&) {
    if (count++ == 0) return status == 0 ? instead(Instead::cut) : refusal(status, "X");
    return json(200, "yes");
  });
  const auto client = client_of(server);
  for (const int http : {0, 500, 502, 503, 504}) {
    status = http;
    count = 0;
    const Answer answer = client->call(get(), in(10s));
    EXPECT_EQ(answer.outcome, Outcome::done) << http << answer.error.message;
    EXPECT_EQ(answer.body, "yes");
    EXPECT_EQ(count, 2);
  }
  // Not for ever.
  Server broken([](const Server::Request&) { return refusal(500, "InternalError"); });
  const Answer answer = client_of(broken)->call(get(), in(10s));
  EXPECT_EQ(answer.outcome, Outcome::refused);
  EXPECT_EQ(answer.status.reason, "InternalError");
  EXPECT_EQ(answer.error.code, ErrorCode::unavailable);
  EXPECT_EQ(broken.requests().size(), 3U);
}

TEST_F(KubeClientTest, WhatSurelyNobodyProcessedIsSentAgainAlsoAWrite) {
  for (const Instead how : {Instead::refused_stream, Instead::goaway_below}) {
    std::atomic<int> count{0};
    Server server([&](const Server::Request&) { return count++ == 0 ? instead(how) : json(201, "made"); });
    const Answer answer = client_of(server)->call({Method::post, "/p", "{}"}, in(10s));
    EXPECT_EQ(answer.outcome, Outcome::done) << answer.error.message;
    EXPECT_EQ(answer.http_status, 201);
    EXPECT_EQ(count, 2);
  }
}

TEST_F(KubeClientTest, AfterGoawayTheNextRequestGoesToTheNextServer) {
  const auto handler = [](const Server::Request&) {
    auto response = json(200, "ok");
    response.says_goodbye = true;
    return response;
  };
  Server a(handler);
  Server b(handler);
  const auto client = client_of(options_for({a.port(), b.port()}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client->call(put(), in(10s)).outcome, Outcome::done);
  EXPECT_EQ(a.requests().size(), 2U);
  EXPECT_EQ(b.requests().size(), 2U);
}

TEST_F(KubeClientTest, ServersThatAreAwayArePassedOver) {
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < 3; ++i) {
    servers.push_back(std::make_unique<Server>([](const Server::Request&) { return json(200, "ok"); }));
    ports.push_back(servers.back()->port());
  }
  const auto client = client_of(options_for(ports));
  // Whoever serves is stopped, as long as there is one.
  for (std::size_t left = servers.size(); left > 0; --left) {
    const Answer answer = client->call(put(), in(10s));
    ASSERT_EQ(answer.outcome, Outcome::done) << answer.error.message;
    const auto served = std::ranges::find_if(servers, [](const auto& one) { return !one->requests().empty(); });
    ASSERT_NE(served, servers.end());
    EXPECT_EQ((*served)->requests().size(), 1U);
    servers.erase(served);
  }
  const Answer last = client->call(put(), in(10s));
  EXPECT_EQ(last.outcome, Outcome::not_done);
  for (const std::uint16_t port : ports) {
    EXPECT_NE(last.error.message.find(":" + std::to_string(port)), std::string::npos) << last.error.message;
  }
}

TEST_F(KubeClientTest, WithoutAnyServerNothingIsDone) {
  std::uint16_t port = 0;
  {
    const os::Listener closed_at_once;
    port = closed_at_once.port;
  }
  const auto client = client_of(options_for({port}));
  const Answer answer = client->call(put(), in(10s));
  EXPECT_EQ(answer.outcome, Outcome::not_done);
  EXPECT_EQ(answer.error.code, ErrorCode::unavailable);
  EXPECT_EQ(answer.http_status, 0);
  EXPECT_EQ(client->call(put(), in(-1s)).error.code, ErrorCode::deadline_exceeded);
}

TEST_F(KubeClientTest, ASilentListenerGetsNoWrite) {
  const os::Listener silent;  // takes connections and says nothing
  Server server([](const Server::Request&) { return json(200, "ok"); });
  auto options = options_for({silent.port, server.port()});
  options.dial_timeout = 100ms;
  for (int i = 0; i < 4; ++i) {
    const auto client = client_of(options);
    const Answer answer = client->call(put(), in(10s));
    EXPECT_EQ(answer.outcome, Outcome::done) << answer.error.message;
  }
  EXPECT_EQ(server.requests().size(), 4U);
}

TEST_F(KubeClientTest, WaitsAsLongAsTheServerSays) {
  std::atomic<int> count{0};
  std::atomic<int> status{429};
  std::atomic<bool> in_body{false};
  Server server([&](const Server::Request&) {
    if (count++ % 3 == 2) return json(200, "ok");
    if (in_body) {
      return json(429, R"({"kind":"Status","apiVersion":"v1","code":429,"details":{"retryAfterSeconds":2}})");
    }
    return refusal(status, "TooManyRequests", {{"retry-after", "2"}});
  });
  const auto client = client_of(server);
  for (const bool body : {false, true}) {
    in_body = body;
    slept_ = {};
    EXPECT_EQ(client->call(put(), in(60s)).outcome, Outcome::done);
    EXPECT_GE(slept_, 4s);
    EXPECT_LE(slept_, 4400ms);
  }
  in_body = false;
  status = 503;
  EXPECT_EQ(client->call(put(), in(60s)).outcome, Outcome::done);
  EXPECT_EQ(server.requests().size(), 9U);
}

TEST_F(KubeClientTest, DoesNotWaitBeyondTheDeadlineNorForEver) {
  Server server([](const Server::Request&) { return refusal(429, "TooManyRequests", {{"retry-after", "20"}}); });
  const auto client = client_of(server);
  const Answer at_once = client->call(put(), in(10s));
  EXPECT_EQ(at_once.outcome, Outcome::refused);
  EXPECT_EQ(at_once.error.code, ErrorCode::unavailable);
  EXPECT_EQ(at_once.status.retry_after, 20s);
  EXPECT_EQ(slept_, 0s);
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(client->call(put(), in(1h)).outcome, Outcome::refused);
  EXPECT_EQ(server.requests().size(), 12U);  // once, and ten times again
}

TEST_F(KubeClientTest, AServerThatEndsHasOthersBesideIt) {
  Server leaving([](const Server::Request&) {
    auto response = refusal(429, "", {{"retry-after", "5"}});
    response.says_goodbye = true;
    return response;
  });
  Server staying([](const Server::Request&) { return json(200, "ok"); });
  const auto client = client_of(options_for({leaving.port(), staying.port()}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client->call(put(), in(60s)).outcome, Outcome::done);
  EXPECT_EQ(slept_, 0s);
  EXPECT_LE(leaving.requests().size(), 1U);
}

TEST_F(KubeClientTest, AfterA401TheTokenIsReadOnceMore) {
  const os::ScratchDirectory scratch;
  const std::string file = scratch.file("token");
  ASSERT_TRUE(os::replace_file_durably(file, "old\n"));
  Server server([](const Server::Request& request) {
    return request.header("authorization") == "Bearer new" ? json(200, "ok") : refusal(401, "Unauthorized");
  });
  auto options = options_for({server.port()});
  options.access.token = "not this one";
  options.access.token_file = file;
  const auto client = client_of(std::move(options));
  EXPECT_EQ(client->call(put(), in(10s)).outcome, Outcome::refused);
  EXPECT_EQ(server.requests().size(), 1U);  // the same token again is of no use
  ASSERT_TRUE(os::replace_file_durably(file, "new\n"));
  EXPECT_EQ(client->call(put(), in(10s)).outcome, Outcome::done);
  EXPECT_EQ(server.requests().size(), 3U);
  EXPECT_EQ(server.requests()[1].header("authorization"), "Bearer old");
  EXPECT_EQ(client->call(put(), in(10s)).outcome, Outcome::done);
  EXPECT_EQ(server.requests().size(), 4U);
}

TEST_F(KubeClientTest, ATokenFileIsReadAgainAfterAMinute) {
  const os::ScratchDirectory scratch;
  const std::string file = scratch.file("token");
  Server server([](const Server::Request& request) { return json(200, request.header("authorization")); });
  auto options = options_for({server.port()});
  options.access.token_file = file;
  const auto client = client_of(std::move(options));
  EXPECT_EQ(client->call(put(), in(10s)).error.code, ErrorCode::unavailable);
  for (const char* nothing : {"", " \n", "a b"}) {
    ASSERT_TRUE(os::replace_file_durably(file, nothing));
    const Answer answer = client->call(put(), in(10s));
    EXPECT_EQ(answer.outcome, Outcome::not_done);
    EXPECT_EQ(answer.error.code, ErrorCode::unavailable);
  }
  const auto sent = [&] { return client->call(put(), in(10s)).body; };
  ASSERT_TRUE(os::replace_file_durably(file, " one\n"));
  EXPECT_EQ(sent(), "Bearer one");
  ASSERT_TRUE(os::replace_file_durably(file, "two"));
  clock_.advance(50s);
  EXPECT_EQ(sent(), "Bearer one");
  clock_.advance(10s);
  EXPECT_EQ(sent(), "Bearer two");
  // A file that is away leaves the token before.
  ASSERT_TRUE(os::remove_file_durably(file));
  clock_.advance(2min);
  EXPECT_EQ(sent(), "Bearer two");
}

TEST_F(KubeClientTest, ATokenFileThatOthersCanReadIsRefused) {
  const os::ScratchDirectory scratch;
  const std::string file = scratch.file("token");
  ASSERT_TRUE(os::replace_file_durably(file, "t", os::FileMode::readable_by_all));
  Server server([](const Server::Request&) { return json(200, "ok"); });
  auto options = options_for({server.port()});
  options.access.token_file = file;
  const Answer answer = client_of(options)->call(put(), in(10s));
  EXPECT_EQ(answer.outcome, Outcome::not_done);
  EXPECT_EQ(answer.error.code, ErrorCode::permission_denied);
  EXPECT_TRUE(server.requests().empty());
  options.access.namespace_file = scratch.file("namespace");
  EXPECT_EQ(client_of(options)->call(put(), in(10s)).outcome, Outcome::done);
}

TEST_F(KubeClientTest, PlainHttpGetsNoIdentityWhateverTheDecoderLetPass) {
  auto options = options_for({1});
  options.access.servers.front().secure = false;
  EXPECT_TRUE(make_client(options, clock_, random_));
  for (const auto set :
       {+[](wire::kube::KubeAccess& a) { a.token = "t"; }, +[](wire::kube::KubeAccess& a) { a.token_file = "/t"; },
        +[](wire::kube::KubeAccess& a) { a.certificate.data = "c"; }}) {
    auto bad = options;
    set(bad.access);
    EXPECT_EQ(make_client(bad, clock_, random_).error().code, ErrorCode::invalid_argument);
  }
  auto none = options;
  none.access.servers.clear();
  EXPECT_FALSE(make_client(none, clock_, random_));
  auto no_tls = options_for({1});
  no_tls.make_security = nullptr;
  EXPECT_FALSE(make_client(no_tls, clock_, random_));
}

TEST_F(KubeClientTest, NamesAreLookedUpWhereThereIsAWay) {
  Server server([](const Server::Request&) { return json(200, "ok"); });
  auto options = options_for({server.port()});
  options.access.servers.front().host = "api.example";
  options.access.servers.front().is_numeric = false;
  EXPECT_EQ(make_client(options, clock_, random_).error().code, ErrorCode::invalid_argument);
  std::string asked;
  options.look_up = [&](const std::string& name, Deadline) -> Result<std::vector<std::string>> {
    asked = name;
    return std::vector<std::string>{"127.0.0.1"};
  };
  EXPECT_EQ(client_of(options)->call(get(), in(10s)).outcome, Outcome::done);
  EXPECT_EQ(asked, "api.example");
  EXPECT_EQ(tls_.back().server_name, "api.example");
  EXPECT_EQ(server.requests().front().header(":authority"), "api.example:" + std::to_string(server.port()));
  options.access.tls_server_name = "kubernetes";
  EXPECT_EQ(client_of(options)->call(get(), in(10s)).outcome, Outcome::done);
  EXPECT_EQ(tls_.back().server_name, "kubernetes");
  EXPECT_EQ(tls_.back().ca_pem, "CA");
}

TEST_F(KubeClientTest, AnAnswerIsBounded) {
  Server server([](const Server::Request&) { return json(200, std::string(5000, 'x')); });
  auto options = options_for({server.port()});
  options.answer_bytes_max = 4999;
  const auto client = client_of(std::move(options));
  const Answer read = client->call(get(), in(10s));
  EXPECT_EQ(read.outcome, Outcome::not_done);
  EXPECT_EQ(read.error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(server.requests().size(), 1U);  // no server would do better
  EXPECT_EQ(client->call(put(), in(10s)).outcome, Outcome::unknown);
}

constexpr std::string_view kAdded = R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}})";

Server::Response open_answer() {
  auto response = json(200, "");
  response.stays_open = true;
  return response;
}

/// Each gets its own answer, whatever becomes of the others.
TEST_F(KubeClientTest, SeveralRequestsAreOnTheirWayTogether) {
  std::atomic<int> refused{0}, posts{0};
  Server server([&](const Server::Request& request) {
    if (request.path() == "/7") return refusal(404, "NotFound");
    if (request.path() == "/9" && refused++ == 0) return instead(Instead::refused_stream);
    if (request.path() == "/lost") {
      ++posts;
      return instead(Instead::cut);
    }
    return json(200, request.header(":method") + request.path());
  });
  const auto client = client_of(server);
  std::vector<Request> requests;
  for (int i = 0; i < 60; ++i) {
    Request& request = requests.emplace_back();
    request.path = "/" + std::to_string(i);
    if (i % 2 == 0) request.method = Method::put;
    if (i % 2 == 0) request.body = "{}";
  }
  auto answers = client->call_all(requests, in(10s));
  ASSERT_EQ(answers.size(), requests.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i == 7) {
      EXPECT_EQ(answers[i].outcome, Outcome::refused);
      EXPECT_NE(answers[i].error.message.find(std::to_string(server.port())), std::string::npos);
      continue;
    }
    EXPECT_EQ(answers[i].outcome, Outcome::done) << i << answers[i].error.message;
    EXPECT_EQ(answers[i].body, (i % 2 == 0 ? "PUT/" : "GET/") + std::to_string(i));
  }
  EXPECT_LE(server.connections(), 2);  // one that refuses a stream is left

  // One that cuts the connection: a write is unknown then, and not sent again; reads are.
  Request lost;
  lost.method = Method::post;
  lost.path = "/lost";
  lost.body = "{}";
  const std::vector<Request> mixed = {requests[1], lost, requests[3]};
  answers = client->call_all(mixed, in(10s));
  EXPECT_EQ(answers[0].body, "GET/1");
  EXPECT_EQ(answers[1].outcome, Outcome::unknown);
  EXPECT_EQ(answers[1].error.code, ErrorCode::unknown_outcome);
  EXPECT_EQ(answers[2].body, "GET/3");
  EXPECT_EQ(posts, 1);
  EXPECT_TRUE(client->call_all({}, in(1s)).empty());
}

TEST_F(KubeClientTest, AWatchTellsEventsAsTheyComeAndSharesTheConnection) {
  Server server([](const Server::Request& r) {
    return r.path().find("watch=1") != std::string::npos ? open_answer() : json(200, "ok");
  });
  const auto client = client_of(server);
  auto watch = client->watch(wire::kube::watch_path("/api/v1/pods", {}), in(10s));
  ASSERT_EQ(watch.answer.outcome, Outcome::done) << watch.answer.error.message;
  ASSERT_TRUE(watch.stream);
  const auto nothing = watch.stream->next(in(20ms));
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  const std::string line = std::string(kAdded) + "\n";
  server.say(line.substr(0, 20));
  EXPECT_FALSE(watch.stream->next(in(50ms)).value());
  server.say(line.substr(20) + line);
  for (int i = 0; i < 2; ++i) {
    const auto event = watch.stream->next(in(10s));
    ASSERT_TRUE(event && *event);
    EXPECT_EQ((*event)->object->meta.name, "a");
  }
  EXPECT_EQ(client->call(get(), in(10s)).body, "ok");
  EXPECT_EQ(server.connections(), 1);
  server.say("", true);
  const auto end = watch.stream->next(in(10s));
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(watch.stream->next(in(10s)));
}

TEST_F(KubeClientTest, AWatchIsRefusedAsAnyRequest) {
  std::atomic<int> count{0};
  Server server([&](const Server::Request&) {
    if (count++ == 0) return refusal(429, "TooManyRequests", {{"retry-after", "1"}});
    return refusal(410, "Expired");
  });
  const auto watch = client_of(server)->watch("/w", in(10s));
  EXPECT_EQ(watch.answer.outcome, Outcome::refused);
  EXPECT_EQ(watch.answer.error.code, ErrorCode::too_old);
  EXPECT_FALSE(watch.stream);
  EXPECT_EQ(count, 2);
}

TEST_F(KubeClientTest, AWatchThatBreaksSaysHow) {
  const auto end_of = [&](const std::string& said, bool stop, std::size_t bytes_max) {
    Server server([](const Server::Request&) { return open_answer(); });
    auto options = options_for({server.port()});
    options.answer_bytes_max = bytes_max;
    const auto client = client_of(std::move(options));
    auto watch = client->watch("/w", in(10s));
    EXPECT_TRUE(watch.stream);
    server.say(said, !stop);
    if (stop) server.stop();
    auto event = watch.stream->next(in(10s));
    while (event && *event) event = watch.stream->next(in(10s));
    return event ? ErrorCode::internal : event.error().code;
  };
  const std::string line = std::string(kAdded) + "\n";
  EXPECT_EQ(end_of(line, true, 1000), ErrorCode::unavailable);
  EXPECT_EQ(end_of(line + "{\"type\":", false, 1000), ErrorCode::unavailable);
  EXPECT_EQ(end_of("nonsense\n", false, 1000), ErrorCode::corrupt);
  EXPECT_EQ(end_of(line, false, 50), ErrorCode::corrupt);
}

}  // namespace
}  // namespace croft::store::kube
