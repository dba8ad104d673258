#include "http/tls.h"

#include <sys/stat.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "os/files.h"
#include "os/scratch_directory.h"
#include "store/etcd/etcd_fixture.h"

namespace croft::store::etcd {

inline constexpr const char* kOpenssl = "/usr/bin/openssl";

/// An authority and what it has signed, made by the openssl program. For tests.
class Authority {
 public:
  Authority(const os::ScratchDirectory& scratch, const std::string& name) : scratch_(scratch), name_(name) {
    run({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
         "-days", "2", "-keyout", key(name), "-out", certificate(name)});
  }
  /// `san` as in "IP:127.0.0.1". `begin` and `end` as openssl ca writes times; empty: valid now.
  void sign(const std::string& subject, const std::string& san, const std::string& begin = "",
            const std::string& end = "") const {
    run({"req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + subject,
         "-keyout", key(subject), "-out", scratch_.file(subject + ".csr")});
    const std::string config = scratch_.file(subject + ".cnf");
    write(config, "[ca]\ndefault_ca=a\n[a]\ndatabase=" + scratch_.file(subject + ".db") +
                      "\nnew_certs_dir=" + scratch_.path() +
                      "\nrand_serial=yes\npolicy=p\ndefault_md=sha256\nunique_subject=no\n[p]\n"
                      "commonName=supplied\n[e]\nsubjectAltName=" +
                      san + "\n");
    write(scratch_.file(subject + ".db"), "");
    std::vector<std::string> arguments = {"ca",          "-batch",
                                          "-config",     config,
                                          "-extensions", "e",
                                          "-cert",       certificate(name_),
                                          "-keyfile",    key(name_),
                                          "-in",         scratch_.file(subject + ".csr"),
                                          "-out",        certificate(subject),
                                          "-notext"};
    if (begin.empty()) {
      arguments.insert(arguments.end(), {"-days", "2"});
    } else {
      arguments.insert(arguments.end(), {"-startdate", begin, "-enddate", end});
    }
    run(arguments);
  }
  [[nodiscard]] std::string key(const std::string& subject) const { return scratch_.file(subject + ".key"); }
  [[nodiscard]] std::string certificate(const std::string& subject) const { return scratch_.file(subject + ".crt"); }

 private:
  static void write(const std::string& path, const std::string& content) {
    ASSERT_TRUE(os::replace_file_durably(path, content));
  }
  static void run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kOpenssl);
    ASSERT_EQ(run_program(arguments), 0) << "openssl " << arguments[1];
  }
  const os::ScratchDirectory& scratch_;
  std::string name_;
};

namespace {

using namespace std::chrono_literals;

/// With a passphrase that nobody needs to know.
constexpr const char* kEncryptedKey =
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
    "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgauhnhh8ennAICCAAw\n"
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEKC7SMNo30QmNy8boKDwux4EgZD8\n"
    "qTgJrAqbJKQ6bFuRTK/KX7QedIzXLt8jKDD8x5sHTI0Ad2fTvwuiDoZ84JlRhqWz\n"
    "rlsndiQEUUqnoxY3DN0uv3/D9ZIPykYcC8IwMUgxcowroP4+KcxT6cQSSLRjPK9c\n"
    "uKljx4Ho4LPKFWPMpiwmq+iQCIFS5+cfP0itrue/3US0NFyZ4E8BYlXrfi6iN+I=\n"
    "-----END ENCRYPTED PRIVATE KEY-----\n";

/// One etcd that wants a certificate of its clients.
class EtcdTlsTest : public testing::Test {
 protected:
  struct World {
    os::ScratchDirectory scratch;
    Authority authority{scratch, "ca"};
    Authority stranger{scratch, "stranger"};
    std::unique_ptr<EtcdProcess> server;
  };
  static std::unique_ptr<EtcdProcess> server_with(const World& world, const std::string& subject) {
    return std::make_unique<EtcdProcess>(
        std::vector<std::string>{"--cert-file", world.authority.certificate(subject), "--key-file",
                                 world.authority.key(subject), "--client-cert-auth", "--trusted-ca-file",
                                 world.authority.certificate("ca")},
        "https");
  }
  static void SetUpTestSuite() {
    if (::access(kEtcdProgram, X_OK) != 0 || ::access(kOpenssl, X_OK) != 0) return;
    world_ = std::make_unique<World>();
    world_->authority.sign("server", "IP:127.0.0.1,DNS:etcd.example");
    world_->authority.sign("client", "DNS:client");
    world_->stranger.sign("foreigner", "DNS:client");
    world_->server = server_with(*world_, "server");
    world_->server->start();
  }
  static void TearDownTestSuite() { world_.reset(); }
  void SetUp() override {
    CROFT_NEEDS_ETCD();
    if (::access(kOpenssl, X_OK) != 0) GTEST_SKIP() << "no " << kOpenssl << ": install openssl";
  }

  [[nodiscard]] static os::TlsFiles files() {
    os::TlsFiles files;
    files.ca_file = world_->authority.certificate("ca");
    files.certificate_file = world_->authority.certificate("client");
    files.key_file = world_->authority.key("client");
    return files;
  }
  [[nodiscard]] Result<TxnResponse> put_with(const os::TlsFiles& files, const EtcdProcess& server) {
    ClientOptions options;
    options.endpoints = {server.url()};
    options.security = os::make_tls(files);
    options.dial_timeout = 5s;
    const auto client = Client::make(std::move(options), clock_, random_).value();
    return client->txn(put_txn("tls", "1"), Deadline::after(clock_.now(), 10s));
  }
  /// A refusal that names all of `parts`.
  void expect_refusal(const Result<TxnResponse>& done, const std::vector<std::string>& parts) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::permission_denied) << done.error().message;
    for (const std::string& part : parts) {
      EXPECT_NE(done.error().message.find(part), std::string::npos) << part << " in: " << done.error().message;
    }
  }

  static std::unique_ptr<World> world_;
  os::SystemClock clock_;
  os::SystemRandom random_;
};
std::unique_ptr<EtcdTlsTest::World> EtcdTlsTest::world_;

TEST_F(EtcdTlsTest, BothSidesAreVerified) {
  const auto done = put_with(files(), *world_->server);
  EXPECT_TRUE(done) << done.error().message;
}

TEST_F(EtcdTlsTest, ANameInsteadOfTheAddress) {
  os::TlsFiles named = files();
  named.server_name = "etcd.example";
  EXPECT_TRUE(put_with(named, *world_->server));
  named.server_name = "other.example";
  expect_refusal(put_with(named, *world_->server), {"mismatch"});
}

TEST_F(EtcdTlsTest, AnotherAuthorityIsRefused) {
  os::TlsFiles foreign = files();
  foreign.ca_file = world_->stranger.certificate("stranger");
  expect_refusal(put_with(foreign, *world_->server), {foreign.ca_file, world_->server->url()});
}

TEST_F(EtcdTlsTest, OurCertificateIsAskedFor) {
  os::TlsFiles none = files();
  none.certificate_file.clear();
  none.key_file.clear();
  // Which alert depends on the Go that etcd was built with.
  expect_refusal(put_with(none, *world_->server), {"TLS", "alert"});
  os::TlsFiles foreign = files();
  foreign.certificate_file = world_->stranger.certificate("foreigner");
  foreign.key_file = world_->stranger.key("foreigner");
  expect_refusal(put_with(foreign, *world_->server), {"TLS", "alert"});
}

TEST_F(EtcdTlsTest, AnExpiredCertificateIsRefused) {
  world_->authority.sign("expired", "IP:127.0.0.1", "20200101000000Z", "20200201000000Z");
  const auto server = server_with(*world_, "expired");
  server->start();
  expect_refusal(put_with(files(), *server), {"expired"});
}

TEST_F(EtcdTlsTest, ACertificateForAnotherAddressIsRefused) {
  world_->authority.sign("elsewhere", "IP:127.0.0.2");
  const auto server = server_with(*world_, "elsewhere");
  server->start();
  expect_refusal(put_with(files(), *server), {"IP address mismatch"});
}

TEST_F(EtcdTlsTest, FilesThatAreWrongAreNamed) {
  os::TlsFiles wrong = files();
  wrong.ca_file = world_->scratch.file("none");
  const auto absent = put_with(wrong, *world_->server);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::unavailable);
  EXPECT_NE(absent.error().message.find(wrong.ca_file), std::string::npos) << absent.error().message;

  wrong = files();
  wrong.ca_file = files().key_file;
  expect_refusal(put_with(wrong, *world_->server), {wrong.ca_file, "no certificate"});
  wrong = files();
  wrong.key_file = files().certificate_file;
  expect_refusal(put_with(wrong, *world_->server), {wrong.key_file, "others can read", "chmod 640 " + wrong.key_file});
  wrong.key_file = world_->scratch.file("no.key");
  ASSERT_TRUE(os::replace_file_durably(wrong.key_file, "no key"));
  expect_refusal(put_with(wrong, *world_->server), {wrong.key_file, "no key"});
  // Nobody is asked for a passphrase.
  ASSERT_TRUE(os::replace_file_durably(wrong.key_file, kEncryptedKey));
  expect_refusal(put_with(wrong, *world_->server), {wrong.key_file, "passphrase", "openssl pkey -in"});
  wrong = files();
  wrong.certificate_file = world_->scratch.file("fifo");
  ASSERT_EQ(::mkfifo(wrong.certificate_file.c_str(), 0600), 0);
  expect_refusal(put_with(wrong, *world_->server), {wrong.certificate_file, "not a regular file"});
  wrong = files();
  wrong.key_file = world_->authority.key("server");
  expect_refusal(put_with(wrong, *world_->server), {wrong.key_file, "does not belong"});
  wrong = files();
  wrong.key_file.clear();
  const auto half = put_with(wrong, *world_->server);
  EXPECT_EQ(half.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(half.error().message.find("a certificate and its key, or neither"), std::string::npos);
}

TEST_F(EtcdTlsTest, PemMayBeATextInsteadOfAFile) {
  const auto content = [](const std::string& file) { return os::read_file(file, 1U << 20).value(); };
  os::TlsFiles text;
  text.ca_pem = content(files().ca_file);
  text.certificate_pem = content(files().certificate_file);
  text.key_pem = content(files().key_file);
  const auto done = put_with(text, *world_->server);
  EXPECT_TRUE(done) << done.error().message;
  // It wins over the file, and no message repeats it.
  os::TlsFiles wrong = files();
  wrong.ca_pem = "SECRET";
  expect_refusal(put_with(wrong, *world_->server), {"(CA in the configuration)", "no certificate"});
  wrong = text;
  wrong.key_pem = "SECRET";
  const auto refused = put_with(wrong, *world_->server);
  expect_refusal(refused, {"(key in the configuration)", "no key"});
  EXPECT_EQ(refused.error().message.find("SECRET"), std::string::npos);
  wrong = text;
  wrong.ca_pem = content(world_->stranger.certificate("stranger"));
  expect_refusal(put_with(wrong, *world_->server), {"(CA in the configuration)", world_->server->url()});
  wrong = text;
  wrong.key_pem.clear();
  EXPECT_EQ(put_with(wrong, *world_->server).error().code, ErrorCode::invalid_argument);
}

TEST_F(EtcdTlsTest, RenewedFilesAreUsedFromTheNextConnectionOn) {
  os::TlsFiles mine = files();
  mine.certificate_file = world_->scratch.file("mine.crt");
  mine.key_file = world_->scratch.file("mine.key");
  const auto copy = [](const std::string& from, const std::string& to) {
    ASSERT_TRUE(os::replace_file_durably(to, os::read_file(from, 1U << 20).value()));
  };
  copy(world_->stranger.certificate("foreigner"), mine.certificate_file);
  copy(world_->stranger.key("foreigner"), mine.key_file);
  ClientOptions options;
  options.endpoints = {world_->server->url()};
  options.security = os::make_tls(mine);
  const auto client = Client::make(std::move(options), clock_, random_).value();
  const auto range = [&] { return client->range(wire::etcd::range_of_key("tls"), Deadline::after(clock_.now(), 10s)); };
  EXPECT_EQ(range().error().code, ErrorCode::permission_denied);
  copy(files().certificate_file, mine.certificate_file);
  copy(files().key_file, mine.key_file);
  const auto now = range();
  EXPECT_TRUE(now) << now.error().message;
}

TEST_F(EtcdTlsTest, AServerWithoutTlsIsNoServer) {
  EtcdProcess plain;
  plain.start();
  ClientOptions options;
  options.endpoints = {"https://127.0.0.1:" + std::to_string(plain.port())};
  options.security = os::make_tls(files());
  const auto client = Client::make(std::move(options), clock_, random_).value();
  const auto range = client->range(wire::etcd::range_of_key("tls"), Deadline::after(clock_.now(), 10s));
  EXPECT_EQ(range.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace croft::store::etcd
