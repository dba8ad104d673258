#include "store/cached/cached_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "os/clock.h"
#include "store/memory/memory_store.h"
#include "store/test_commits.h"

namespace croft::store {
namespace {

using namespace std::chrono_literals;

/// A store whose reads take as long as they take, and end at their deadline.
class SlowReads final : public ForwardingStore {
 public:
  SlowReads(Store& beneath, ManualClock& clock) : ForwardingStore(beneath), clock_(clock) {}
  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    ++reads;
    is_to_keep = wanted.to_keep;
    const auto left = deadline.at_since_boot - clock_.now().since_boot;
    clock_.advance(std::min<std::chrono::nanoseconds>(left, takes));
    if (takes >= left) return fail(ErrorCode::deadline_exceeded, "the time for this call is up");
    return ForwardingStore::read(wanted, deadline);
  }
  std::chrono::nanoseconds takes{};
  int reads = 0;
  bool is_to_keep = false;

 private:
  ManualClock& clock_;
};

class CachedStoreTest : public testing::Test {
 protected:
  bool step() { return cached_.step(Deadline::after(clock_.now(), 0s)).has_value(); }

  ManualClock clock_;
  MemoryStore memory_;
  SlowReads slow_{memory_, clock_};
  CachedStore cached_{slow_, {core::AffinityOwner::Type::host, "node-a"}, clock_};
};

/// Where many begin at once, each takes longer than the limit, and none would ever come to an end.
TEST_F(CachedStoreTest, WhatTakesTooLongIsGivenMoreTimeTheNextTime) {
  slow_.takes = 65s;
  EXPECT_FALSE(step());
  EXPECT_FALSE(step());
  EXPECT_FALSE(step());
  EXPECT_TRUE(step()) << "80 s";
  EXPECT_TRUE(cached_.state().in_use);
  EXPECT_EQ(slow_.reads, 4);
  EXPECT_TRUE(slow_.is_to_keep) << "it is remembered from a position on";
}

TEST_F(CachedStoreTest, TheTimeForOneReadHasALimit) {
  slow_.takes = 24h;
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(step());
  const auto before = clock_.now().since_boot;
  EXPECT_FALSE(step());
  EXPECT_EQ(clock_.now().since_boot - before, 160s);
  slow_.takes = 1s;
  EXPECT_TRUE(step());
}

/// A store that can be read, and whose watches fail as soon as they are asked.
TEST_F(CachedStoreTest, AnotherEpochOfTheStoreBeneathVoidsAllMemory) {
  slow_.takes = 1s;
  ASSERT_TRUE(step());
  const auto soon = [&] { return Deadline::after(clock_.now(), 60s); };
  const auto made = [](const char* id) {
    return Write{core::handle_key(id), core::Handle{id, {}}, Condition::if_absent(), false};
  };
  memory_.begin_epoch();
  const Write a = made("net.a"), b = made("net.b");
  const auto decided_before = cached_.commit({&a, 1}, {}, soon());
  ASSERT_FALSE(decided_before);
  EXPECT_EQ(decided_before.error().code, ErrorCode::conflict);
  EXPECT_EQ(cached_.commit_each({&a, 1}, {}, soon()).front().error().code, ErrorCode::conflict);
  EXPECT_TRUE(cached_.uncached().commit({&a, 1}, {}, soon())) << "that was not decided from memory";
  ASSERT_TRUE(cached_.read({}, soon()));
  EXPECT_FALSE(cached_.state().in_use);
  ASSERT_TRUE(step());
  EXPECT_EQ(cached_.state().rebuilt, 2U);
  EXPECT_TRUE(cached_.commit({&b, 1}, {}, soon()));
}

class BrokenWatches final : public ForwardingStore {
 public:
  explicit BrokenWatches(Store& beneath) : ForwardingStore(beneath) {}
  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after,
                                                     Deadline deadline) override {
    ++watches;
    if (!are_broken) return ForwardingStore::watch(scope, after, deadline);
    class Broken final : public Watch {
     public:
      [[nodiscard]] Result<std::vector<Change>> next(Deadline) override { return fail(ErrorCode::corrupt, "nonsense"); }
      void follow(const Key&, Revision) override {}
      void unfollow(const Key&) override {}
    };
    return std::make_unique<Broken>();
  }
  std::atomic<bool> are_broken = true;
  std::atomic<int> watches = 0;
};

/// That everything could be read again is no recovery: else it would be read four times a second for ever, and told as
/// often.
TEST(CacheFollowerTest, AWatchThatFailsAtOnceIsTriedMoreAndMoreSeldomAndTroubleStays) {
  const os::SystemClock clock;
  MemoryStore memory;
  BrokenWatches broken(memory);
  CachedStore cached(broken, {core::AffinityOwner::Type::host, "node-a"}, clock);
  const CacheFollower follower(cached, clock);
  const auto soon = [&](auto holds) {
    for (int i = 0; i < 2000 && !holds(); ++i) std::this_thread::sleep_for(5ms);
    return holds();
  };
  ASSERT_TRUE(soon([&] { return follower.trouble() == "nonsense"; }));
  const auto since = clock.now().since_boot;
  bool always = true;
  while (clock.now().since_boot - since < 3s) {
    always = always && follower.trouble() == "nonsense";
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(always) << "it was never over";
  // After at least 125, 250, 500 and 1000 ms.
  EXPECT_LE(broken.watches, 6);
  broken.are_broken = false;
  EXPECT_TRUE(soon([&] { return follower.trouble().empty(); }));
}

TEST(CachedStoreSize, ARegisterThatNeverEndsIsNotKept) {
  ManualClock clock;
  MemoryStore memory;
  CachedStoreOptions options;
  options.records_max = 10;
  CachedStore cached(memory, {core::AffinityOwner::Type::host, "node-a"}, clock, options);
  const auto step = [&] { return cached.step(Deadline::after(clock.now(), 0s)); };
  const auto make_pools = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string name = "p" + std::to_string(i);
      EXPECT_TRUE(create_if_absent(memory, core::pool_key(name), core::Pool{}, {}, Deadline{}));
    }
  };
  make_pools(0, 5);
  ASSERT_TRUE(step());
  EXPECT_TRUE(cached.state().in_use);
  make_pools(5, 30);
  const auto told = step();
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().message.find("not kept in memory"), std::string::npos);
  EXPECT_FALSE(cached.state().in_use);
  const auto anew = step();
  EXPECT_FALSE(anew) << "nor when it is read anew";
  EXPECT_TRUE(cached.get(core::pool_key("p29"), Deadline::after(clock.now(), 1s)).value()) << "calls go to the store";
}

}  // namespace
}  // namespace croft::store
