#include "store/etcd/client.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "http/grpc_frame.h"
#include "http/http2_frames_fixture.h"
#include "store/etcd/etcd_fixture.h"

namespace croft::store::etcd {
namespace {

using namespace std::chrono_literals;
using os::http2_frame;
using os::Http2Type;
using wire::etcd::range_of_key;

/// Takes every call and answers one after the other with these bytes; when there are no more, with the last.
class BrokenMember {
 public:
  explicit BrokenMember(std::string answer) : BrokenMember(std::vector{std::move(answer)}) {}
  explicit BrokenMember(std::vector<std::string> answers)
      : answers_(std::move(answers)), acceptor_([this] { accept(); }) {}
  BrokenMember(const BrokenMember&) = delete;
  BrokenMember& operator=(const BrokenMember&) = delete;
  ~BrokenMember() {
    ::shutdown(listener_.socket.get(), SHUT_RDWR);
    acceptor_.join();
    for (const os::FileDescriptor& socket : sockets_) ::shutdown(socket.get(), SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
  }
  [[nodiscard]] std::string url() const { return listener_.url(); }
  [[nodiscard]] int answered() const { return answered_; }

 private:
  static constexpr std::size_t kHead = 9;  // of a frame of HTTP/2
  static constexpr std::size_t kPreface = 24;

  void accept() {
    for (;;) {
      os::FileDescriptor socket(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket.get() < 0) return;
      os::send_at_once(socket);
      sockets_.push_back(std::move(socket));
      threads_.emplace_back([this, number = sockets_.back().get()] { serve(number); });
    }
  }
  void serve(int socket) {
    const auto send = [&](const std::string& bytes) {
      static_cast<void>(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    };
    send(http2_frame(Http2Type::settings, 0, 0));
    std::string seen;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::recv(socket, buffer.data(), buffer.size(), 0)) > 0;) {
      seen.append(buffer.data(), static_cast<std::size_t>(got));
      if (seen.size() < kPreface) continue;
      std::size_t at = kPreface;
      const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(seen[at + i])}; };
      while (seen.size() >= at + kHead) {
        const std::size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
        if (seen.size() < at + kHead + size) break;
        const bool ends_a_call = byte(3) <= 1 && (byte(4) & 1) != 0;
        if (ends_a_call) {
          const std::string& answer = answers_[std::min(static_cast<std::size_t>(answered_++), answers_.size() - 1)];
          const auto stream = static_cast<std::uint32_t>(byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8));
          send(http2_frame(Http2Type::headers, os::kEndHeaders, stream, "\x88") +
               http2_frame(Http2Type::data, 0, stream, os::grpc_framed(answer)) +
               http2_frame(Http2Type::headers, os::kEndHeaders | os::kEndStream, stream,
                           os::hpack({{"grpc-status", "0"}})));
        }
        seen.erase(at, kHead + size);
      }
    }
  }

  const std::vector<std::string> answers_;
  const os::Listener listener_;
  std::atomic<int> answered_{0};
  std::list<os::FileDescriptor> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

TxnRequest create(const std::string& key, const std::string& value) {
  TxnRequest txn = put_txn(key, value);
  *txn.add_compare() = wire::etcd::absent(key);
  *txn.add_failure() = wire::etcd::to_get(range_of_key(key));
  return txn;
}
TxnRequest to_read(const std::string& key) {
  TxnRequest txn;
  *txn.add_success() = wire::etcd::to_get(range_of_key(key));
  return txn;
}

/// One etcd for all tests of the suite: each uses keys of its own.
class EtcdClientTest : public testing::Test {
 protected:
  void SetUp() override { CROFT_NEEDS_ETCD(); }

  [[nodiscard]] std::unique_ptr<Client> client_of(std::vector<std::string> endpoints) {
    return etcd::client_of(std::move(endpoints), clock_, random_);
  }
  [[nodiscard]] std::unique_ptr<Client> client() { return client_of({shared_etcd().url()}); }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }

  [[nodiscard]] std::string value_of(Client& client, const std::string& key) {
    const auto range = client.range(range_of_key(key), in(10s));
    if (!range) return "error: " + range.error().message;
    return range->kvs().empty() ? "absent" : range->kvs(0).value();
  }

  os::SystemClock clock_;
  os::SystemRandom random_;
};

TEST_F(EtcdClientTest, CreatesOnceAndReadsBack) {
  const auto etcd = client();
  const auto made = etcd->txn(create("create", "1"), in(10s));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->succeeded());
  EXPECT_TRUE(made->responses(0).has_response_put());

  const auto again = etcd->txn(create("create", "2"), in(10s));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->succeeded());
  const auto& there = again->responses(0).response_range().kvs(0);
  EXPECT_EQ(there.value(), "1");
  EXPECT_EQ(there.mod_revision(), made->header().revision());
  EXPECT_EQ(etcd->counts().requests, 2U);
  EXPECT_EQ(etcd->counts().dials, 1U);
}

TEST_F(EtcdClientTest, WhatEtcdRefusesWasNotApplied) {
  const auto etcd = client();
  EXPECT_EQ(etcd->txn(put_txn("large", std::string(2U << 20, 'x')), in(10s)).error().code, ErrorCode::storage_full);
  EXPECT_EQ(value_of(*etcd, "large"), "absent");
  TxnRequest twice = put_txn("twice", "1");
  *twice.add_success() = wire::etcd::to_put("twice", "2");
  EXPECT_EQ(etcd->txn(twice, in(10s)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(etcd->txn(put_txn("", "x"), in(10s)).error().code, ErrorCode::invalid_argument);
}

TEST_F(EtcdClientTest, LargeAnswersComeWhole) {
  const auto etcd = client();
  const std::string value(1U << 20, 'v');
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(etcd->txn(put_txn("many/" + std::to_string(i), value), in(20s)));
  const auto range = etcd->range(wire::etcd::range_of_prefix("many/"), in(20s));
  ASSERT_TRUE(range) << range.error().message;
  ASSERT_EQ(range->kvs_size(), 12);
  EXPECT_EQ(range->kvs(11).value(), value);

  ClientOptions options;
  options.endpoints = {shared_etcd().url()};
  options.response_bytes_max = 4U << 20;
  const auto small = Client::make(std::move(options), clock_, random_).value();
  EXPECT_EQ(small->range(wire::etcd::range_of_prefix("many/"), in(20s)).error().code, ErrorCode::unavailable);
  EXPECT_EQ(value_of(*small, "many/1"), value) << "it goes on after that";
}

TEST_F(EtcdClientTest, AnEndpointWithoutServerCostsNothing) {
  std::string dead;
  {
    const os::Listener closed_at_once;
    dead = closed_at_once.url();
  }
  for (int i = 0; i < 4; ++i) {  // it begins with either
    const auto etcd = client_of({dead, shared_etcd().url()});
    const auto done = etcd->txn(put_txn("rotate", "1"), in(10s));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(etcd->counts().requests, 1U);
  }
  const auto nobody = client_of({dead})->txn(put_txn("rotate", "2"), in(10s));
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::unavailable);
  EXPECT_NE(nobody.error().message.find(dead), std::string::npos) << nobody.error().message;
}

TEST_F(EtcdClientTest, AMemberThatNeverAnswersGetsNoWrite) {
  const os::Listener silent;  // the kernel takes connections
  for (int i = 0; i < 4; ++i) {
    const auto etcd = client_of({silent.url(), shared_etcd().url()});
    const auto done = etcd->txn(put_txn("silent", std::to_string(i)), in(10s));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(etcd->counts().requests, 1U) << "nothing went to the silent one";
    EXPECT_EQ(value_of(*etcd, "silent"), std::to_string(i));
  }
  const auto etcd = client_of({silent.url()});
  EXPECT_EQ(etcd->txn(put_txn("silent", "x"), in(300ms)).error().code, ErrorCode::deadline_exceeded);
  EXPECT_EQ(etcd->range(range_of_key("silent"), in(300ms)).error().code, ErrorCode::deadline_exceeded);
}

/// What a member may answer that is none, by name.
std::vector<std::pair<std::string, std::string>> broken_answers() {
  const auto header = [](const std::string& revision) {
    return "\x0a" + std::string(1, static_cast<char>(5 + revision.size())) + "\x08\x01\x10\x01\x18" + revision;
  };
  return {{"garbage", std::string(1000, '\xff')},
          {"nothing", ""},
          {"too large", std::string(8192, '\0')},
          {"no revision", header(std::string(1, '\0'))},
          {"a revision that no store has", header("\xff\xff\xff\xff\xff\xff\xff\xff\x7f")},
          {"a condition that failed, where there was none", header("\x07")}};
}

TEST_F(EtcdClientTest, AMemberWhoseAnswersAreNoneIsPassedOver) {
  ASSERT_TRUE(client()->txn(put_txn("broken", "0"), in(10s)));
  for (const auto& [what, answer] : broken_answers()) {
    const BrokenMember broken(answer);
    ClientOptions options;
    options.endpoints = {broken.url(), shared_etcd().url()};
    options.response_bytes_max = 4096;
    const TxnRequest read = to_read("broken");
    for (int i = 0; i < 4; ++i) {  // it begins with either
      const auto etcd = Client::make(options, clock_, random_).value();
      const auto found = etcd->txn(read, in(10s));
      EXPECT_TRUE(found) << what << ": " << (found ? "" : found.error().message);
      const int asked = broken.answered();
      for (int k = 0; k < 3; ++k) EXPECT_TRUE(etcd->txn(put_txn("broken", "1"), in(10s))) << what;
      EXPECT_EQ(broken.answered(), asked) << what << ": it is left";
    }
    if (what.starts_with("a condition")) continue;
    for (int i = 0; i < 4; ++i) {
      const auto etcd = Client::make(options, clock_, random_).value();
      const auto found = etcd->range(range_of_key("broken"), in(10s));
      EXPECT_TRUE(found) << what << ": " << (found ? "" : found.error().message);
    }
  }
}

TEST_F(EtcdClientTest, WhereAllMembersAnswerNonsenseEachIsNamed) {
  for (const auto& [what, answer] : broken_answers()) {
    const BrokenMember one(answer);
    const BrokenMember other(answer);
    ClientOptions options;
    options.endpoints = {one.url(), other.url()};
    options.response_bytes_max = 4096;
    const auto etcd = Client::make(options, clock_, random_).value();
    const TxnRequest read = to_read("broken");
    const auto found = etcd->txn(read, in(10s));
    ASSERT_FALSE(found) << what;
    EXPECT_EQ(found.error().code, ErrorCode::unavailable) << what << ": " << found.error().message;
    for (const std::string& url : {one.url(), other.url()}) {
      EXPECT_NE(found.error().message.find(url), std::string::npos) << what << ": " << found.error().message;
    }
    const int asked = one.answered() + other.answered();
    EXPECT_EQ(asked, 2) << what;
    TxnRequest change = create("broken", "2");
    const auto changed = etcd->txn(change, in(10s));
    ASSERT_FALSE(changed) << what;
    EXPECT_EQ(changed.error().code, ErrorCode::unknown_outcome) << what << ": " << changed.error().message;
    EXPECT_EQ(one.answered() + other.answered(), asked + 1) << "a write is sent once";
  }
}

/// Nothing found, by a cluster that is at a revision.
std::string nothing_found(char cluster, char revision) {
  return std::string("\x0a\x06\x08") + cluster + "\x10\x01\x18" + revision;
}

TEST_F(EtcdClientTest, RevisionsThatGoBackAndAnotherClusterAreAnotherHistory) {
  const BrokenMember member({nothing_found(1, 7), nothing_found(1, 7), nothing_found(1, 9), nothing_found(1, 8),
                             nothing_found(2, 9), nothing_found(2, 9)});
  const auto etcd = client_of({member.url()});
  const auto ask = [&] {
    const auto answer = etcd->range(range_of_key("a"), in(10s));
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? answer->header().revision() : 0;
  };
  const std::uint64_t first = etcd->history();
  EXPECT_EQ(ask(), 7);
  EXPECT_EQ(ask(), 7);
  EXPECT_EQ(ask(), 9);
  EXPECT_EQ(etcd->history(), first);
  EXPECT_EQ(ask(), 8);
  EXPECT_EQ(etcd->history(), first + 1);
  EXPECT_EQ(ask(), 9);
  EXPECT_EQ(etcd->history(), first + 2) << "another cluster";
  EXPECT_EQ(ask(), 9);
  EXPECT_EQ(etcd->history(), first + 2);
}

TEST_F(EtcdClientTest, ALostReplyIsAnUnknownOutcome) {
  const auto direct = client();
  os::Relay relay(os::Listener(), shared_etcd().port());
  const auto etcd = client_of({relay.url()});
  ASSERT_TRUE(etcd->txn(put_txn("lost", "0"), in(10s)));
  relay.lose_answers(true);
  std::thread cutter([&] {
    while (value_of(*direct, "lost") != "1") std::this_thread::yield();
    relay.cut();
  });
  const auto lost = etcd->txn(put_txn("lost", "1"), in(30s));
  cutter.join();
  relay.lose_answers(false);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::unknown_outcome) << lost.error().message;
  EXPECT_EQ(value_of(*etcd, "lost"), "1") << "a new connection";
}

TEST_F(EtcdClientTest, ATimeoutOfAWriteThatWasSentIsAnUnknownOutcome) {
  os::Relay relay(os::Listener(), shared_etcd().port());
  const auto etcd = client_of({relay.url()});
  ASSERT_TRUE(etcd->txn(put_txn("late", "0"), in(10s)));
  relay.lose_requests(true);
  const auto lost = etcd->txn(put_txn("late", "1"), in(200ms));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::unknown_outcome) << lost.error().message;
  EXPECT_EQ(value_of(*client(), "late"), "0");
  EXPECT_EQ(etcd->counts().requests, 2U) << "not sent twice";
}

TEST_F(EtcdClientTest, AReadIsAskedAgainElsewhere) {
  os::Relay relay(os::Listener(), shared_etcd().port());
  ClientOptions options;
  options.endpoints = {relay.url(), relay.url()};  // two members, as far as it knows
  options.read_timeout = 300ms;
  const auto etcd = Client::make(std::move(options), clock_, random_).value();
  ASSERT_TRUE(etcd->txn(put_txn("reread", "0"), in(10s)));
  relay.lose_answers(true);
  std::thread healer([&] {
    while (relay.accepted() < 2) std::this_thread::yield();
    relay.lose_answers(false);
    relay.cut();
  });
  EXPECT_EQ(value_of(*etcd, "reread"), "0");
  healer.join();
  EXPECT_GE(etcd->counts().requests, 3U);
}

TEST_F(EtcdClientTest, AConnectionThatEndedWhileIdleIsReplacedBeforeAWrite) {
  os::Relay relay(os::Listener(), shared_etcd().port());
  const auto etcd = client_of({relay.url()});
  for (int i = 0; i < 20; ++i) {
    const auto done = etcd->txn(put_txn("idle", std::to_string(i)), in(10s));
    ASSERT_TRUE(done) << done.error().message;
    relay.cut();
  }
  EXPECT_EQ(relay.accepted(), 20);
  EXPECT_EQ(etcd->counts().requests, 20U);
}

TEST_F(EtcdClientTest, WorksOverAUnixSocket) {
  const os::ScratchDirectory scratch;
  os::Relay relay(os::Listener(scratch.file("socket")), shared_etcd().port());
  const auto etcd = client_of({"unix:" + scratch.file("socket")});
  const auto done = etcd->txn(put_txn("unix", "1"), in(10s));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(value_of(*etcd, "unix"), "1");
  EXPECT_EQ(client_of({"unix:" + scratch.file("none")})->range(range_of_key("a"), in(1s)).error().code,
            ErrorCode::unavailable);
}

TEST(EtcdClientOptions, WrongEndpointsAreNamed) {
  os::SystemClock clock;
  os::SystemRandom random;
  for (const char* endpoint : {"", "10.0.0.1:2379", "http://etcd.local:2379", "http://10.0.0.1",
                               "https://10.0.0.1:2379", "http://10.0.0.1:2379/path", "http://10.0.0.1:0"}) {
    ClientOptions options;
    options.endpoints = {endpoint};
    const auto made = Client::make(std::move(options), clock, random);
    ASSERT_FALSE(made) << endpoint;
    EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(made.error().message.find(endpoint), std::string::npos) << made.error().message;
  }
  EXPECT_FALSE(Client::make({}, clock, random));
}

/// A cluster of its own for what would disturb the others.
class EtcdAloneTest : public EtcdClientTest {};

TEST_F(EtcdAloneTest, AFrozenMemberCostsAReadItsTimeoutAndAWriteItsCertainty) {
  EtcdProcess frozen;
  EtcdProcess other;
  frozen.start();
  other.start();
  ClientOptions options;
  options.endpoints = {frozen.url(), other.url()};
  options.dial_timeout = 300ms;
  options.read_timeout = 300ms;
  options.request_timeout = 600ms;
  std::unique_ptr<Client> etcd;
  do {  // one that is connected to the member that freezes
    etcd = Client::make(options, clock_, random_).value();
    ASSERT_TRUE(etcd->txn(put_txn("where", "x"), in(10s)));
  } while (value_of(*client_of({frozen.url()}), "where") != "x");
  frozen.freeze();
  EXPECT_EQ(etcd->txn(put_txn("a", "1"), in(10s)).error().code, ErrorCode::unknown_outcome) << "it may come to it yet";
  const auto next = etcd->txn(put_txn("b", "1"), in(10s));
  EXPECT_TRUE(next) << next.error().message;
  EXPECT_EQ(value_of(*client_of({other.url()}), "b"), "1") << "the next went to the other";
  frozen.thaw();
}

TEST_F(EtcdAloneTest, GoesOnAfterARestart) {
  EtcdProcess server;
  server.start();
  const auto etcd = client_of({server.url()});
  ASSERT_TRUE(etcd->txn(put_txn("restart", "1"), in(10s)));
  server.stop();
  EXPECT_EQ(etcd->txn(put_txn("restart", "2"), in(10s)).error().code, ErrorCode::unavailable) << "it was not sent";
  server.start();
  EXPECT_EQ(value_of(*etcd, "restart"), "1");
}

TEST_F(EtcdAloneTest, AFullQuotaIsTold) {
  EtcdProcess server({"--quota-backend-bytes", "200000"});
  server.start();
  const auto etcd = client_of({server.url()});
  Result<TxnResponse> full = fail(ErrorCode::internal, "");
  for (int i = 0; i < 5000; ++i) {  // etcd measures its file every 100 ms
    full = etcd->txn(put_txn("full/" + std::to_string(i), std::string(10'000, 'x')), in(10s));
    if (!full) break;
  }
  ASSERT_FALSE(full);
  EXPECT_TRUE(is_no_space(full.error())) << full.error().message;
  EXPECT_EQ(full.error().code, ErrorCode::unknown_outcome);
  EXPECT_EQ(value_of(*etcd, "full/0"), std::string(10'000, 'x')) << "reads go on";
  TxnRequest remove;
  *remove.add_success() = wire::etcd::to_delete("full/0");
  EXPECT_TRUE(etcd->txn(remove, in(10s))) << "and so do deletions";
}

TEST_F(EtcdAloneTest, LogsInWhereItIsAskedFor) {
  constexpr const char* kEtcdctl = "/usr/bin/etcdctl";
  if (::access(kEtcdctl, X_OK) != 0) GTEST_SKIP() << "no " << kEtcdctl << ": install etcd-client";
  EtcdProcess server;
  server.start();
  const std::string endpoints = "--endpoints=" + server.url();
  const auto etcdctl = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {kEtcdctl, endpoints});
    return run_program(words);
  };
  ASSERT_EQ(etcdctl({"user", "add", "root:secret"}), 0);
  ASSERT_EQ(etcdctl({"role", "add", "root"}), 0);
  ASSERT_EQ(etcdctl({"user", "grant-role", "root", "root"}), 0);
  ASSERT_EQ(etcdctl({"user", "add", "guest:secret"}), 0);
  ASSERT_EQ(etcdctl({"auth", "enable"}), 0);
  const auto as = [&](const std::string& user, const std::string& password) {
    ClientOptions options;
    options.endpoints = {server.url()};
    options.user = user;
    options.password = password;
    return Client::make(std::move(options), clock_, random_).value();
  };
  EXPECT_EQ(as("", "")->txn(put_txn("auth", "1"), in(10s)).error().code, ErrorCode::permission_denied);
  EXPECT_EQ(as("root", "wrong")->txn(put_txn("auth", "1"), in(10s)).error().code, ErrorCode::permission_denied);
  EXPECT_EQ(as("guest", "secret")->txn(put_txn("auth", "1"), in(10s)).error().code, ErrorCode::permission_denied);
  const auto root = as("root", "secret");
  const auto done = root->txn(put_txn("auth", "1"), in(10s));
  ASSERT_TRUE(done) << done.error().message;
  const auto stream = root->open_watch(in(10s));
  ASSERT_TRUE(stream) << stream.error().message;
  WatchCreate watch;
  watch.set_watch_id(1);
  watch.set_key("auth");
  watch.set_start_revision(done->header().revision());
  ASSERT_TRUE((*stream)->add(watch));
  EXPECT_TRUE((*stream)->next(in(10s)).value().value().created());

  // Rights that were changed make every token too old, and the client gets another.
  ASSERT_EQ(etcdctl({"--user=root:secret", "role", "add", "more"}), 0);
  const auto after = root->txn(put_txn("auth", "2"), in(10s));
  EXPECT_TRUE(after) << after.error().message;
}

}  // namespace

namespace {

TEST(Versions, ThoseWithAnswersInOrderAreKnown) {
  for (const char* const version : {"3.4.25", "3.4.30", "3.5.8", "3.5.21", "3.6.0", "3.6.0-rc.1", "4.0.0"}) {
    EXPECT_TRUE(answers_in_order(version)) << version;
  }
  for (const char* const version : {"3.4.24", "3.4.9", "3.5.0", "3.5.7", "3.3.30", "2.9.9", "", "3.6", "x.y.z"}) {
    EXPECT_FALSE(answers_in_order(version)) << version;
  }
}

using os::GrpcCode;
using os::GrpcStatus;

GrpcStatus said(GrpcCode code, std::string message) { return {code, std::move(message), true, false}; }
GrpcStatus lost(GrpcCode code, bool surely_not_processed) { return {code, "lost", false, surely_not_processed}; }

struct Case {
  GrpcStatus status;
  ErrorCode of_read;
  ErrorCode of_write;
  bool read_again = false;
  bool write_again = false;
};

TEST(Verdict, OnlyWhatProvesThatNothingWasWrittenIsNotUnknown) {
  using enum ErrorCode;
  const std::vector<Case> cases = {
      // Refusals, in etcd's own words.
      {said(GrpcCode::invalid_argument, "etcdserver: request is too large"), storage_full, storage_full},
      {said(GrpcCode::invalid_argument, "etcdserver: duplicate key given in txn request"), invalid_argument,
       invalid_argument},
      {said(GrpcCode::invalid_argument, "etcdserver: user name is empty"), permission_denied, permission_denied},
      {said(GrpcCode::permission_denied, "etcdserver: permission denied"), permission_denied, permission_denied},
      {said(GrpcCode::unauthenticated, "etcdserver: invalid auth token"), permission_denied, permission_denied},
      {said(GrpcCode::out_of_range, "etcdserver: mvcc: required revision has been compacted"), conflict, conflict},
      {said(GrpcCode::out_of_range, "etcdserver: mvcc: required revision is a future revision"), invalid_argument,
       invalid_argument},
      {said(GrpcCode::resource_exhausted, "grpc: received message larger than max (2 vs. 1)"), storage_full,
       storage_full},
      {said(GrpcCode::resource_exhausted, "etcdserver: too many requests"), unavailable, unavailable, true, true},
      {said(GrpcCode::unimplemented, "unknown service"), invalid_argument, invalid_argument},
      // Said after the write may have been proposed.
      {said(GrpcCode::unavailable, "etcdserver: request timed out"), unavailable, unknown_outcome, true},
      {said(GrpcCode::unavailable, "etcdserver: leader changed"), unavailable, unknown_outcome, true},
      {said(GrpcCode::deadline_exceeded, "context deadline exceeded"), unavailable, unknown_outcome, true},
      {said(GrpcCode::resource_exhausted, "etcdserver: mvcc: database space exceeded"), storage_full, unknown_outcome},
      {said(GrpcCode::data_loss, "etcdserver: corrupt cluster"), corrupt, unknown_outcome, true},
      {said(GrpcCode::unknown, "?"), unavailable, unknown_outcome, true},
      {said(GrpcCode::internal, "?"), unavailable, unknown_outcome, true},
      {said(GrpcCode::cancelled, "?"), unavailable, unknown_outcome, true},
      {said(GrpcCode::aborted, "?"), unavailable, unknown_outcome, true},
      // Lost on the way.
      {lost(GrpcCode::unavailable, false), unavailable, unknown_outcome, true},
      {lost(GrpcCode::unavailable, true), unavailable, unavailable, true, true},
      {lost(GrpcCode::deadline_exceeded, false), deadline_exceeded, unknown_outcome, true},
      {lost(GrpcCode::deadline_exceeded, true), deadline_exceeded, deadline_exceeded, true, true},
      {lost(GrpcCode::internal, false), unavailable, unknown_outcome, true},
      {lost(GrpcCode::resource_exhausted, false), unavailable, unknown_outcome, true},
      {lost(GrpcCode::resource_exhausted, true), storage_full, storage_full},
      {lost(GrpcCode::unknown, false), unavailable, unknown_outcome, true},
  };
  for (const Case& c : cases) {
    const std::string what = c.status.message + " " + std::string(name_of(c.status.code));
    const Verdict read = verdict_on(c.status, false);
    const Verdict write = verdict_on(c.status, true);
    EXPECT_EQ(name_of(read.error.code), name_of(c.of_read)) << what;
    EXPECT_EQ(name_of(write.error.code), name_of(c.of_write)) << what;
    EXPECT_EQ(read.try_again, c.read_again) << what;
    EXPECT_EQ(write.try_again, c.write_again) << what;
    EXPECT_FALSE(write.try_again && write.error.code == unknown_outcome) << what;
    EXPECT_NE(read.error.message.find(c.status.message), std::string::npos) << "etcd's words are kept";
  }
}

TEST(Verdict, AnAnswerThatIsNoneSaysThatTheMemberIsBroken) {
  const Error garbage{ErrorCode::corrupt, "no TxnResponse", {}};
  EXPECT_TRUE(verdict_on_nonsense(garbage, false).try_again);
  EXPECT_EQ(verdict_on_nonsense(garbage, false).error.code, ErrorCode::unavailable);
  EXPECT_FALSE(verdict_on_nonsense(garbage, true).try_again);
  EXPECT_EQ(verdict_on_nonsense(garbage, true).error.code, ErrorCode::unknown_outcome);
  EXPECT_TRUE(verdict_on(lost(GrpcCode::internal, false), false).is_broken);
  EXPECT_TRUE(verdict_on(lost(GrpcCode::resource_exhausted, false), true).is_broken);
  EXPECT_FALSE(verdict_on(lost(GrpcCode::resource_exhausted, true), true).is_broken) << "the request was too large";
  EXPECT_FALSE(verdict_on(lost(GrpcCode::unavailable, false), false).is_broken);
}

TEST(Verdict, WhatCallersAskAbout) {
  const auto compacted = said(GrpcCode::out_of_range, "etcdserver: mvcc: required revision has been compacted");
  EXPECT_FALSE(is_no_space(verdict_on(compacted, false).error));
  const auto full = said(GrpcCode::resource_exhausted, "etcdserver: mvcc: database space exceeded");
  EXPECT_TRUE(is_no_space(verdict_on(full, true).error));
  EXPECT_TRUE(verdict_on(said(GrpcCode::unauthenticated, "etcdserver: invalid auth token"), true).log_in_again);
}

}  // namespace
}  // namespace croft::store::etcd
