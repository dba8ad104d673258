#include "http/grpc_channel.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "http/grpc_frame.h"
#include "http/http2_frames_fixture.h"
#include "http/relay_fixture.h"
#include "http/transport.h"
#include "os/clock.h"
#include "os/file_descriptor.h"

namespace croft::os {
namespace {

using namespace std::chrono_literals;

/// Says it once the whole request is there, which ends with the flag END_STREAM on its last frame; then waits until the
/// other closes.
void say_to_request(int socket, const std::string& bytes) {
  const std::string end = http2_frame(Http2Type::data, kEndStream, 1, grpc_framed("ask"));
  std::string heard;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 0; (size = ::recv(socket, buffer.data(), buffer.size(), 0)) > 0;) {
    const bool answered = heard.find(end) != heard.npos;
    heard.append(buffer.data(), static_cast<std::size_t>(size));
    if (answered || heard.find(end) == heard.npos) continue;
    EXPECT_EQ(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
}

/// What a call of one message makes of an answer: headers, a message, trailers.
GrpcReply reply_to(const Http2Fields& headers, const Http2Fields& trailers) {
  const OneConnection parrot([&](int socket) {
    say_to_request(socket, http2_frame(Http2Type::settings, 0, 0) +
                               http2_frame(Http2Type::headers, kEndHeaders, 1, hpack(headers)) +
                               http2_data(1, grpc_framed("answer"), false) +
                               http2_frame(Http2Type::headers, kEndHeaders | kEndStream, 1, hpack(trailers)));
  });
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
  for (const std::string status : {"503", "404", "302"}) {
    const GrpcReply reply =
        reply_to({{":status", status}, {"content-type", "application/grpc"}}, {{"grpc-status", "0"}});
    EXPECT_EQ(reply.status.code, GrpcCode::unavailable) << status;
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
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_FALSE(is_connected_to_itself(socket.get()));
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_TRUE(is_connected_to_itself(socket.get()));
}

TEST(Endpoint, ReadsAndPrints) {
  for (const char* text :
       {"http://10.0.0.1:2379", "https://[fd00::1]:1", "https://192.168.1.2:65535", "unix:/run/a.sock"}) {
    const auto endpoint = Endpoint::parse(text);
    ASSERT_TRUE(endpoint) << endpoint.error().message;
    EXPECT_EQ(endpoint->text(), text);
  }
  EXPECT_EQ(Endpoint::parse("http://[fd00::1]:80/")->host, "fd00::1");
  EXPECT_EQ(Endpoint::parse("unix:///run/a")->path, "/run/a");
  EXPECT_EQ(Endpoint::parse("https://[fd00::1]:80")->authority(), "[fd00::1]:80");
}

TEST(Endpoint, RefusesWhatWouldNeedALookUpOrSaysLess) {
  for (const char* text : {"",
                           "http://",
                           "http://localhost:80",
                           "http://1.2.3.4",
                           "http://1.2.3.4:",
                           "http://1.2.3.4:0",
                           "http://1.2.3.4:65536",
                           "http://1.2.3.4:80/x",
                           "http://1.2.3.4:+80",
                           "http://1.2.3.4:80//",
                           "http://fd00::1:80",
                           "http://[fd00::1:80",
                           "http://[1.2.3.4]:80",
                           "http://1.2.3:80",
                           "http://[fe80::1%eth0]:80",
                           "ftp://1.2.3.4:80",
                           "unix:",
                           "unix:relative",
                           "1.2.3.4:80",
                           "http://user@1.2.3.4:80"}) {
    const auto endpoint = Endpoint::parse(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(Endpoint::parse("unix:/" + std::string(200, 'x')));
}

TEST(GrpcFrame, AMessageComesBackInPieces) {
  GrpcUnframer unframer(100);
  const std::string bytes = grpc_framed("hello") + grpc_framed("") + grpc_framed(std::string(100, 'x'));
  std::vector<std::string> messages;
  for (const char c : bytes) {
    unframer.add({&c, 1});
    for (auto next = unframer.next(); next.value(); next = unframer.next()) messages.push_back(**next);
  }
  EXPECT_EQ(messages, (std::vector<std::string>{"hello", "", std::string(100, 'x')}));
  EXPECT_FALSE(unframer.has_rest());
}

TEST(GrpcFrame, TooLongIsSeenFromTheLengthAlone) {
  GrpcUnframer unframer(100);
  unframer.add(grpc_framed(std::string(101, 'x')).substr(0, 5));
  EXPECT_EQ(unframer.next().error().code, ErrorCode::invalid_argument);
  GrpcUnframer largest(100);
  largest.add(std::string("\0\xFF\xFF\xFF\xFF", 5));
  EXPECT_EQ(largest.next().error().code, ErrorCode::invalid_argument);
}

TEST(GrpcFrame, CompressedAndUnknownFlagsAreRefused) {
  for (const char flag : {'\1', '\2', '\xFF'}) {
    GrpcUnframer unframer(100);
    unframer.add({&flag, 1});
    EXPECT_EQ(unframer.next().error().code, ErrorCode::corrupt);
  }
}

TEST(GrpcFrame, ACutMessageLeavesARest) {
  GrpcUnframer unframer(100);
  unframer.add(grpc_framed("hello").substr(0, 7));
  EXPECT_FALSE(unframer.next().value());
  EXPECT_TRUE(unframer.has_rest());
}

TEST(GrpcFrame, TimeoutsHaveEightDigitsAndAreNotShorter) {
  EXPECT_EQ(grpc_timeout_text(1ns), "1n");
  EXPECT_EQ(grpc_timeout_text(99'999'999ns), "99999999n");
  EXPECT_EQ(grpc_timeout_text(100'000'001ns), "100001u");
  EXPECT_EQ(grpc_timeout_text(5s), "5000000u");
  EXPECT_EQ(grpc_timeout_text(1000s), "1000000m");
  EXPECT_EQ(grpc_timeout_text(-1s), "1n");
  EXPECT_EQ(grpc_timeout_text(std::chrono::nanoseconds::max()), "2562048H");
}

TEST(GrpcFrame, TimeoutsAreRead) {
  EXPECT_EQ(parse_grpc_timeout("1n"), 1ns);
  EXPECT_EQ(parse_grpc_timeout("5000000u"), 5s);
  EXPECT_EQ(parse_grpc_timeout("0S"), 0s);
  EXPECT_EQ(parse_grpc_timeout("2M"), 2min);
  EXPECT_EQ(parse_grpc_timeout("99999999H"), 24h * 365);
  for (const char* text : {"", "n", "1", "123456789n", "-1n", "+1n", " 1n", "1 n", "1x", "1N"}) {
    EXPECT_EQ(parse_grpc_timeout(text), std::nullopt) << text;
  }
  for (const auto span : {1ns, 99'999'999ns, 100'000'001ns, 1'234'567'890'123ns}) {
    EXPECT_GE(parse_grpc_timeout(grpc_timeout_text(span)), span);
  }
}

TEST(GrpcFrame, APrefixIsSeenBeforeItsMessage) {
  GrpcUnframer unframer(100);
  unframer.add(std::string("\2\0\1\0", 4));
  EXPECT_FALSE(unframer.prefix());
  unframer.add("\3");
  ASSERT_TRUE(unframer.prefix());
  EXPECT_EQ(unframer.prefix()->flag, 2);
  EXPECT_EQ(unframer.prefix()->length, 0x10003U);
}

TEST(GrpcFrame, PercentEncoding) {
  EXPECT_EQ(message_encoded("a b~"), "a b~");
  EXPECT_EQ(message_encoded("100%\n\xC3\xBC\x7F"), "100%25%0A%C3%BC%7F");
  for (const std::string& text : {std::string("\0\xFF%41", 5), std::string()}) {
    EXPECT_EQ(percent_decoded(message_encoded(text)), text);
  }
}

TEST(GrpcFrame, Codes) {
  EXPECT_EQ(parse_grpc_code("0"), GrpcCode::ok);
  EXPECT_EQ(parse_grpc_code("14"), GrpcCode::unavailable);
  EXPECT_EQ(parse_grpc_code("17"), GrpcCode::unknown);
  EXPECT_EQ(parse_grpc_code(""), std::nullopt);
  EXPECT_EQ(parse_grpc_code("-1"), std::nullopt);
  EXPECT_EQ(parse_grpc_code("0x"), std::nullopt);
  EXPECT_EQ(name_of(GrpcCode::unauthenticated), "UNAUTHENTICATED");
}

TEST(GrpcFrame, PercentDecoding) {
  EXPECT_EQ(percent_decoded("a%20b%C3%bc"), "a b\xC3\xBC");
  EXPECT_EQ(percent_decoded("100%"), "100%");
  EXPECT_EQ(percent_decoded("%2"), "%2");
  EXPECT_EQ(percent_decoded("%zz%41"), "%zzA");
  EXPECT_EQ(percent_decoded("%41"), "A");
}

}  // namespace

}  // namespace croft::os
