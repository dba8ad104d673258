// The client over real TLS, against a server of Go's net/http2, on which kube-apiserver stands too: an etcd answers
// plain GETs beside gRPC.

#include "http/tls.h"

#include <gtest/gtest.h>

#include "base/text/base64.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/random.h"
#include "store/etcd/authority_fixture.h"
#include "store/etcd/etcd_fixture.h"
#include "store/kube/client.h"

namespace croft::store::kube {
namespace {

using namespace std::chrono_literals;
using Outcome = Answer::Outcome;

class KubeTlsTest : public testing::Test {
 protected:
  void SetUp() override {
    CROFT_NEEDS_ETCD();
    if (::access(etcd::kOpenssl, X_OK) != 0) GTEST_SKIP() << "no " << etcd::kOpenssl << ": install openssl";
    authority_ = std::make_unique<etcd::Authority>(scratch_, "ca");
    authority_->sign("server", "IP:127.0.0.1,DNS:kubernetes");
    authority_->sign("client", "DNS:client");
    server_ = std::make_unique<etcd::EtcdProcess>(
        std::vector<std::string>{"--cert-file", authority_->certificate("server"), "--key-file",
                                 authority_->key("server"), "--client-cert-auth", "--trusted-ca-file",
                                 authority_->certificate("ca")},
        "https");
    server_->start();
  }

  /// A kubeconfig beside the files of the authority.
  [[nodiscard]] Answer get(const std::string& path, const std::string& cluster, const std::string& user) {
    const std::string json = R"({"current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],)"
                             R"("clusters":[{"name":"k","cluster":{"server":")" +
                             server_->url() + R"(",)" + cluster + R"(}}],"users":[{"name":"u","user":{)" + user +
                             "}}]}";
    EXPECT_TRUE(os::replace_file_durably(scratch_.file("config"), json));
    ClientOptions options;
    auto access = read_kubeconfig(scratch_.file("config"), "");
    EXPECT_TRUE(access) << access.error().message;
    options.access = *std::move(access);
    options.make_security = os::make_tls;
    options.dial_timeout = 5s;
    auto client = make_client(std::move(options), clock_, random_);
    EXPECT_TRUE(client) << client.error().message;
    Request request;
    request.path = path;
    return (*client)->call(request, Deadline::after(clock_.now(), 20s));
  }
  [[nodiscard]] std::string data_of(const std::string& file) const {
    return wire::encode_base64(os::read_file(scratch_.file(file), 1U << 20).value());
  }

  const std::string kCaFile = R"("certificate-authority":"ca.crt")";
  const std::string kUserFiles = R"("client-certificate":"client.crt","client-key":"client.key")";
  os::ScratchDirectory scratch_;
  std::unique_ptr<etcd::Authority> authority_;
  std::unique_ptr<etcd::EtcdProcess> server_;
  os::SystemClock clock_;
  os::SystemRandom random_;
};

TEST_F(KubeTlsTest, FilesBesideTheKubeconfig) {
  const Answer answer = get("/version", kCaFile, kUserFiles);
  ASSERT_EQ(answer.outcome, Outcome::done) << answer.error.message;
  EXPECT_NE(answer.body.find("etcdserver"), std::string::npos) << answer.body;
  const Answer none = get("/no/such/path", kCaFile, kUserFiles);
  EXPECT_EQ(none.outcome, Outcome::refused);
  EXPECT_EQ(none.error.code, ErrorCode::not_found);
  EXPECT_NE(none.error.message.find("GET /no/such/path: 404 page not found (HTTP 404)"), std::string::npos)
      << none.error.message;
}

TEST_F(KubeTlsTest, DataInTheKubeconfig) {
  const Answer answer =
      get("/version", R"("tls-server-name":"kubernetes","certificate-authority-data":")" + data_of("ca.crt") + "\"",
          R"("client-certificate-data":")" + data_of("client.crt") + R"(","client-key-data":")" +
              data_of("client.key") + "\"");
  EXPECT_EQ(answer.outcome, Outcome::done) << answer.error.message;
}

TEST_F(KubeTlsTest, TheWrongNameOrAuthorityGetsNothing) {
  const Answer named = get("/version", kCaFile + R"(,"tls-server-name":"other")", kUserFiles);
  EXPECT_EQ(named.outcome, Outcome::not_done);
  EXPECT_EQ(named.error.code, ErrorCode::permission_denied);
  EXPECT_NE(named.error.message.find("mismatch"), std::string::npos) << named.error.message;
  const etcd::Authority stranger(scratch_, "stranger");
  const Answer foreign = get("/version", R"("certificate-authority":"stranger.crt")", kUserFiles);
  EXPECT_EQ(foreign.outcome, Outcome::not_done);
  EXPECT_EQ(foreign.error.code, ErrorCode::permission_denied);
}

}  // namespace
}  // namespace croft::store::kube
