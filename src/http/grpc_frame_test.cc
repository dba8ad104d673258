#include "http/grpc_frame.h"

#include <gtest/gtest.h>

#include "http/endpoint.h"

namespace croft::os {
namespace {

using namespace std::chrono_literals;

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

TEST(GrpcFrame, ABodyOfOneMessageIsThatMessage) {
  GrpcUnframer unframer(100, grpc_framed("hello"));
  EXPECT_EQ(unframer.next().value(), "hello");
  EXPECT_FALSE(unframer.has_rest());
  EXPECT_FALSE(unframer.next().value());
  unframer.add(grpc_framed("more") + grpc_framed("and more"));
  EXPECT_EQ(unframer.next().value(), "more");
  EXPECT_TRUE(unframer.has_rest());
  EXPECT_EQ(unframer.next().value(), "and more");
  EXPECT_EQ(GrpcUnframer(4, grpc_framed("hello")).next().error().code, ErrorCode::invalid_argument);
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
  EXPECT_EQ(percent_encoded("a b~"), "a b~");
  EXPECT_EQ(percent_encoded("100%\n\xC3\xBC\x7F"), "100%25%0A%C3%BC%7F");
  for (const std::string& text : {std::string("\0\xFF%41", 5), std::string()}) {
    EXPECT_EQ(percent_decoded(percent_encoded(text)), text);
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
  EXPECT_EQ(grpc_code_of_http(503), GrpcCode::unavailable);
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
