#include "store/cached/cached_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "os/clock.h"
#include "store/memory/memory_store.h"
#include "store/test_records.h"

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
      [[nodiscard]] bool is_complete_up_to(Revision) override { return false; }
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

const Key kBlock = core::block_key(sample_cidr(0));
const Key kClaim = core::affinity_key(kSampleNode, sample_cidr(0));

Record block(std::uint64_t revision, std::uint32_t held) {
  return {kBlock, sample_block(0, held), Revision(revision), {}};
}
Record claim(std::uint64_t revision) {
  return {kClaim, core::Affinity{kSampleNode, sample_cidr(0)}, Revision(revision), {}};
}
Write put(const Record& record) { return {record.key, *record.value, Condition::always()}; }
Write remove(const Key& key) { return {key, std::nullopt, Condition::always()}; }

/// A cache that knows of one own block, claimed and written at revision 10.
struct WithABlock {
  WithABlock() { commit({put(claim(0)), put(block(0, 1))}, 10); }
  /// How many addresses the block has held, as far as is known; nothing when that must be read.
  [[nodiscard]] std::optional<std::size_t> held() const {
    const auto known = cache.record(kBlock);
    if (!known) return {};
    return *known ? std::get<core::Block>(*(*known)->value).attributes.size() : 0;
  }
  void write(std::uint64_t revision, std::uint32_t count) { commit({put(block(0, count))}, revision); }
  void commit(const std::vector<Write>& writes, std::uint64_t revision) {
    cache.committed(writes, {}, Revision(revision));
  }
  void learn(Record record) {
    ReadAnswer read;
    read.records = {std::move(record)};
    cache.learn(read);
  }
  Cache cache{kSampleNode};
};

TEST(Cache, ABlockOfItsOwnIsFollowedFromItsClaimOn) {
  const WithABlock world;
  EXPECT_THAT(world.cache.own_blocks(), testing::ElementsAre(testing::Pair(sample_cidr(0), Revision(10))));
  EXPECT_TRUE(world.cache.is_watched(kBlock));
  EXPECT_EQ(world.held(), 1U);
}

TEST(Cache, TheEchoOfAWriteIsNoNews) {
  WithABlock world;
  world.write(12, 2);
  EXPECT_FALSE(world.cache.apply({Change::touched(kBlock, Revision(10))}));
  EXPECT_FALSE(world.cache.apply({Change::touched(kBlock, Revision(12)), Change::put(claim(10))}));
  EXPECT_EQ(world.held(), 2U);
}

TEST(Cache, ABlockThatSomebodyElseWroteIsReadBeforeItIsBelieved) {
  WithABlock world;
  EXPECT_TRUE(world.cache.apply({Change::touched(kBlock, Revision(11))}));
  EXPECT_EQ(world.held(), std::nullopt);
  EXPECT_THAT(world.cache.unknown(8).records, testing::Contains(kBlock));
  world.learn(block(10, 1));
  EXPECT_EQ(world.held(), std::nullopt) << "that is what it was before";
  world.learn(block(11, 5));
  EXPECT_EQ(world.held(), 5U);
  EXPECT_THAT(world.cache.unknown(8).records, testing::Not(testing::Contains(kBlock)));
}

TEST(Cache, TheWatchMayBeQuickerThanTheAnswerToACommit) {
  WithABlock world;
  EXPECT_TRUE(world.cache.apply({Change::touched(kBlock, Revision(12))}));
  world.write(12, 2);
  EXPECT_EQ(world.held(), 2U);

  EXPECT_TRUE(world.cache.apply({Change::touched(kBlock, Revision(15))}));
  world.write(14, 3);
  EXPECT_EQ(world.held(), std::nullopt) << "somebody else wrote after us";
}

TEST(Cache, LateNewsDoesNotBringBackWhatWasDeleted) {
  WithABlock world;
  world.commit({remove(kBlock), remove(kClaim)}, 20);
  EXPECT_TRUE(world.cache.own_blocks().empty());
  EXPECT_FALSE(world.cache.apply({Change::put(claim(10))}));
  EXPECT_EQ(world.cache.affinity_count(), 0U);
  world.cache.apply({Change::deleted(kClaim, Revision(20))});
  EXPECT_EQ(world.cache.affinity_count(), 0U);
  // The same claim once more, by the plugin.
  EXPECT_TRUE(world.cache.apply({Change::put(claim(22))}));
  EXPECT_THAT(world.cache.own_blocks(), testing::ElementsAre(testing::Pair(sample_cidr(0), Revision(22))));
}

TEST(Cache, NewsOfDifferentRecordsComesInAnyOrder) {
  WithABlock world;
  // 31: the block and its claim go. 33: they come again. The watch of the block is ahead.
  world.cache.apply({Change::deleted(kBlock, Revision(31))});
  world.cache.apply({Change::touched(kBlock, Revision(33))});
  world.cache.apply({Change::deleted(kClaim, Revision(31))});
  world.cache.apply({Change::put(claim(33))});
  EXPECT_EQ(world.held(), std::nullopt);
  EXPECT_THAT(world.cache.unknown(8).records, testing::Contains(kBlock));
  EXPECT_THAT(world.cache.own_blocks(), testing::ElementsAre(testing::Pair(sample_cidr(0), Revision(33))));
}

TEST(Cache, HandlesAreKeptAsLongAsABlockOfItsOwnMentionsThem) {
  WithABlock world;
  const core::Attribute two = sample_attribute(1);
  const Key handle = core::handle_key(*two.handle_id);
  EXPECT_THAT(world.cache.record(handle), testing::Optional(testing::Eq(std::nullopt))) << "nobody mentions it";
  EXPECT_THAT(world.cache.unknown(8).records, testing::ElementsAre(core::handle_key(sample_handle_id(0))));
  world.learn({core::handle_key(sample_handle_id(0)), sample_handle(0, 0), Revision(9), {}});
  EXPECT_TRUE(world.cache.unknown(8).empty());

  world.commit({put(block(0, 2)), put(Record{handle, sample_handle(1, 0), Revision(0), {}})}, 12);
  EXPECT_TRUE(world.cache.unknown(8).empty());
  EXPECT_EQ((*world.cache.record(handle))->revision, Revision(12));
  world.write(13, 1);
  EXPECT_THAT(world.cache.record(handle), testing::Optional(testing::Eq(std::nullopt)));
  EXPECT_TRUE(world.cache.unknown(8).empty());
}

/// From before the pool was changed there may be blocks of other lengths that nobody claims.
TEST(Cache, OfABlockOfALengthThatItsPoolDoesNotHaveNothingIsGuessed) {
  Cache cache(kSampleNode);
  core::Pool pool;
  pool.name = "a";
  pool.cidr = net::Prefix::parse("10.0.0.0/24").value();
  pool.block_length = 32;
  const std::vector<Write> writes = {put(Record{core::pool_key("a"), pool, Revision(0), {}})};
  cache.committed(writes, {}, Revision(10));
  for (const char* text : {"10.0.0.64/26", "10.0.0.0/22", "10.0.0.65/32", "10.1.0.0/26"}) {
    const net::Prefix cidr = net::Prefix::parse(text).value();
    const bool is_guessed = cidr.length() == 32 || !cidr.overlaps(pool.cidr);
    EXPECT_EQ(cache.record(core::block_key(cidr)).has_value(), is_guessed) << text;
  }
}

/// It has the names of claims: what nobody claims is not among them.
TEST(Cache, AListAsStoredIsNotAnswered) {
  WithABlock world;
  core::Missing wanted;
  wanted.keys = {{Kind::block, core::block_names_of(sample_cidr(0).family())}};
  core::Missing rest;
  EXPECT_EQ(world.cache.answer(wanted, rest).keys.size(), 1U);
  EXPECT_FALSE(rest.unread());
  wanted.keys = {{Kind::block, core::block_names_of(sample_cidr(0).family()), true}};
  EXPECT_TRUE(world.cache.answer(wanted, rest).keys.empty());
  EXPECT_EQ(rest.keys, wanted.keys);
}

/// Its revision stays when what is beside it is mended or taken away, and nobody watches that.
TEST(Cache, AnUnreadableBlockIsReadEachTime) {
  WithABlock world;
  Record damaged = block(11, 1);
  damaged.value = fail(ErrorCode::corrupt, "damaged");
  EXPECT_TRUE(world.cache.apply({Change::touched(kBlock, Revision(11))}));
  world.learn(damaged);
  EXPECT_FALSE(world.cache.record(kBlock)) << "it is asked for";
  EXPECT_TRUE(world.cache.unknown(8).records.empty() || !world.cache.unknown(8).records.contains(kBlock));
  world.learn(block(11, 1));
  EXPECT_EQ(world.held(), 1U);
}

/// The same for a pool, which is watched with what is beside it.
TEST(Cache, APoolBesideWhichSomethingChangedIsBelievedAnew) {
  Cache cache{kSampleNode};
  const Key key = core::pool_key("a");
  const auto pool = [&](int cooldown_seconds) {
    core::Pool value;
    value.name = "a";
    value.cidr = sample_cidr(0);
    value.cooldown = std::chrono::seconds(cooldown_seconds);
    return Record{key, std::move(value), Revision(11), {}};
  };
  const auto known = [&] { return std::get<core::Pool>(*(*cache.record(key))->value).cooldown.count(); };
  EXPECT_TRUE(cache.apply({Change::put(pool(600))}));
  EXPECT_FALSE(cache.apply({Change::put(pool(600))})) << "an echo";
  EXPECT_TRUE(cache.apply({Change::put(pool(0))})) << "what was beside it was removed";
  EXPECT_EQ(known(), 0);
  EXPECT_TRUE(cache.apply({Change::put(pool(600))})) << "and put back, by a runbook";
  EXPECT_EQ(known(), 600);
}

TEST(Cache, AnUnknownOutcomeIsReadAnew) {
  WithABlock world;
  const std::vector<Write> writes = {put(block(0, 2))};
  world.cache.doubt(writes);
  EXPECT_EQ(world.held(), std::nullopt);
  EXPECT_THAT(world.cache.unknown(8).records, testing::Contains(kBlock));
}

/// Where each record is a commit of its own a handle is written before the block that mentions it.
TEST(Cache, AHandleWrittenAheadOfItsBlockIsKnown) {
  WithABlock world;
  const Key handle = core::handle_key(sample_handle_id(1));
  world.commit({put(Record{handle, sample_handle(1, 0), Revision(0), {}})}, 11);
  EXPECT_EQ((*world.cache.record(handle))->revision, Revision(11));
  world.write(12, 2);
  EXPECT_FALSE(world.cache.unknown(8).records.contains(handle));
  EXPECT_EQ((*world.cache.record(handle))->revision, Revision(11));
  world.write(13, 1);
  EXPECT_THAT(world.cache.record(handle), testing::Optional(testing::Eq(std::nullopt)));
}

TEST(Cache, AHandleOfWhoseWriteNothingIsKnownIsAskedFor) {
  WithABlock world;
  const Key handle = core::handle_key(sample_handle_id(1));
  const std::vector<Write> writes = {put(Record{handle, sample_handle(1, 0), Revision(0), {}})};
  world.commit(writes, 11);
  world.cache.doubt(writes);
  EXPECT_FALSE(world.cache.record(handle)) << "it may be there, or not";
  world.commit(writes, 12);
  EXPECT_EQ((*world.cache.record(handle))->revision, Revision(12));
}

core::Key key_of(const std::string& name) { return {core::Kind::block, name}; }

TEST(SharedKeys, AreInOrderAndEachOnce) {
  SharedKeys keys;
  for (const char* name : {"b", "c", "a", "b", "d"}) keys.insert(key_of(name));
  keys.erase(key_of("d"));
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key_of("a"), key_of("b"), key_of("c")));
  keys.erase(key_of("b"));
  keys.erase(key_of("none"));
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key_of("a"), key_of("c")));
}

TEST(SharedKeys, AListThatWasGivenOutStaysAsItWas) {
  SharedKeys keys;
  keys.insert(key_of("a"));
  const core::KeyList before = keys.list();
  keys.insert(key_of("b"));
  EXPECT_THAT(*before, testing::ElementsAre(key_of("a")));
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key_of("a"), key_of("b")));
}

TEST(SharedKeys, AreNotCopiedWhileNobodyHoldsThem) {
  SharedKeys keys;
  keys.insert(key_of("a"));
  core::KeyList held = keys.list();
  const auto* where = held.get();
  keys.insert(key_of("b"));
  held.reset();
  EXPECT_EQ(keys.list().get(), where);
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key_of("a"), key_of("b")));
}

TEST(SharedKeys, ManyChangesThatNobodyAsksForDoNotPileUp) {
  SharedKeys keys;
  for (int i = 0; i < 10000; ++i) {
    keys.insert(key_of("a"));
    keys.erase(key_of("a"));
  }
  keys.insert(key_of("b"));
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key_of("b")));
}

}  // namespace
}  // namespace croft::store
