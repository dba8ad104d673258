// An etcd that is put back to an older state under an open store, so that its revisions repeat with other contents.

#include <sys/stat.h>

#include <memory>

#include <gtest/gtest.h>

#include "store/cached/cached_store.h"
#include "store/etcd/etcd_fixture.h"
#include "store/etcd/etcd_store.h"
#include "store/etcd/revisions.h"

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

  [[nodiscard]] std::unique_ptr<Store> open() {
    etcd::ClientOptions options;
    options.endpoints = {server_.url()};
    auto client = etcd::Client::make(std::move(options), clock_, random_);
    EXPECT_TRUE(client);
    return make_etcd_store(*std::move(client), clock_, random_);
  }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }

  void save() {
    ::unlink(snapshot_.c_str());
    ASSERT_EQ(etcd::run_program({kEtcdctl, "--endpoints", server_.url(), "snapshot", "save", snapshot_}), 0);
  }
  void restore() {
    server_.stop();
    std::vector<std::string> command = {kEtcdctl, "snapshot", "restore", snapshot_};
    for (const std::string& argument : server_.place_for_restore()) command.push_back(argument);
    ASSERT_EQ(etcd::run_program(command), 0);
    server_.start();
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

TEST_F(RestoredEtcdTest, ARevisionThatRepeatsIsNotTheOneThatWasRead) {
  ASSERT_TRUE(put(*store_, Condition::if_absent(), 1));
  save();
  const auto lost = put(*store_, Condition::always(), 2);
  ASSERT_TRUE(lost);
  restore();
  const auto other = open();
  const auto there = put(*other, Condition::always(), 3);
  ASSERT_TRUE(there);
  ASSERT_EQ(etcd::in_etcd(*there), etcd::in_etcd(*lost)) << "the revision does not repeat";
  const auto overwrite = put(*store_, Condition::if_revision(*lost), 4);
  ASSERT_FALSE(overwrite) << "what was acknowledged has been overwritten";
  EXPECT_EQ(overwrite.error().code, ErrorCode::conflict);
  // Who reads again goes on.
  const auto record = store_->get(core::handle_key("net.a"), in(10s));
  ASSERT_TRUE(record && *record);
  EXPECT_EQ(etcd::in_etcd((*record)->revision), etcd::in_etcd(*there));
  const auto again = put(*store_, Condition::if_revision((*record)->revision), 5);
  EXPECT_TRUE(again) << again.error().message;
}

TEST_F(RestoredEtcdTest, ADecisionThatRestsOnMemoryAloneIsNotCommitted) {
  const auto seen = store_->position(in(10s));
  ASSERT_TRUE(seen);
  save();
  restore();
  const Write write{core::handle_key("net.a"), core::Handle{"net.a", {}}, Condition::if_absent(), false};
  const auto committed = store_->commit_as_of(*seen, {&write, 1}, {}, in(10s));
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::conflict);
  const auto now = store_->position(in(10s));
  ASSERT_TRUE(now);
  EXPECT_TRUE(store_->commit_as_of(*now, {&write, 1}, {}, in(10s)));
}

/// Revisions have come beyond what was seen: nothing goes back, and the cluster is the same.
TEST_F(RestoredEtcdTest, ARegisterThatCaughtUpIsAnotherHistory) {
  ASSERT_TRUE(put(*store_, Condition::if_absent(), 1));
  const auto first = store_->prove_history(in(10s));
  ASSERT_TRUE(first);
  EXPECT_EQ(store_->prove_history(in(10s)), first) << "nothing happened";
  const auto looks_too = open();
  ASSERT_TRUE(looks_too->prove_history(in(10s)));
  EXPECT_EQ(store_->prove_history(in(10s)), first) << "another one looks as well";
  save();
  ASSERT_TRUE(put(*store_, Condition::always(), 2));
  ASSERT_EQ(store_->prove_history(in(10s)), first);
  restore();
  for (std::uint8_t token = 3; token < 13; ++token) ASSERT_TRUE(put(*looks_too, Condition::always(), token));
  const auto then = store_->prove_history(in(10s));
  ASSERT_TRUE(then);
  EXPECT_GT(*then, *first);
  EXPECT_EQ(store_->prove_history(in(10s)), then);
  EXPECT_EQ(store_->history(), *then);
}

/// Sixty-four looks by others push one's own out: that counts as another history, never as the same.
TEST_F(RestoredEtcdTest, MarksAreBounded) {
  const auto first = store_->prove_history(in(10s));
  ASSERT_TRUE(first);
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(open()->prove_history(in(10s)));
  EXPECT_GT(store_->prove_history(in(10s)).value(), *first);
}

TEST_F(RestoredEtcdTest, AWatchSaysThatItIsTooOld) {
  const auto from = store_->position(in(10s));
  ASSERT_TRUE(from);
  WatchScope scope;
  scope.lists = {{Kind::pool, ""}};
  const auto watch = store_->watch(scope, *from, in(10s));
  ASSERT_TRUE(watch);
  ASSERT_TRUE((*watch)->next(in(100ms)));
  save();
  restore();
  const auto next = (*watch)->next(in(5s));
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, ErrorCode::too_old);
}

TEST_F(RestoredEtcdTest, AMemoryIsReadAnew) {
  CachedStore cached(*store_, {core::AffinityOwner::Type::host, "oak"}, clock_);
  ASSERT_TRUE(cached.step(in(10s)));
  ASSERT_TRUE(cached.state().in_use);
  save();
  restore();
  const auto end = clock_.now().since_boot + 20s;
  while (cached.state().rebuilt < 2 && clock_.now().since_boot < end) static_cast<void>(cached.step(in(100ms)));
  EXPECT_EQ(cached.state().rebuilt, 2U);
  EXPECT_TRUE(cached.state().in_use);
}

}  // namespace
}  // namespace croft::store
