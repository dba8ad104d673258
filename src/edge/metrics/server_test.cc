#include "edge/metrics/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::edge {
namespace {

using testing::HasSubstr;

TEST(MetricsAddress, IsReadAndPrinted) {
  for (const char* text : {"127.0.0.1:9600", "0.0.0.0:1", "[::1]:65535", "[::]:9600", "[fd00::1]:80"}) {
    const auto address = MetricsAddress::parse(text);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_EQ(address->text(), text);
  }
  EXPECT_EQ(MetricsAddress::parse("[FD00:0::1]:080")->text(), "[fd00::1]:80");
}

TEST(MetricsAddress, WhatIsWrongIsNamedWithItsRemedy) {
  const auto said = [](std::string_view text) {
    const auto address = MetricsAddress::parse(text);
    return address ? "read as " + address->text()
                   : std::string(name_of(address.error().code)) + ": " + address.error().message;
  };
  for (const char* text : {"", ":", "9600", ":9600", "localhost:9600", "127.0.0.1", "::1:9600", "[::1]", "[::1]9600",
                           "[127.0.0.1]:9600", "[]:9600", "[:9600", "[", "127.0.0.1.:9600", "[fe80::1%eth0]:9600",
                           " 127.0.0.1:9600", "http://127.0.0.1:9600"}) {
    EXPECT_THAT(said(text), HasSubstr("must be an address and a port, as in 127.0.0.1:9600 or [::1]:9600")) << text;
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
  const Metrics metrics;
  const Listening other;
  const auto server = MetricsServer::start(metrics, other.address());
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::already_exists);
  EXPECT_THAT(server.error().message, HasSubstr("metrics can't be served at " + other.address().text()));
  EXPECT_THAT(server.error().message, HasSubstr("Address already in use"));
}

}  // namespace
}  // namespace croft::edge
