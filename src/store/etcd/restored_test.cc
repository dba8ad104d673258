// An etcd that is put back to an older state under an open store, so that its revisions repeat with other contents, and
// the epoch by which that is noticed.

#include <sys/stat.h>

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/cached/cached_store.h"
#include "store/etcd/etcd_fixture.h"
#include "store/etcd/etcd_store.h"
#include "store/etcd/store_parts.h"
#include "store/pause.h"

namespace croft::store {
namespace {

using namespace std::chrono_literals;

constexpr const char* kEtcdctl = "/usr/bin/etcdctl";

class RestoredEtcdTest : public testing::Test {
 protected:
  void SetUp() override {
    CROFT_NEEDS_ETCD();
    if (::access(kEtcdctl, X_OK) != 0) GTEST_SKIP() << "no " << kEtcdctl << ": install etcd-client";
    ::setenv("ETCDCTL_API", "3", 1);
    server_.start();
    store_ = open();
  }

  [[nodiscard]] std::unique_ptr<etcd::Client> connect() { return etcd::client_of({server_.url()}, clock_, random_); }
  [[nodiscard]] std::unique_ptr<Store> open() { return make_etcd_store(connect(), clock_, random_); }
  static HasEpoch& epoch_of(Store& store) { return dynamic_cast<HasEpoch&>(store); }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }

  void save() {
    ::unlink(snapshot_.c_str());
    ASSERT_EQ(etcd::run_program({kEtcdctl, "--endpoints", server_.url(), "snapshot", "save", snapshot_}), 0);
  }
  /// As the runbook says it, up to where the epoch is still the one of before.
  void restore(const std::string& token = "another") {
    server_.stop();
    std::vector<std::string> command = {kEtcdctl, "snapshot", "restore", snapshot_};
    for (const std::string& argument : server_.place_for_restore(token)) command.push_back(argument);
    ASSERT_EQ(etcd::run_program(command), 0);
    server_.start();
  }
  void begin_epoch() {
    const auto begun = epoch_of(*open()).begin_epoch(in(10s));
    ASSERT_TRUE(begun) << begun.error().message;
  }

  [[nodiscard]] Result<Revision> put(Store& store, Condition condition, std::uint8_t token) {
    WriteToken one;
    one.bytes[0] = token;
    const Write write{core::handle_key("net.a"), core::Handle{"net.a", {}}, condition, false};
    return store.commit({&write, 1}, one, in(10s));
  }

  os::SystemClock clock_;
  os::SystemRandom random_;
  os::ScratchDirectory scratch_;
  const std::string snapshot_ = scratch_.file("snapshot");
  etcd::EtcdProcess server_;
  std::unique_ptr<Store> store_;
};

TEST_F(RestoredEtcdTest, IsRefusedUntilItHasAnotherEpoch) {
  ASSERT_TRUE(put(*store_, Condition::if_absent(), 1));
  save();
  restore();
  const auto fresh = open();
  for (Store* store : {store_.get(), fresh.get()}) {
    const auto found = store->get(core::handle_key("net.a"), in(10s));
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::unavailable);
    EXPECT_THAT(found.error().message, testing::HasSubstr("`croft store new-epoch`"));
    EXPECT_FALSE(store->list({Kind::handle, ""}, in(10s)));
    EXPECT_FALSE(store->position(in(10s)));
  }
  // What only looks compares it with what runs.
  const auto looking = make_etcd_store(connect(), clock_, random_, nullptr, [](const Error&) {});
  EXPECT_TRUE(looking->get(core::handle_key("net.a"), in(10s)));
  // One that has read nothing meets it as well.
  const auto blind = put(*open(), Condition::always(), 2);
  ASSERT_FALSE(blind);
  EXPECT_EQ(blind.error().code, ErrorCode::unavailable);
  begin_epoch();
  const auto decided_before = put(*store_, Condition::always(), 3);
  ASSERT_FALSE(decided_before);
  EXPECT_EQ(decided_before.error().code, ErrorCode::conflict);
  EXPECT_TRUE(put(*store_, Condition::always(), 3));
  EXPECT_GT(store_->epoch(), 0U);
}

TEST_F(RestoredEtcdTest, ARevisionThatRepeatsIsNotTheOneThatWasRead) {
  ASSERT_TRUE(put(*store_, Condition::if_absent(), 1));
  save();
  Result<Revision> lost = put(*store_, Condition::always(), 2);
  lost = put(*store_, Condition::always(), 2);
  ASSERT_TRUE(lost);
  restore();
  begin_epoch();
  const auto other = open();
  const auto there = put(*other, Condition::always(), 3);
  ASSERT_TRUE(there);
  ASSERT_EQ(etcd::etcd_revision_of(*there), etcd::etcd_revision_of(*lost)) << "the revision does not repeat";
  const auto overwrite = put(*store_, Condition::if_revision(*lost), 4);
  ASSERT_FALSE(overwrite) << "what was acknowledged has been overwritten";
  EXPECT_EQ(overwrite.error().code, ErrorCode::conflict);
  // A reader of what is there now goes on.
  const auto record = store_->get(core::handle_key("net.a"), in(10s));
  ASSERT_TRUE(record && *record);
  EXPECT_EQ(etcd::etcd_revision_of((*record)->revision), etcd::etcd_revision_of(*there));
  const auto again = put(*store_, Condition::if_revision((*record)->revision), 5);
  EXPECT_TRUE(again) << again.error().message;
}

/// Also where no condition tells of it.
TEST_F(RestoredEtcdTest, ADecisionThatRestsOnMemoryAloneIsNotCommitted) {
  ASSERT_TRUE(put(*store_, Condition::always(), 1));
  CachedStore cached(*store_, {core::AffinityOwner::Type::host, "oak"}, clock_);
  ASSERT_TRUE(cached.step(in(10s)));
  save();
  restore();
  begin_epoch();
  ASSERT_TRUE(store_->get(core::handle_key("net.b"), in(10s)));
  const Write write{core::handle_key("net.b"), core::Handle{"net.b", {}}, Condition::if_absent(), false};
  const auto committed = cached.commit({&write, 1}, {}, in(10s));
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::conflict);
  const auto end = clock_.now().since_boot + 20s;
  while (cached.state().rebuilt < 2 && clock_.now().since_boot < end) static_cast<void>(cached.step(in(100ms)));
  EXPECT_TRUE(cached.commit({&write, 1}, {}, in(10s)));
}

/// A copy of the members' disks, put back against the runbook: the cluster is the same, and so is its record.
TEST_F(RestoredEtcdTest, AnOlderStateOfTheSameClusterIsAnotherEpoch) {
  ASSERT_TRUE(put(*store_, Condition::if_absent(), 1));
  save();
  restore("the same");
  begin_epoch();
  ASSERT_TRUE(store_->get(core::handle_key("net.a"), in(10s)));
  save();
  for (std::uint8_t token = 2; token < 5; ++token) ASSERT_TRUE(put(*store_, Condition::always(), token));
  const std::uint64_t before = store_->epoch();
  restore("the same");
  ASSERT_TRUE(store_->get(core::handle_key("net.a"), in(10s)));
  EXPECT_EQ(store_->epoch(), before + 1);
}

TEST_F(RestoredEtcdTest, AWatchSaysThatItIsTooOld) {
  ASSERT_TRUE(put(*store_, Condition::always(), 1));
  const auto from = store_->position(in(10s));
  ASSERT_TRUE(from);
  WatchScope scope;
  scope.lists = {{Kind::pool, ""}};
  const auto watch = store_->watch(scope, *from, in(10s));
  ASSERT_TRUE(watch);
  ASSERT_TRUE((*watch)->next(in(100ms)));
  save();
  restore();
  begin_epoch();
  Result<std::vector<Change>> next = (*watch)->next(in(5s));
  for (int i = 0; next && i < 10; ++i) next = (*watch)->next(in(1s));
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, ErrorCode::too_old);
}

/// Nobody has to restart an agent.
TEST_F(RestoredEtcdTest, AMemoryIsReadAnew) {
  ASSERT_TRUE(put(*store_, Condition::always(), 1));
  CachedStore cached(*store_, {core::AffinityOwner::Type::host, "oak"}, clock_);
  ASSERT_TRUE(cached.step(in(10s)));
  ASSERT_TRUE(cached.state().in_use);
  save();
  restore();
  const auto end = clock_.now().since_boot + 20s;
  while (cached.state().in_use && clock_.now().since_boot < end) static_cast<void>(cached.step(in(100ms)));
  EXPECT_FALSE(cached.state().in_use);
  EXPECT_FALSE(cached.step(in(100ms))) << "it may not be served yet";
  begin_epoch();
  while (cached.state().rebuilt < 2 && clock_.now().since_boot < end) static_cast<void>(cached.step(in(100ms)));
  EXPECT_EQ(cached.state().rebuilt, 2U);
  EXPECT_TRUE(cached.state().in_use);
}

class EpochTest : public RestoredEtcdTest {
 protected:
  void write_record(const std::string& value) {
    ASSERT_TRUE(connect()->txn(etcd::put_txn(etcd::kEpochPlace, value), in(10s)));
  }
};

TEST_F(EpochTest, CostsNoRequest) {
  auto client = connect();
  const etcd::Client& counted = *client;
  const auto store = make_etcd_store(std::move(client), clock_, random_);
  ASSERT_TRUE(put(*store_, Condition::if_absent(), 9));
  for (std::uint8_t i = 1; i < 3; ++i) {
    const auto before = counted.counts().requests;
    const auto record = store->get(core::handle_key("net.a"), in(10s));
    ASSERT_TRUE(record);
    ASSERT_TRUE(put(*store, *record ? Condition::if_revision((*record)->revision) : Condition::if_absent(), i));
    EXPECT_EQ(counted.counts().requests - before, 2U);
  }
}

TEST_F(EpochTest, TheFirstCommitsMakeOne) {
  const auto other = open();
  ASSERT_TRUE(store_->get(core::handle_key("net.a"), in(10s)));
  ASSERT_TRUE(other->get(core::handle_key("net.a"), in(10s)));
  ASSERT_TRUE(put(*other, Condition::always(), 1));
  // The other one had found none.
  EXPECT_TRUE(put(*store_, Condition::always(), 2));
  EXPECT_EQ(store_->epoch(), 0U);
  EXPECT_EQ(other->epoch(), 0U);
}

TEST_F(EpochTest, AnotherInThePlaceEndsWatchesAndWhatWasRead) {
  const auto made = put(*store_, Condition::always(), 1);
  ASSERT_TRUE(made);
  const auto watch = store_->watch({{core::handle_key("net.a")}, {}}, *made, in(10s));
  ASSERT_TRUE(watch);
  ASSERT_TRUE((*watch)->next(in(100ms)));
  begin_epoch();
  Result<std::vector<Change>> next = (*watch)->next(in(5s));
  for (int i = 0; next && i < 10; ++i) next = (*watch)->next(in(1s));
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, ErrorCode::too_old);
  const auto written = put(*store_, Condition::if_revision(*made), 2);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::conflict);
}

TEST_F(EpochTest, TwoKubernetesClustersShareNoRegister) {
  ASSERT_TRUE(put(*store_, Condition::always(), 1));
  ASSERT_TRUE(epoch_of(*store_).belong_to("uid-one", in(10s)));
  ASSERT_TRUE(epoch_of(*store_).belong_to("uid-one", in(10s)));
  EXPECT_TRUE(put(*store_, Condition::always(), 2));
  EXPECT_EQ(store_->epoch(), 0U);
  const auto refused = epoch_of(*open()).belong_to("uid-two", in(10s));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused_by_configuration);
  EXPECT_THAT(refused.error().message, testing::AllOf(testing::HasSubstr("uid-one"), testing::HasSubstr("uid-two")));
  begin_epoch();
  EXPECT_TRUE(epoch_of(*open()).belong_to("uid-two", in(10s)));
}

TEST_F(EpochTest, OneThatIsDamagedIsNamedWithTheRemedy) {
  for (const char* value : {"", "{}", "1", "1 2", "x 2 ", "0 2 ", "1 2x "}) {
    write_record(value);
    const auto found = open()->get(core::handle_key("net.a"), in(10s));
    ASSERT_FALSE(found) << value;
    EXPECT_EQ(found.error().code, ErrorCode::corrupt);
    EXPECT_THAT(found.error().message, testing::HasSubstr("`croft store new-epoch`"));
    EXPECT_FALSE(put(*open(), Condition::always(), 1));
  }
  begin_epoch();
  EXPECT_TRUE(put(*open(), Condition::always(), 1));
}

}  // namespace
}  // namespace croft::store
