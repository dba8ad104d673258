#include <cstdlib>
#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/etcd/etcd_fixture.h"
#include "store/etcd/etcd_store.h"

namespace croft::store::etcd {
namespace {

using namespace std::chrono_literals;

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
    return done ? done->header().revision() : 0;
  }
  Revision put(const std::string& key, const std::string& value) { return put(put_txn(key, value)); }
  [[nodiscard]] std::unique_ptr<WatchStream> stream_of(Client& client, const std::string& prefix, Revision start) {
    auto stream = client.open_watch(in(10s)).value();
    WatchCreate watch;
    watch.set_watch_id(1);
    watch.set_key(prefix);
    watch.set_range_end(wire::etcd::end_of_prefix(prefix));
    watch.set_start_revision(start);
    EXPECT_TRUE(stream->add(watch));
    const auto created = stream->next(in(10s));
    EXPECT_TRUE(created && *created && (*created)->created());
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
  EXPECT_EQ(stream->next(in(20s)).value().value().events(0).kv().value(), "1");
}

TEST_F(EtcdWatchTest, ARevisionThatIsLargerThanAMessageComesWhole) {
  // 1.4 MiB is the most one transaction can be; what was missed of two of them passes the 2 MiB above which a server
  // cuts an answer.
  TxnRequest txn;
  for (int i = 0; i < 14; ++i) {
    *txn.add_success() = wire::etcd::to_put("piece/" + std::to_string(i), std::string(100'000, 'x'));
  }
  const Revision first = put(txn);
  put(txn);
  const auto stream = stream_of(*etcd_, "piece/", first);
  int events = 0;
  while (events < 28) {
    const auto response = stream->next(in(20s)).value().value();
    EXPECT_EQ(response.events_size() % 14, 0) << "half a revision";
    events += response.events_size();
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
      if (watch->is_complete_up_to(position)) return true;
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
  EXPECT_TRUE(watch->is_complete_up_to(*before)) << "what was proven stays so";
  server.thaw();
  EXPECT_TRUE(passes(*position, 20s));
}

/// What a stream does with the answers to ask_progress(), and with events.
struct Script {
  bool drops_answers = false;
  bool holds_events = false;  ///< until the second answer: they come just before it
  int asked = 0, answers = 0;
  std::deque<WatchResponse> held{}, ready{};
};

/// A real client whose streams keep to a script.
class ScriptedClient final : public Client {
 public:
  ScriptedClient(std::unique_ptr<Client> real, Script& script) : real_(std::move(real)), script_(script) {}
  [[nodiscard]] Result<RangeResponse> range(const RangeRequest& request, Deadline deadline) override {
    return real_->range(request, deadline);
  }
  [[nodiscard]] Result<TxnResponse> txn(const TxnRequest& request, Deadline deadline) override {
    return real_->txn(request, deadline);
  }
  [[nodiscard]] std::uint64_t history() const override { return real_->history(); }
  [[nodiscard]] Counts counts() const override { return real_->counts(); }
  [[nodiscard]] Result<std::unique_ptr<WatchStream>> open_watch(Deadline deadline) override {
    TRY(auto stream, real_->open_watch(deadline));
    return std::make_unique<Stream>(std::move(stream), script_);
  }

 private:
  class Stream final : public WatchStream {
   public:
    Stream(std::unique_ptr<WatchStream> real, Script& script) : real_(std::move(real)), script_(script) {}
    [[nodiscard]] Result<void> add(const WatchCreate& watch) override { return real_->add(watch); }
    [[nodiscard]] Result<void> cancel(std::int64_t id) override { return real_->cancel(id); }
    [[nodiscard]] bool answers_in_order(Deadline) override { return false; }
    [[nodiscard]] Result<void> ask_progress() override {
      ++script_.asked;
      return real_->ask_progress();
    }
    [[nodiscard]] Result<std::optional<WatchResponse>> next(Deadline deadline) override {
      std::deque<WatchResponse>& ready = script_.ready;
      if (ready.empty()) {
        TRY(auto response, real_->next(deadline));
        if (!response) return std::optional<WatchResponse>();
        const bool is_answer =
            response->watch_id() == wire::etcd::kAllWatches && !response->created() && !response->canceled();
        if (is_answer && script_.drops_answers) return std::optional<WatchResponse>();
        if (is_answer && ++script_.answers == 2) std::swap(ready, script_.held);
        const bool is_held = script_.holds_events && script_.answers < 2 && !response->events().empty();
        (is_held ? script_.held : ready).push_back(*std::move(response));
      }
      if (ready.empty()) return std::optional<WatchResponse>();
      WatchResponse given = std::move(ready.front());
      ready.pop_front();
      return std::optional(std::move(given));
    }

   private:
    const std::unique_ptr<WatchStream> real_;
    Script& script_;
  };

  const std::unique_ptr<Client> real_;
  Script& script_;
};

TEST_F(EtcdStoreWatchTest, AnOldServerIsAskedOneQuestionAtATime) {
  Script script{.drops_answers = true};
  const auto store =
      make_etcd_store(std::make_unique<ScriptedClient>(client_of(shared_etcd().url()), script), clock_, random_);
  ASSERT_TRUE(write(*store, 1));
  const auto position = store->position(in(10s));
  const auto watch = store->watch({{key()}, {}}, *position, in(10s)).value();
  for (const Deadline limit = in(3s); !limit.passed(clock_.now());) {
    ASSERT_TRUE(watch->next(in(100ms)));
    EXPECT_FALSE(watch->is_complete_up_to(*position));
  }
  EXPECT_EQ(script.asked, 1);
}

TEST_F(EtcdStoreWatchTest, AnswersThatOvertakeAnEventProveNothing) {
  Script script{.holds_events = true};
  const auto store =
      make_etcd_store(std::make_unique<ScriptedClient>(client_of(shared_etcd().url()), script), clock_, random_);
  ASSERT_TRUE(write(*store, 1));
  const auto watch = store->watch({{key()}, {}}, *store->position(in(10s)), in(10s)).value();
  ASSERT_TRUE(watch->next(in(100ms)));
  ASSERT_TRUE(write(*store, 2));
  const auto position = store->position(in(10s));
  const auto passes = [&](int answers) {
    for (const Deadline limit = in(20s); !limit.passed(clock_.now());) {
      EXPECT_TRUE(watch->next(in(100ms)));
      if (watch->is_complete_up_to(*position)) return true;
      if (script.answers == answers && script.ready.empty()) return false;
    }
    return false;
  };
  EXPECT_FALSE(passes(2)) << "others may wait as the event did";
  EXPECT_EQ(script.answers, 2);
  EXPECT_TRUE(passes(4));
}

TEST_F(EtcdStoreWatchTest, AnOldServerProvesNothingAfterALostConnection) {
  os::Relay relay(os::Listener(), shared_etcd().port());
  const auto store = make_etcd_store(client_of(relay.url()), clock_, random_);
  ASSERT_TRUE(write(*store, 1));
  const auto position = store->position(in(10s));
  const auto watch = store->watch({{key()}, {}}, *position, in(10s)).value();
  bool is_passed = false;
  for (const Deadline limit = in(20s); !is_passed && !limit.passed(clock_.now());) {
    ASSERT_TRUE(watch->next(in(100ms)));
    is_passed = watch->is_complete_up_to(*position);
  }
  ASSERT_TRUE(is_passed);
  relay.cut();
  ASSERT_TRUE(write(*store, 2));
  const auto changes = next(*watch);
  if (etcd_->open_watch(in(10s)).value()->answers_in_order(in(10s))) {
    ASSERT_TRUE(changes) << changes.error().message;
    EXPECT_EQ(changes->size(), 1U);
  } else {
    ASSERT_FALSE(changes);
    EXPECT_EQ(changes.error().code, ErrorCode::too_old) << changes.error().message;
  }
}

TEST_F(EtcdStoreWatchTest, AWatchThatHasResumedOnAnOldServerProvesNothing) {
  if (etcd_->open_watch(in(10s)).value()->answers_in_order(in(10s))) GTEST_SKIP() << "this etcd is none of those";
  os::Relay relay(os::Listener(), shared_etcd().port());
  const auto store = make_etcd_store(client_of(relay.url()), clock_, random_);
  ASSERT_TRUE(write(*store, 1));
  const auto position = store->position(in(10s));
  const auto watch = store->watch({{key()}, {}}, *position, in(10s)).value();
  ASSERT_TRUE(watch->next(in(300ms)));
  relay.cut();
  for (const Deadline limit = in(3s); !limit.passed(clock_.now());) ASSERT_TRUE(watch->next(in(100ms)));
  for (const Deadline limit = in(3s); !limit.passed(clock_.now());) {
    ASSERT_TRUE(watch->next(in(100ms)));
    EXPECT_FALSE(watch->is_complete_up_to(*position));
  }
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
