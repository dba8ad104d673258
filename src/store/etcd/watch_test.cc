#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/etcd/etcd_fixture.h"
#include "store/etcd/etcd_store.h"

namespace croft::store::etcd {
namespace {

using namespace std::chrono_literals;
using wire::etcd::PutRequest;

class EtcdWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    CROFT_NEEDS_ETCD();
    etcd_ = client_of(shared_etcd().url());
  }

  [[nodiscard]] std::unique_ptr<Client> client_of(const std::string& endpoint) {
    return etcd::client_of({endpoint}, clock_, random_);
  }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }

  Revision put(const TxnRequest& txn) {
    const auto done = etcd_->txn(txn, in(10s));
    EXPECT_TRUE(done) << done.error().message;
    return done ? done->revision : 0;
  }
  Revision put(const std::string& key, const std::string& value) { return put({{}, {PutRequest{key, value}}, {}}); }
  [[nodiscard]] std::unique_ptr<WatchStream> stream_of(Client& client, const std::string& prefix, Revision start) {
    auto stream = client.open_watch(in(10s)).value();
    EXPECT_TRUE(stream->add({1, prefix, wire::etcd::end_of_prefix(prefix), start}));
    const auto created = stream->next(in(10s));
    EXPECT_TRUE(created && *created && (*created)->created);
    return stream;
  }

  os::SystemClock clock_;
  os::SystemRandom random_;
  std::unique_ptr<Client> etcd_;
};

TEST_F(EtcdWatchTest, IsIdleAtTheDeadline) {
  const auto stream = stream_of(*etcd_, "idle/", 0);
  EXPECT_FALSE(stream->next(in(50ms)).value());
  put("idle/a", "1");
  EXPECT_EQ(stream->next(in(20s)).value().value().events.at(0).kv.value, "1");
}

TEST_F(EtcdWatchTest, ARevisionThatIsLargerThanAMessageComesWhole) {
  // 1.4 MiB is the most one transaction can be; what was missed of two of them passes the 2 MiB above which a server
  // cuts an answer.
  TxnRequest txn;
  for (int i = 0; i < 14; ++i) {
    txn.success.emplace_back(PutRequest{"piece/" + std::to_string(i), std::string(100'000, 'x')});
  }
  const Revision first = put(txn);
  put(txn);
  const auto stream = stream_of(*etcd_, "piece/", first);
  std::size_t events = 0;
  while (events < 28) {
    const auto response = stream->next(in(20s)).value().value();
    EXPECT_EQ(response.events.size() % 14, 0U) << "half a revision";
    events += response.events.size();
  }
}

TEST_F(EtcdWatchTest, ASilentServerIsNoticed) {
  EtcdProcess server;
  server.start();
  const auto stream = stream_of(*client_of(server.url()), "silent", 0);
  server.freeze();
  const auto start = clock_.now().since_boot;
  const auto response = stream->next(in(60s));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::unavailable) << response.error().message;
  EXPECT_LT(clock_.now().since_boot - start, 30s);
  server.thaw();
}

TEST_F(EtcdWatchTest, PingsDoNotAnnoyTheServer) {
  if (std::getenv("CROFT_FULL") == nullptr) GTEST_SKIP() << "takes 20 s: set CROFT_FULL=1";
  const auto stream = stream_of(*etcd_, "quiet/", 0);
  EXPECT_FALSE(stream->next(in(20s)).value()) << "three pings; a server that finds them too many says GOAWAY";
  put("quiet/a", "1");
  EXPECT_TRUE(stream->next(in(20s)).value());
}

// ---------------------------------------------------------------- the store's

class EtcdStoreWatchTest : public EtcdWatchTest {
 protected:
  static Key key() { return core::handle_key("net.a"); }
  [[nodiscard]] Result<store::Revision> write(Store& store, std::uint32_t count) {
    const Write write{key(), core::Handle{"net.a", {{"10.0.0.0/26", count}}}, Condition::always()};
    return store.commit({&write, 1}, {}, in(10s));
  }
  /// The changes until some come.
  [[nodiscard]] Result<std::vector<Change>> next(Watch& watch) {
    const Deadline deadline = in(20s);
    for (;;) {
      auto changes = watch.next(deadline);
      if (!changes || !changes->empty() || deadline.passed(clock_.now())) return changes;
    }
  }
};

TEST_F(EtcdStoreWatchTest, ResumesAfterALostConnectionWithoutGapOrRepetition) {
  os::Relay relay(os::Listener(), shared_etcd().port());
  const auto writer = make_etcd_store(client_of(shared_etcd().url()), clock_, random_);
  const auto reader = make_etcd_store(client_of(relay.url()), clock_, random_);
  ASSERT_TRUE(write(*writer, 100));
  const auto from = reader->position(in(10s));
  ASSERT_TRUE(from) << from.error().message;
  const auto watch = reader->watch({{key()}, {}}, *from, in(10s)).value();
  for (std::uint32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(write(*writer, i + 1));
    const auto changes = next(*watch);
    ASSERT_TRUE(changes) << changes.error().message;
    ASSERT_EQ(changes->size(), 1U);
    EXPECT_EQ(std::get<core::Handle>(*changes->front().record->value).blocks.at("10.0.0.0/26"), i + 1);
    if (i % 3 == 2) relay.cut();
  }
  EXPECT_GE(relay.accepted(), 4);
}

TEST_F(EtcdStoreWatchTest, ComesBackAfterAnOutageThoughItsStepsAreShort) {
  EtcdProcess server;
  server.start();
  const auto store = make_etcd_store(client_of(server.url()), clock_, random_);
  ASSERT_TRUE(write(*store, 1));
  const auto watch = store->watch({{key()}, {}}, *store->position(in(10s)), in(10s)).value();
  const auto step = [&] { return watch->next(in(300ms)); };
  ASSERT_TRUE(step());
  server.stop();
  for (const Deadline outage = in(3s); !outage.passed(clock_.now());) ASSERT_TRUE(step());
  server.start();
  ASSERT_TRUE(write(*store, 2));
  std::size_t seen = 0;
  for (const Deadline limit = in(20s); seen == 0 && !limit.passed(clock_.now());) {
    const auto changes = step();
    ASSERT_TRUE(changes) << changes.error().message;
    seen += changes->size();
  }
  EXPECT_EQ(seen, 1U);
}

TEST_F(EtcdStoreWatchTest, ASilentServerProvesNothing) {
  EtcdProcess server;
  server.start();
  const auto store = make_etcd_store(client_of(server.url()), clock_, random_);
  ASSERT_TRUE(write(*store, 1));
  const auto start = store->position(in(10s));
  const auto watch = store->watch({{key()}, {}}, *start, in(10s)).value();
  const auto passes = [&](store::Revision position, std::chrono::nanoseconds span) {
    for (const Deadline limit = in(span); !limit.passed(clock_.now());) {
      EXPECT_TRUE(watch->next(in(100ms)));
      if (watch->has_passed(position)) return true;
    }
    return false;
  };
  ASSERT_TRUE(write(*store, 2));
  const auto before = store->position(in(10s));
  ASSERT_TRUE(passes(*before, 20s));
  ASSERT_TRUE(write(*store, 3));
  const auto position = store->position(in(10s));
  server.freeze();
  EXPECT_FALSE(passes(*position, 3s));
  EXPECT_TRUE(watch->has_passed(*before)) << "what was proven stays so";
  server.thaw();
  EXPECT_TRUE(passes(*position, 20s));
}

TEST_F(EtcdStoreWatchTest, ChangesThatWereCompactedAreTooOld) {
  constexpr const char* kEtcdctl = "/usr/bin/etcdctl";
  if (::access(kEtcdctl, X_OK) != 0) GTEST_SKIP() << "no " << kEtcdctl << ": install etcd-client";
  const auto store = make_etcd_store(client_of(shared_etcd().url()), clock_, random_);
  ASSERT_TRUE(write(*store, 1));
  const auto old = store->position(in(10s));
  const Revision now = put("compacted", "2");
  put("compacted", "3");
  ASSERT_EQ(run_program({kEtcdctl, "--endpoints=" + shared_etcd().url(), "compact", std::to_string(now + 1)}), 0);
  const auto watch = store->watch({{key()}, {}}, *old, in(10s)).value();
  const auto changes = next(*watch);
  ASSERT_FALSE(changes);
  EXPECT_EQ(changes.error().code, ErrorCode::too_old);
}

}  // namespace
}  // namespace croft::store::etcd
