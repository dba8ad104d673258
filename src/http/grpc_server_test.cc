#include "http/grpc_server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "http/grpc_channel.h"
#include "http/http2_frames_fixture.h"
#include "http/relay_fixture.h"
#include "os/scratch_directory.h"

namespace croft::os {
namespace {

using namespace std::chrono_literals;

/// Answers "/a/Echo" at once, `times` times in one answer, and keeps "/a/Later" until it is told.
class Echo final : public GrpcHandler {
 public:
  [[nodiscard]] bool serves(std::string_view method) override { return method == "/a/Echo" || method == "/a/Later"; }
  void on_request(GrpcRequest request) override {
    if (request.method == "/a/Echo") {
      std::string all;
      for (int i = 0; i < times; ++i) all += request.message;
      return server->answer({{request.call, GrpcCode::ok, "", std::move(all)}});
    }
    const std::lock_guard lock(mutex_);
    later_.push_back(std::move(request));
  }
  void on_batch_end() override { ++batches; }

  [[nodiscard]] std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return later_.size();
  }
  [[nodiscard]] bool has_hung_up() const {
    const std::lock_guard lock(mutex_);
    return std::all_of(later_.begin(), later_.end(),
                       [](const GrpcRequest& request) { return request.hung_up->load(); });
  }
  /// Answers all that wait, together.
  void answer_later() {
    std::vector<GrpcAnswer> answers;
    {
      const std::lock_guard lock(mutex_);
      for (GrpcRequest& request : later_)
        answers.push_back({request.call, GrpcCode::ok, "", "late " + request.message});
      later_.clear();
    }
    server->answer(std::move(answers));
  }

  GrpcServer* server = nullptr;
  std::atomic<int> times{1};
  std::atomic<int> batches{0};

 private:
  mutable std::mutex mutex_;
  std::vector<GrpcRequest> later_;
};

class GrpcServerTest : public SocketTest {
 protected:
  void start() {
    auto listener = UnixListener::listen(path_, {users_}, clock_);
    ASSERT_TRUE(listener) << listener.error().message;
    auto server = GrpcServer::make(*std::move(listener), options_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    echo_.server = server_.get();
    server_->serve(echo_);
  }
  [[nodiscard]] std::shared_ptr<GrpcChannel> channel() const {
    auto made = GrpcChannel::connect(Endpoint::parse("unix:" + path_).value(), nullptr, {}, clock_, in(20s));
    EXPECT_TRUE(made) << made.error().message;
    return made ? *std::move(made) : nullptr;
  }
  [[nodiscard]] FileDescriptor connect() const {
    FileDescriptor socket = connected_to(Endpoint::parse("unix:" + path_).value());
    EXPECT_TRUE(socket.is_open());
    return socket;
  }
  static void say(const FileDescriptor& socket, std::string_view bytes) {
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  ScratchDirectory directory_;
  std::string path_ = directory_.path() + "/server.sock";
  std::vector<std::uint32_t> users_ = {::geteuid()};
  GrpcServerOptions options_;
  Echo echo_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(GrpcServerTest, CallsAreAnswered) {
  start();
  const auto one = channel();
  ASSERT_TRUE(one);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, options_.session.message_bytes_max}) {
    const auto reply = one->call("/a/Echo", std::string(size, 'x'), in(20s));
    EXPECT_TRUE(reply.status.ok()) << reply.status.message;
    EXPECT_EQ(reply.message, std::string(size, 'x'));
  }
  EXPECT_EQ(one->call("/a/No", "", in(20s)).status.code, GrpcCode::unimplemented);
  EXPECT_EQ(server_->counts().open, 1U);
  EXPECT_EQ(server_->counts().accepted, 1U);
}

TEST_F(GrpcServerTest, ManyAtOnceOnOneConnectionAndOnMany) {
  start();
  const auto shared = channel();
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] {
      const auto own = channel();
      for (int j = 0; j < 100; ++j) {
        const std::string text = std::to_string(i) + "-" + std::to_string(j);
        if (shared->call("/a/Echo", text, in(20s)).message == text) ++right;
        if (own->call("/a/Echo", text, in(20s)).message == text) ++right;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 1600);
}

TEST_F(GrpcServerTest, AnswersOfAnotherThreadArriveTogether) {
  start();
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 20; ++i) {
    callers.emplace_back([&, i] {
      const std::string text = std::to_string(i);
      if (channel()->call("/a/Later", text, in(20s)).message == "late " + text) ++right;
    });
  }
  EXPECT_TRUE(soon([&] { return echo_.waiting() == 20; }));
  const int before = echo_.batches;
  EXPECT_GT(before, 0);
  echo_.answer_later();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 20);
}

TEST_F(GrpcServerTest, WhoGoesHasHungUp) {
  start();
  FileDescriptor socket = connect();
  say(socket, http2_greeting() + grpc_headers(1, "/a/Later") + http2_data(1, grpc_framed("x")));
  ASSERT_TRUE(soon([&] { return echo_.waiting() == 1; }));
  EXPECT_FALSE(echo_.has_hung_up());
  socket = FileDescriptor();
  EXPECT_TRUE(soon([&] { return echo_.has_hung_up(); }));
  EXPECT_TRUE(soon([&] { return server_->counts().open == 0; }));
  echo_.answer_later();  // to nobody
  EXPECT_TRUE(channel()->call("/a/Echo", "", in(20s)).status.ok());
}

TEST_F(GrpcServerTest, NoMoreThanSoManyAndAgainWhenSomeHaveLeft) {
  options_.connections_max = 2;
  start();
  FileDescriptor first = connect();
  const FileDescriptor second = connect();
  ASSERT_TRUE(soon([&] { return server_->counts().open == 2; }));
  const FileDescriptor third = connect();
  EXPECT_EQ(all_of(third), "");
  EXPECT_TRUE(soon([&] { return server_->counts().too_many == 1; }));
  EXPECT_EQ(server_->counts().accepted, 2U);
  first = FileDescriptor();
  ASSERT_TRUE(soon([&] { return server_->counts().open == 1; }));
  EXPECT_TRUE(channel()->call("/a/Echo", "", in(20s)).status.ok());
}

TEST_F(GrpcServerTest, RunningOutOfDescriptorsRefusesAndPasses) {
  start();
  const auto there = channel();
  EXPECT_TRUE(there->call("/a/Echo", "", in(20s)).status.ok());
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage address{};
  const auto size = socket_address(Endpoint::parse("unix:" + path_).value(), address).value();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const FileDescriptor next(::fcntl(0, F_DUPFD_CLOEXEC, 3));
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  const bool refused = soon([&] { return server_->counts().no_descriptors >= 1; });
  const bool served = there->call("/a/Echo", "", in(20s)).status.ok();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(refused);
  EXPECT_TRUE(served);
  EXPECT_TRUE(is_closed(socket));
  EXPECT_TRUE(channel()->call("/a/Echo", "", in(20s)).status.ok());
}

TEST_F(GrpcServerTest, WhoSaysNothingIsClosed) {
  options_.greeting_max = 100ms;
  start();
  const FileDescriptor silent = connect();
  const FileDescriptor slow = connect();
  say(slow, kHttp2Preface.substr(0, 10));
  const FileDescriptor rude = connect();
  say(rude, "GET / HTTP/1.1\r\n\r\n");
  const FileDescriptor good = connect();
  say(good, http2_greeting());
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(slow));
  EXPECT_TRUE(is_closed(rude));
  EXPECT_TRUE(all_of(good, 300ms).ends_with("still open"));
}

TEST_F(GrpcServerTest, WhoHasNoCallIsClosedAfterAWhileAndWhoHasOneIsNot) {
  options_.idle_max = 200ms;
  start();
  const FileDescriptor idle = connect();
  say(idle, http2_greeting());
  const FileDescriptor half = connect();  // a request without an end
  say(half, http2_greeting() + grpc_headers(1, "/a/Echo"));
  const FileDescriptor busy = connect();
  say(busy, http2_greeting() + grpc_headers(1, "/a/Later") + http2_data(1, grpc_framed("x")));
  for (const FileDescriptor* socket : {&idle, &half}) {
    const std::string heard = all_of(*socket);
    EXPECT_FALSE(heard.ends_with("still open"));
    EXPECT_NE(heard.find(http2_frame(Http2Type::goaway, 0, 0, std::string(8, '\0')).substr(3, 2)), heard.npos);
  }
  EXPECT_TRUE(all_of(busy, 500ms).ends_with("still open"));
  EXPECT_FALSE(echo_.has_hung_up());
  echo_.answer_later();
  EXPECT_NE(all_of(busy).find("late x"), std::string::npos);
}

TEST_F(GrpcServerTest, WhoAsksAgainAndAgainIsNotClosed) {
  options_.idle_max = 300ms;
  start();
  const auto one = channel();
  for (const Deadline deadline = in(3 * options_.idle_max); !deadline.passed(clock_.now());) {
    ASSERT_TRUE(one->call("/a/Echo", "x", in(20s)).status.ok());
  }
  EXPECT_EQ(server_->counts().accepted, 1U);
}

TEST_F(GrpcServerTest, WhoDoesNotReadIsLeft) {
  options_.session.unsent_bytes_max = 100'000;
  start();
  echo_.times = 50;
  const FileDescriptor socket = connect();
  const std::string wide = big_endian(4, 2) + big_endian(0x7FFFFFFF, 4);  // windows without end
  std::string bytes = std::string(kHttp2Preface) + http2_frame(Http2Type::settings, 0, 0, wide) +
                      http2_frame(Http2Type::window_update, 0, 0, big_endian(0x7FFF0000, 4));
  for (std::uint32_t i = 0; i < 30; ++i) {
    bytes += grpc_headers(2 * i + 1, "/a/Echo") + http2_data(2 * i + 1, grpc_framed(std::string(1000, 'x')));
  }
  say(socket, bytes);
  EXPECT_TRUE(is_closed(socket));
  EXPECT_TRUE(channel()->call("/a/Echo", "", in(20s)).status.ok());
}

TEST_F(GrpcServerTest, StoppingLetsWhatIsOpenEnd) {
  start();
  const FileDescriptor idle = connect();
  say(idle, http2_greeting());
  std::string answer;
  std::thread caller([&] { answer = channel()->call("/a/Later", "x", in(20s)).message; });
  ASSERT_TRUE(soon([&] { return echo_.waiting() == 1; }));
  std::thread stopper([&] { server_->stop(in(20s)); });
  EXPECT_TRUE(soon([&] { return ::access(path_.c_str(), F_OK) != 0; }));
  EXPECT_TRUE(is_closed(idle));
  EXPECT_FALSE(echo_.has_hung_up());
  echo_.answer_later();
  stopper.join();
  caller.join();
  EXPECT_EQ(answer, "late x");
  EXPECT_EQ(server_->counts().open, 0U);
}

TEST_F(GrpcServerTest, StoppingWaitsNoLongerThanItIsTold) {
  start();
  std::thread caller([&] { EXPECT_FALSE(channel()->call("/a/Later", "x", in(20s)).status.ok()); });
  ASSERT_TRUE(soon([&] { return echo_.waiting() == 1; }));
  const auto before = clock_.now().since_boot;
  server_->stop(in(100ms));
  EXPECT_GE(clock_.now().since_boot - before, 100ms);
  EXPECT_LT(clock_.now().since_boot - before, 10s);
  EXPECT_TRUE(echo_.has_hung_up());
  caller.join();
  echo_.answer_later();  // to nobody
  server_->stop(in(20s));
}

TEST_F(GrpcServerTest, StoppingWithNothingOpenIsQuick) {
  start();
  const auto one = channel();
  EXPECT_TRUE(one->call("/a/Echo", "", in(20s)).status.ok());
  const auto before = clock_.now().since_boot;
  server_->stop(in(20s));
  EXPECT_LT(clock_.now().since_boot - before, 10s);
  EXPECT_FALSE(one->is_usable());
}

TEST_F(GrpcServerTest, AServerThatNeverServedEnds) {
  auto listener = UnixListener::listen(path_, {users_}, clock_);
  ASSERT_TRUE(listener);
  auto server = GrpcServer::make(*std::move(listener), options_, clock_);
  ASSERT_TRUE(server);
  server->reset();
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace croft::os
