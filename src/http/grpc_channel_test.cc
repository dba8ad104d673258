#include "http/grpc_channel.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "http/http2_frames_fixture.h"
#include "os/clock.h"
#include "os/file_descriptor.h"
#include "os/scratch_directory.h"

namespace croft::os {
namespace {

using namespace std::chrono_literals;

/// A server that says the same to everybody: what a test makes by hand.
class Parrot {
 public:
  explicit Parrot(std::string bytes)
      : bytes_(std::move(bytes)), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path_.begin(), path_.end(), address.sun_path);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this] { talk(); });
  }
  Parrot(const Parrot&) = delete;
  Parrot& operator=(const Parrot&) = delete;
  ~Parrot() { thread_.join(); }

  [[nodiscard]] Endpoint endpoint() const { return Endpoint::parse("unix:" + path_).value(); }

 private:
  /// Once the whole request is there, which ends with the flag END_STREAM on its last frame; then until the other
  /// closes.
  void talk() const {
    const FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string end = http2_frame(Http2Type::data, kEndStream, 1, grpc_framed("ask"));
    std::string heard;
    for (bool answered = false;;) {
      std::array<char, 4096> buffer{};
      const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) return;
      heard.append(buffer.data(), static_cast<std::size_t>(size));
      if (answered || heard.find(end) == heard.npos) continue;
      answered = true;
      EXPECT_EQ(::send(socket.get(), bytes_.data(), bytes_.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes_.size()));
    }
  }

  const std::string bytes_;
  ScratchDirectory directory_;
  const std::string path_ = directory_.path() + "/parrot.sock";
  FileDescriptor listener_;
  std::thread thread_;
};

/// What a call of one message makes of an answer: headers, a message, trailers.
GrpcReply reply_to(const Http2Fields& headers, const Http2Fields& trailers) {
  const Parrot parrot(http2_frame(Http2Type::settings, 0, 0) +
                      http2_frame(Http2Type::headers, kEndHeaders, 1, hpack(headers)) +
                      http2_data(1, grpc_framed("answer"), false) +
                      http2_frame(Http2Type::headers, kEndHeaders | kEndStream, 1, hpack(trailers)));
  const SystemClock clock;
  const Deadline deadline = Deadline::after(clock.now(), 20s);
  const auto channel = GrpcChannel::connect(parrot.endpoint(), nullptr, {}, clock, deadline);
  EXPECT_TRUE(channel) << channel.error().message;
  return (*channel)->call("/a/Ask", "ask", deadline);
}

TEST(GrpcChannel, AnAnswer) {
  const GrpcReply reply = reply_to({{":status", "200"}, {"content-type", "application/grpc"}}, {{"grpc-status", "0"}});
  EXPECT_TRUE(reply.status.ok()) << reply.status.message;
  EXPECT_TRUE(reply.status.from_server);
  EXPECT_EQ(reply.message, "answer");
}

/// A proxy in between: whatever else the answer says, nobody knows what became of the call.
TEST(GrpcChannel, AnotherHttpStatusIsNoSuccess) {
  for (const auto& [status, code] : std::vector<std::pair<std::string, GrpcCode>>{
           {"503", GrpcCode::unavailable}, {"404", GrpcCode::unimplemented}, {"302", GrpcCode::unknown}}) {
    const GrpcReply reply =
        reply_to({{":status", status}, {"content-type", "application/grpc"}}, {{"grpc-status", "0"}});
    EXPECT_EQ(reply.status.code, code) << status;
    EXPECT_FALSE(reply.status.from_server) << status;
    EXPECT_FALSE(reply.status.surely_not_processed) << status;
    EXPECT_EQ(reply.status.message, "HTTP status " + status);
    EXPECT_EQ(reply.message, "");
  }
}

TEST(GrpcChannel, AnAnswerThatDoesNotSayHowItEnded) {
  const GrpcReply reply = reply_to({{":status", "200"}}, {{"x", "y"}});
  EXPECT_EQ(reply.status.code, GrpcCode::internal);
  EXPECT_FALSE(reply.status.from_server);
}

/// As the kernel may do by itself, on a port of those that it gives to clients.
TEST(Transport, ASocketThatIsConnectedToItselfIsNoServer) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_FALSE(is_connected_to_itself(socket.get()));
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_TRUE(is_connected_to_itself(socket.get()));
}

}  // namespace
}  // namespace croft::os
