
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "http/grpc_channel.h"
#include "http/grpc_server.h"
#include "http/relay_fixture.h"
#include "http/test_certificates.h"
#include "http/tls.h"
#include "http/tls_parts.h"
#include "os/files.h"
#include "os/scratch_directory.h"

namespace croft::os {
namespace {

using namespace std::chrono_literals;

/// Answers with the caller's name before what was said; peers may call "/a/Echo" alone.
class Door final : public GrpcHandler {
 public:
  [[nodiscard]] bool serves(std::string_view method) override { return method == "/a/Echo" || method == "/a/Private"; }
  [[nodiscard]] bool serves_peer(const GrpcPeer& peer, std::string_view method) override {
    EXPECT_FALSE(peer.name.empty());
    return method == "/a/Echo";
  }
  void on_request(GrpcRequest request) override {
    ++calls;
    const std::string name = request.peer ? request.peer->name : "nobody";
    server->answer({{request.call, GrpcCode::ok, "", name + ":" + request.message}});
  }

  GrpcServer* server = nullptr;
  std::atomic<int> calls{0};
};

class TlsListenerTest : public SocketTest {
 protected:
  void SetUp() override {
    const WallTime now = clock_.now().wall;
    valid_ = {now - 1h, now + 24h};
    authority_ = make_authority("ours", valid_);
    write("ca.crt", authority_.certificate);
    use(certificate(authority_, "server"));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  void write(const std::string& name, const std::string& content) const {
    const auto written = replace_file_durably(path(name), content);
    ASSERT_TRUE(written) << written.error().message;
  }
  void use(const CertificateWithKey& one) const {
    write("server.key", one.key);
    write("server.crt", one.certificate);
  }
  [[nodiscard]] CertificateWithKey certificate(const CertificateWithKey& authority, const std::string& name) const {
    return make_certificate(&authority, name, valid_);
  }
  [[nodiscard]] TlsListenerOptions options() {
    TlsListenerOptions made;
    made.host = "127.0.0.1";
    made.files.ca_file = path("ca.crt");
    made.files.certificate_file = path("server.crt");
    made.files.key_file = path("server.key");
    made.tell = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      told_ += text + "\n";
    };
    return made;
  }
  void start(const std::string& host = "127.0.0.1") {
    TlsListenerOptions how = options();
    how.host = host;
    auto listener = TlsListener::listen(how, clock_);
    ASSERT_TRUE(listener) << listener.error().message;
    endpoint_ = {Endpoint::Kind::tcp, true, host, (*listener)->port(), {}};
    auto server = GrpcServer::make(*std::move(listener), server_options_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    door_.server = server_.get();
    server_->serve(door_);
  }
  [[nodiscard]] TlsFiles client(const CertificateWithKey& one) const {
    TlsFiles files;
    files.ca_pem = authority_.certificate;
    files.certificate_pem = one.certificate;
    files.key_pem = one.key;
    files.server_name = "server";
    return files;
  }
  [[nodiscard]] Result<std::shared_ptr<GrpcChannel>> connect(const TlsFiles& files) const {
    return GrpcChannel::connect(endpoint_, make_tls(files).get(), {}, clock_, in(20s));
  }
  /// What a call brings; the reason in brackets when it fails.
  [[nodiscard]] std::string call(const TlsFiles& files, const std::string& method = "/a/Echo") const {
    const auto channel = connect(files);
    if (!channel) return "[" + channel.error().message + "]";
    const auto reply = (*channel)->call(method, "hello", in(20s));
    return reply.status.ok() ? reply.message : "[" + reply.status.message + "]";
  }
  [[nodiscard]] FileDescriptor plain() const {
    FileDescriptor socket = connected_to({Endpoint::Kind::tcp, false, "127.0.0.1", endpoint_.port, {}});
    EXPECT_TRUE(socket.is_open());
    return socket;
  }
  [[nodiscard]] std::string told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  /// Says something to a new connection until it is refused or let in, and hears what comes of it.
  [[nodiscard]] bool was_refused(const TlsFiles& files) const {
    const std::uint64_t before = server_->counts().unproven;
    const std::string said = call(files);
    return said.starts_with("[") && soon([&] { return server_->counts().unproven > before; });
  }

  ScratchDirectory directory_;
  Validity valid_;
  CertificateWithKey authority_;
  GrpcServerOptions server_options_;
  Endpoint endpoint_;
  mutable std::mutex mutex_;
  std::string told_;
  Door door_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(TlsListenerTest, PeersAreServedAndKnownByName) {
  start();
  const TlsFiles files = client(certificate(authority_, "node-b"));
  EXPECT_EQ(call(files), "node-b:hello");
  EXPECT_EQ(call(files, "/a/Private").front(), '[') << "not for peers";
  EXPECT_EQ(door_.calls, 1);
  const auto channel = connect(files);
  ASSERT_TRUE(channel) << channel.error().message;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, server_options_.session.message_bytes_max}) {
    const auto reply = (*channel)->call("/a/Echo", std::string(size, 'x'), in(20s));
    EXPECT_EQ(reply.message, "node-b:" + std::string(size, 'x')) << reply.status.message;
  }
}

TEST_F(TlsListenerTest, ManyCallsOfManyPeers) {
  start();
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int peer = 0; peer < 4; ++peer) {
    threads.emplace_back([&, peer] {
      const std::string name = "node-" + std::to_string(peer);
      const auto channel = connect(client(certificate(authority_, name)));
      for (int i = 0; channel && i < 50; ++i) {
        const std::string text(1000 * static_cast<std::size_t>(i), static_cast<char>('a' + peer));
        if ((*channel)->call("/a/Echo", text, in(20s)).message == name + ":" + text) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

TEST_F(TlsListenerTest, IPv6) {
  const FileDescriptor probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) != 0) {
    GTEST_SKIP() << "this machine has no ::1";
  }
  start("::1");
  EXPECT_EQ(call(client(certificate(authority_, "node-b"))), "node-b:hello");
}

TEST_F(TlsListenerTest, WhoHasNoCertificateOfOursIsRefused) {
  start();
  const WallTime now = clock_.now().wall;
  const CertificateWithKey other = make_authority("ours", valid_);
  TlsFiles none = client({});
  EXPECT_TRUE(was_refused(none)) << "no certificate";
  EXPECT_TRUE(was_refused(client(certificate(other, "node-b")))) << "another CA of the same name";
  EXPECT_TRUE(was_refused(client(make_certificate(&authority_, "node-b", {now - 2h, now - 1h})))) << "expired";
  EXPECT_TRUE(was_refused(client(make_certificate(&authority_, "node-b", {now + 1h, now + 2h})))) << "not valid yet";
  EXPECT_EQ(door_.calls, 0);
  EXPECT_NE(told().find("TLS: refused 127.0.0.1:"), std::string::npos) << told();
  EXPECT_EQ(call(client(certificate(authority_, "node-b"))), "node-b:hello") << "the others are served still";
}

TEST_F(TlsListenerTest, AClientLooksWhoAnswers) {
  start();
  TlsFiles files = client(certificate(authority_, "node-b"));
  files.server_name = "another";
  EXPECT_NE(call(files).find("is refused"), std::string::npos) << call(files);
  files.server_name = {};
  EXPECT_NE(call(files).find("is refused"), std::string::npos) << "its certificate has no address";
  files.server_name = "server";
  files.ca_pem = make_authority("ours", valid_).certificate;
  EXPECT_NE(call(files).find("is refused"), std::string::npos) << "the name, but of another CA";
}

TEST_F(TlsListenerTest, WhatIsNoTlsIsClosed) {
  start();
  const std::vector<std::string> sayings = {
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n", std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33),
      std::string("\x16\x03\x01\xff\xff", 5) + std::string(70000, '\xff'), std::string(70000, '\0')};
  for (const std::string& what : sayings) {
    const FileDescriptor socket = plain();
    static_cast<void>(!::send(socket.get(), what.data(), what.size(), MSG_NOSIGNAL));
    EXPECT_TRUE(is_closed(socket)) << what.substr(0, 5);
  }
  EXPECT_TRUE(soon([&] { return server_->counts().unproven == sayings.size() && server_->counts().open == 0; }));
}

TEST_F(TlsListenerTest, WhoDoesNotAskForHttp2IsRefused) {
  start();
  TlsFiles files = client(certificate(authority_, "node-b"));
  const auto context = tls::make_context(files, TLS_client_method());
  ASSERT_TRUE(context) << context.error().message;
  for (const std::string& protocols : {std::string(), std::string("\x08http/1.1")}) {
    const std::uint64_t before = server_->counts().unproven;
    const FileDescriptor socket = plain();
    const tls::Connection connection(SSL_new(context->get()));
    ASSERT_EQ(SSL_set_fd(connection.get(), socket.get()), 1);
    if (!protocols.empty()) {
      SSL_set_alpn_protos(connection.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                          static_cast<unsigned>(protocols.size()));
    }
    static_cast<void>(SSL_connect(connection.get()));  // in TLS 1.3 it may find out later only
    EXPECT_TRUE(soon([&] { return server_->counts().unproven > before; })) << protocols;
    EXPECT_TRUE(is_closed(socket));
  }
}

TEST_F(TlsListenerTest, AHandshakeHasToEndInTime) {
  server_options_.greeting_max = 300ms;
  start();
  const FileDescriptor silent = plain();
  const FileDescriptor slow = plain();
  // The beginning of a ClientHello, a byte now and then.
  const std::string hello("\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 11);
  std::atomic<bool> stop{false};
  std::thread dripping([&] {
    for (std::size_t i = 0; !stop && i < 1000; ++i) {
      const char byte = i < hello.size() ? hello[i] : 'x';
      if (::send(slow.get(), &byte, 1, MSG_NOSIGNAL) != 1) return;
      std::this_thread::sleep_for(20ms);
    }
  });
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(slow));
  stop = true;
  dripping.join();
  EXPECT_TRUE(soon([&] { return server_->counts().unproven == 2 && server_->counts().open == 0; }));
}

TEST_F(TlsListenerTest, WhoIsGoneInTheMiddleLeavesNothing) {
  start();
  {
    const FileDescriptor socket = plain();
    const std::string hello("\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 11);
    ASSERT_EQ(::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL), 11);
    ASSERT_TRUE(soon([&] { return server_->counts().open == 1; }));
    ::shutdown(socket.get(), SHUT_WR);
    EXPECT_TRUE(is_closed(socket));
  }
  {
    const auto channel = connect(client(certificate(authority_, "node-b")));
    ASSERT_TRUE(channel);
    EXPECT_TRUE((*channel)->call("/a/Echo", "", in(20s)).status.ok());
  }
  EXPECT_TRUE(soon([&] { return server_->counts().open == 0; }));
}

TEST_F(TlsListenerTest, AFloodWithoutProofKeepsNobodyOut) {
  server_options_.connections_max = 50;
  server_options_.greeting_max = 60s;
  start();
  std::vector<FileDescriptor> flood;
  for (int i = 0; i < 600; ++i) flood.push_back(plain());
  // The last is accepted a moment before it has its place.
  EXPECT_TRUE(soon([&] { return server_->counts().accepted == 600 && server_->counts().open == 50; }));
  EXPECT_EQ(call(client(certificate(authority_, "node-b"))), "node-b:hello");
}

TEST_F(TlsListenerTest, WhoHasProvenHimselfKeepsHisPlace) {
  server_options_.connections_max = 2;
  start();
  const TlsFiles files = client(certificate(authority_, "node-b"));
  const auto one = connect(files);
  const auto two = connect(files);
  ASSERT_TRUE(one && two);
  ASSERT_TRUE((*one)->call("/a/Echo", "", in(20s)).status.ok());
  ASSERT_TRUE((*two)->call("/a/Echo", "", in(20s)).status.ok());
  EXPECT_EQ(call(files).front(), '[');
  EXPECT_GE(server_->counts().too_many, 1U);
  EXPECT_TRUE((*one)->call("/a/Echo", "", in(20s)).status.ok());
  EXPECT_TRUE((*two)->call("/a/Echo", "", in(20s)).status.ok());
}

TEST_F(TlsListenerTest, ACertificateTellsItsNames) {
  const CertificateWithKey one = certificate(authority_, "node-1.example");
  EXPECT_EQ(certificate_names(one.certificate).value(), std::vector<std::string>{"node-1.example"});
  EXPECT_FALSE(certificate_names(one.key));
  EXPECT_FALSE(certificate_names(one.certificate.substr(0, one.certificate.size() / 2)));
}

TEST_F(TlsListenerTest, NewCertificatesAreUsedWithoutARestart) {
  start();
  const TlsFiles files = client(certificate(authority_, "node-b"));
  const auto before = connect(files);
  ASSERT_TRUE(before);
  ASSERT_TRUE((*before)->call("/a/Echo", "", in(20s)).status.ok());

  // A key that is not the certificate's: the old ones go on, and it is told.
  write("server.key", certificate(authority_, "server").key);
  EXPECT_TRUE(soon([&] {
    EXPECT_EQ(call(files), "node-b:hello");
    return told().find("the certificates of before go on") != std::string::npos;
  })) << told();

  // Another name and another CA.
  const CertificateWithKey fresh = make_authority("fresh", valid_);
  write("ca.crt", authority_.certificate + fresh.certificate);
  use(certificate(fresh, "renamed"));
  TlsFiles new_files = client(certificate(fresh, "node-c"));
  new_files.ca_pem = fresh.certificate;
  new_files.server_name = "renamed";
  EXPECT_TRUE(soon([&] { return call(new_files) == "node-c:hello"; })) << told();
  TlsFiles old_peer = files;
  old_peer.ca_pem = fresh.certificate;
  old_peer.server_name = "renamed";
  EXPECT_EQ(call(old_peer), "node-b:hello") << "both CAs are trusted";
  EXPECT_TRUE((*before)->call("/a/Echo", "", in(20s)).status.ok()) << "who was connected is so still";

  write("ca.crt", fresh.certificate);
  EXPECT_TRUE(soon([&] { return call(old_peer).starts_with("["); })) << "the old CA is gone";
  EXPECT_EQ(call(new_files), "node-c:hello");
}

TEST_F(TlsListenerTest, WhereItCanNotListen) {
  start();
  TlsListenerOptions how = options();
  how.port = endpoint_.port;
  auto second = TlsListener::listen(how, clock_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::already_exists);
  how.host = "localhost";
  EXPECT_EQ(TlsListener::listen(how, clock_).error().code, ErrorCode::invalid_argument);
  how.host = "192.0.2.1";
  how.port = 0;
  EXPECT_EQ(TlsListener::listen(how, clock_).error().code, ErrorCode::unavailable);
  how.host = "127.0.0.1";
  how.files.ca_file = path("absent");
  EXPECT_EQ(TlsListener::listen(how, clock_).error().code, ErrorCode::not_found);
  how.files.ca_file.clear();
  EXPECT_EQ(TlsListener::listen(how, clock_).error().code, ErrorCode::invalid_argument);
  how = options();
  how.files.certificate_file.clear();
  how.files.key_file.clear();
  EXPECT_EQ(TlsListener::listen(how, clock_).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace croft::os
