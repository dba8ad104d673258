#include <cstdlib>

#include <gtest/gtest.h>

#include "store/etcd/etcd_fixture.h"
#include "store/etcd/resuming_watch.h"

namespace croft::store::etcd {
namespace {

using namespace std::chrono_literals;
using wire::etcd::DeleteRequest;
using wire::etcd::PutRequest;
using What = WatchUpdate::What;

class EtcdWatchTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (::access(kEtcdProgram, X_OK) != 0) return;
    server_ = std::make_unique<EtcdProcess>();
    server_->start();
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    CROFT_NEEDS_ETCD();
    etcd_ = client_of(server_->url());
  }

  [[nodiscard]] std::unique_ptr<Client> client_of(const std::string& endpoint) {
    ClientOptions options;
    options.endpoints = {endpoint};
    options.dial_timeout = 2s;
    return Client::make(std::move(options), clock_, random_).value();
  }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }

  Revision put(const std::string& key, const std::string& value) {
    TxnRequest txn;
    txn.success = {PutRequest{key, value}};
    const auto done = etcd_->txn(txn, in(10s));
    EXPECT_TRUE(done) << done.error().message;
    return done ? done->revision : 0;
  }
  Revision remove(const std::string& key) {
    TxnRequest txn;
    txn.success = {DeleteRequest{key, "", false}};
    const auto done = etcd_->txn(txn, in(10s));
    EXPECT_TRUE(done) << done.error().message;
    return done ? done->revision : 0;
  }
  [[nodiscard]] std::unique_ptr<WatchStream> open() {
    auto stream = etcd_->open_watch(in(10s));
    EXPECT_TRUE(stream) << stream.error().message;
    return *std::move(stream);
  }
  static WatchCreate watch_of(std::int64_t id, const std::string& prefix, Revision start) {
    WatchCreate watch;
    watch.id = id;
    watch.key = prefix;
    watch.range_end = wire::etcd::end_of_prefix(prefix);
    watch.start_revision = start;
    return watch;
  }
  /// The next update that is neither idle nor a creation.
  template <class Stream>
  WatchUpdate next(Stream& stream) {
    for (;;) {
      auto update = stream.next(in(20s));
      EXPECT_TRUE(update) << update.error().message;
      if (!update) return {};
      EXPECT_NE(update->what, What::idle) << update->reason;
      if (update->what != What::created) return *std::move(update);
    }
  }

  static std::unique_ptr<EtcdProcess> server_;
  os::SystemClock clock_;
  os::SystemRandom random_;
  std::unique_ptr<Client> etcd_;
};
std::unique_ptr<EtcdProcess> EtcdWatchTest::server_;

TEST_F(EtcdWatchTest, TellsWhatWasWrittenSinceARevision) {
  const Revision first = put("since/a", "1");
  put("since/a", "2");
  remove("since/a");
  const auto stream = open();
  WatchCreate watch = watch_of(1, "since/", first);
  watch.previous = true;
  ASSERT_TRUE(stream->add(watch));
  std::vector<Event> events;
  while (events.size() < 3) {
    const WatchUpdate update = next(*stream);
    ASSERT_EQ(update.what, What::events);
    EXPECT_EQ(update.id, 1);
    events.insert(events.end(), update.events.begin(), update.events.end());
  }
  EXPECT_EQ(events[0].kv.value, "1");
  EXPECT_EQ(events[0].kv.mod_revision, first);
  EXPECT_FALSE(events[0].previous);
  EXPECT_EQ(events[1].previous.value().value, "1");
  EXPECT_EQ(events[2].type, Event::Type::deletion);
  EXPECT_EQ(events[2].kv.key, "since/a");
  EXPECT_EQ(events[2].previous.value().value, "2");
}

TEST_F(EtcdWatchTest, SeveralWatchesOnOneStream) {
  const Revision start = put("several", "x") + 1;
  const auto stream = open();
  ASSERT_TRUE(stream->add(watch_of(1, "several/a", start)));
  ASSERT_TRUE(stream->add(watch_of(2, "several/b", start)));
  put("several/a", "1");
  put("several/b", "1");
  std::map<std::int64_t, std::string> seen;
  while (seen.size() < 2) {
    const WatchUpdate update = next(*stream);
    ASSERT_EQ(update.what, What::events);
    for (const Event& event : update.events) seen[update.id] += event.kv.key;
  }
  EXPECT_EQ(seen[1], "several/a");
  EXPECT_EQ(seen[2], "several/b");

  ASSERT_TRUE(stream->cancel(1));
  const WatchUpdate update = next(*stream);
  EXPECT_EQ(update.what, What::canceled);
  EXPECT_EQ(update.id, 1);
}

TEST_F(EtcdWatchTest, IsIdleAtTheDeadline) {
  const auto stream = open();
  ASSERT_TRUE(stream->add(watch_of(1, "idle/", 0)));
  const auto created = stream->next(in(10s));
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(created->what, What::created);
  const auto idle = stream->next(in(50ms));
  ASSERT_TRUE(idle) << idle.error().message;
  EXPECT_EQ(idle->what, What::idle);
  put("idle/a", "1");
  EXPECT_EQ(next(*stream).what, What::events);
}

TEST_F(EtcdWatchTest, AWatchMayBeAddedWhileAnotherThreadWaits) {
  const auto stream = open();
  ASSERT_TRUE(stream->add(watch_of(1, "wait/1/", 0)));
  std::thread adder([&] { EXPECT_TRUE(stream->add(watch_of(2, "wait/2/", put("wait/2/a", "1")))); });
  EXPECT_EQ(next(*stream).id, 2);
  adder.join();
}

TEST_F(EtcdWatchTest, ATakenIdIsRefusedAloneAndTheOthersGoOn) {
  const auto stream = open();
  const Revision start = put("taken", "x") + 1;
  ASSERT_TRUE(stream->add(watch_of(7, "taken/", start)));
  ASSERT_TRUE(stream->add(watch_of(7, "taken/", start)));
  const WatchUpdate update = next(*stream);
  EXPECT_EQ(update.what, What::canceled);
  EXPECT_NE(update.reason, "");
  put("taken/a", "1");
  EXPECT_EQ(next(*stream).what, What::events);
}

TEST_F(EtcdWatchTest, ARevisionThatIsLargerThanAMessageComesWhole) {
  // 1.4 MiB is the most one transaction can be; with the records before it and two watchers' worth of keys it passes
  // the 2 MiB above which a server cuts an answer.
  TxnRequest txn;
  for (int i = 0; i < 14; ++i)
    txn.success.emplace_back(PutRequest{"piece/" + std::to_string(i), std::string(100'000, 'x')});
  const auto first = etcd_->txn(txn, in(10s));
  ASSERT_TRUE(first) << first.error().message;
  const auto second = etcd_->txn(txn, in(10s));
  ASSERT_TRUE(second) << second.error().message;
  const auto stream = open();
  WatchCreate watch = watch_of(1, "piece/", first->revision);
  watch.previous = true;
  ASSERT_TRUE(stream->add(watch));
  std::size_t events = 0;
  while (events < 28) {
    const WatchUpdate update = next(*stream);
    ASSERT_EQ(update.what, What::events);
    EXPECT_EQ(update.events.size() % 14, 0U) << "half a revision";
    events += update.events.size();
  }
}

TEST_F(EtcdWatchTest, ACompactedStartIsTold) {
  const Revision old = put("compacted/a", "1");
  const Revision now = put("compacted/a", "2");
  ASSERT_TRUE(etcd_->compact(now, in(10s)));
  ResumingWatch watch(*etcd_, clock_, random_);
  watch.watch(watch_of(1, "compacted/", old));
  const WatchUpdate update = next(watch);
  EXPECT_EQ(update.what, What::compacted);
  EXPECT_EQ(update.id, 1);
  EXPECT_EQ(update.compact_revision, now);
  watch.watch(watch_of(1, "compacted/", now));
  EXPECT_EQ(next(watch).events.at(0).kv.value, "2");
}

TEST_F(EtcdWatchTest, ResumesAfterALostConnectionWithoutGapOrRepetition) {
  os::Relay relay(os::Listener(), server_->port());
  const auto through_relay = client_of(relay.url());
  ResumingWatch watch(*through_relay, clock_, random_);
  watch.watch(watch_of(1, "resume/", put("resume", "x") + 1));
  for (int i = 0; i < 10; ++i) {
    const std::string value = std::to_string(i);
    put("resume/a", value);
    const WatchUpdate update = next(watch);
    ASSERT_EQ(update.what, What::events);
    ASSERT_EQ(update.events.size(), 1U);
    EXPECT_EQ(update.events[0].kv.value, value);
    if (i % 3 == 2) relay.cut();
  }
  EXPECT_EQ(watch.connects(), 4U);
}

TEST_F(EtcdWatchTest, OutlivesARestartOfTheServer) {
  EtcdProcess server;
  server.start();
  const auto etcd = client_of(server.url());
  TxnRequest txn;
  txn.success = {PutRequest{"restart", "1"}};
  const auto first = etcd->txn(txn, in(10s));
  ASSERT_TRUE(first) << first.error().message;
  ResumingWatch watch(*etcd, clock_, random_);
  watch.watch(watch_of(1, "restart", first->revision));
  EXPECT_EQ(next(watch).what, What::events);
  server.stop();
  const auto nobody = watch.next(in(200ms));
  ASSERT_TRUE(nobody) << nobody.error().message;
  EXPECT_EQ(nobody->what, What::idle);
  EXPECT_NE(nobody->reason, "");
  server.start();
  ASSERT_TRUE(etcd->txn(txn, in(20s)));
  EXPECT_EQ(next(watch).what, What::events);
}

TEST_F(EtcdWatchTest, ASilentServerIsNoticed) {
  EtcdProcess server;
  server.start();
  const auto stream = client_of(server.url())->open_watch(in(10s)).value();
  ASSERT_TRUE(stream->add(watch_of(1, "silent", 0)));
  server.freeze();
  const auto start = clock_.now().since_boot;
  Result<WatchUpdate> update = stream->next(in(60s));
  while (update && update->what == What::created) update = stream->next(in(60s));
  ASSERT_FALSE(update);
  EXPECT_EQ(update.error().code, ErrorCode::unavailable) << update.error().message;
  EXPECT_LT(clock_.now().since_boot - start, 30s);
  server.thaw();
}

TEST_F(EtcdWatchTest, PingsDoNotAnnoyTheServer) {
  if (std::getenv("CROFT_FULL") == nullptr) GTEST_SKIP() << "takes 20 s: set CROFT_FULL=1";
  const auto stream = open();
  ASSERT_TRUE(stream->add(watch_of(1, "quiet/", 0)));
  EXPECT_EQ(stream->next(in(10s))->what, What::created);
  const auto idle = stream->next(in(20s));  // three pings; a server that finds them too many says GOAWAY
  ASSERT_TRUE(idle) << idle.error().message;
  EXPECT_EQ(idle->what, What::idle);
  put("quiet/a", "1");
  EXPECT_EQ(next(*stream).what, What::events);
}

}  // namespace
}  // namespace croft::store::etcd
