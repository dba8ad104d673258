// What a node with a memory answers, and when that is believed (store/cached, batch.h).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ipam/use/nodes.h"
#include "ipam/use/test_batch_of_one.h"
#include "ipam/use/test_world.h"
#include "store/cached/cached_store.h"

namespace croft::engine {
namespace {

using store::CachedStore;
using store::CallCounts;

/// A node with an agent: use cases run on its cached store; what others do runs on a second client of the same store.
struct AgentWorld {
  /// With this pool, which the cache has seen; null: with none.
  explicit AgentWorld(const char* cidr = "10.0.0.0/24", int block_length = 26) {
    if (cidr == nullptr) return;
    others.pool("a", cidr, block_length);
    follow();
  }
  World others;
  store::MemoryStore beneath{others.store.data()};
  CachedStore cached{beneath, {core::AffinityOwner::Type::host, "node-a"}, others.clock};
  SeededRandom random{7};
  bool from_memory = false;

  Context direct() { return {cached.uncached(), others.clock, random}; }
  /// Lets the cache see everything.
  void follow() {
    for (int i = 0; i < 4; ++i) {
      const auto done = cached.step(Deadline::after(others.clock.now(), {}));
      ASSERT_TRUE(done) << done.error().message;
    }
  }
  std::string add(const core::AssignRequest& request) {
    auto served = assign_by_memory(direct(), cached, request);
    from_memory = served.from_memory;
    if (!served.answer) return std::string(name_of(served.answer.error().code));
    if (const auto* refusal = std::get_if<core::Refusal>(&*served.answer)) return refusal->summary;
    std::string text;
    for (const auto& a : std::get<core::Assigned>(*served.answer).addresses) {
      text += (text.empty() ? "" : " ") + a.address.to_string();
    }
    return text;
  }
  std::string add(const std::string& container) { return add(World::request(container)); }
  std::size_t del(const std::string& container) {
    auto served = release_by_memory(direct(), cached, {"net", container, "eth0"});
    from_memory = served.from_memory;
    EXPECT_TRUE(served.answer) << served.answer.error().message;
    return served.answer ? served.answer->addresses.size() : 0;
  }
};

/// What a call cost the store beneath.
struct Cost {
  explicit Cost(const store::MemoryStore& store) : store_(store), before_(store.counts()) {}
  [[nodiscard]] std::string text() const {
    const CallCounts now = store_.counts();
    return fmt::format("{} reads, {} commits", now.list + now.read - (before_.list + before_.read),
                       now.commit - before_.commit);
  }

 private:
  const store::MemoryStore& store_;
  const CallCounts before_;
};

/// A block that lost its claim with the addresses in it is nobody's, and there: the handle says so.
TEST(FromMemory, WhatIsHeldInABlockWithoutAClaimIsHeldStill) {
  AgentWorld world("10.0.0.0/16");
  world.others.pool("six", "fd00::/112", 122);
  world.follow();
  auto both = World::request("c");
  both.count.v6 = 1;
  const std::string addresses = world.add(both);
  world.follow();
  const auto block = world.others.context.store.get(core::handle_key("net.c"), Deadline{}).value();
  ASSERT_TRUE(block);
  for (const auto& [cidr, count] : std::get<core::Handle>(*block->value).blocks) {
    if (cidr.find(':') != cidr.npos) continue;  // the other family's keeps the handle in memory
    ASSERT_TRUE(release_affinity(world.others.context, {both.node, World::prefix(cidr.c_str()), false, {}}));
  }
  world.follow();
  EXPECT_EQ(world.add(both), addresses) << "asked again";
  EXPECT_EQ(world.del("c"), 2U);
  EXPECT_THAT(world.others.findings(), testing::ElementsAre());
  EXPECT_TRUE(held_addresses(world.others.context, both.owner)->empty());
}

/// As Calico's plugin does when it is asked for a container that the agent has served: the handle first, then the
/// block.
TEST(FromMemory, AHandleThatAnotherWroteSinceGoesWithTheLastAddress) {
  AgentWorld world;
  world.beneath.set_capabilities({.atomic_commit = false, .foreign_writers = true});
  EXPECT_NE(world.add("stays"), "");
  EXPECT_NE(world.add("c"), "");
  world.follow();
  const core::Key key = core::handle_key("net.c");
  auto handle = std::get<core::Handle>(*world.others.store.get(key, Deadline{}).value()->value);
  const auto cidr = handle.blocks.begin()->first;
  ++handle.blocks.begin()->second;
  world.others.put(key, handle);
  const core::Key block_key = core::block_key(World::prefix(cidr.c_str()));
  auto block = std::get<core::Block>(*world.others.store.get(block_key, Deadline{}).value()->value);
  const std::uint32_t free = block.unallocated.order().front();
  const auto held = std::ranges::find_if(
      block.attributes, [](const core::Attribute& attribute) { return attribute.handle_id == "net.c"; });
  ASSERT_NE(held, block.attributes.end());
  block.allocations[free] = static_cast<std::uint32_t>(held - block.attributes.begin());
  ASSERT_TRUE(block.unallocated.take(net::Ordinal(free)));
  block.sequence_number.value += 1;
  world.others.put(block_key, block);
  world.follow();
  world.del("c");
  EXPECT_TRUE(held_addresses(world.others.context, {"net", "c", "eth0"})->empty());
  EXPECT_FALSE(world.others.store.get(key, Deadline{}).value()) << "it counts what nobody holds";
  EXPECT_THAT(world.others.findings(), testing::ElementsAre());
}

TEST(FromMemory, AddInABlockWithSpaceAndItsDelCostOneWriteEach) {
  AgentWorld world("10.0.0.0/16");
  EXPECT_TRUE(world.add("first").starts_with("10.0."));  // claims the block
  for (int i = 0; i < 40; ++i) {
    const std::string container = "c" + std::to_string(i);
    const Cost add(world.beneath);
    EXPECT_NE(world.add(container), "");
    EXPECT_TRUE(world.from_memory);
    EXPECT_EQ(add.text(), "0 reads, 1 commits");
    const Cost del(world.beneath);
    EXPECT_EQ(world.del(container), 1U);
    EXPECT_TRUE(world.from_memory);
    EXPECT_EQ(del.text(), "0 reads, 1 commits");
  }
  EXPECT_THAT(world.others.findings(), testing::ElementsAre());
}

/// Whether a block was there before, with a mark, is not remembered.
TEST(FromMemory, TheFirstBlockIsClaimedWithOneReadAndOneWrite) {
  AgentWorld world("10.0.0.0/16");
  const Cost cost(world.beneath);
  EXPECT_NE(world.add("first"), "");
  EXPECT_TRUE(world.from_memory);
  EXPECT_EQ(cost.text(), "1 reads, 1 commits");
  EXPECT_THAT(world.others.findings(), testing::ElementsAre());
}

TEST(FromMemory, WhatThePluginAddedAloneIsReleasedWithOneWriteOnceSeen) {
  AgentWorld world(nullptr);
  world.others.pool("a", "10.0.0.0/16", 26);
  world.others.add("alone");
  world.follow();
  const Cost cost(world.beneath);
  EXPECT_EQ(world.del("alone"), 1U);
  EXPECT_TRUE(world.from_memory);
  EXPECT_EQ(cost.text(), "0 reads, 1 commits");
}

TEST(FromMemory, WhatOthersDidUnseenIsFoundOutByTheCommit) {
  AgentWorld world("10.0.0.0/24", 28);
  const std::string first = world.add("one");
  // The plugin alone, unseen by the cache: the same block, the same handles.
  const std::string second = world.others.add("two");
  EXPECT_NE(first, second);
  EXPECT_EQ(world.add("two"), second);
  EXPECT_FALSE(world.from_memory);
  const std::string third = world.others.add("three");
  EXPECT_EQ(world.others.del("one"), 1U);
  EXPECT_EQ(world.del("one"), 0U);
  EXPECT_FALSE(world.from_memory);
  EXPECT_EQ(world.del("three"), 1U);
  EXPECT_EQ(world.del("two"), 1U);
  EXPECT_THAT(world.others.findings(), testing::ElementsAre());
}

TEST(FromMemory, ABlockThatTheCacheDoesNotKnowIsNotTakenTwice) {
  AgentWorld world("10.0.0.0/28", 28);
  const std::string other = world.others.add("other", "node-b");  // the only block, unseen
  const std::string mine = world.add("mine");
  EXPECT_FALSE(world.from_memory);
  EXPECT_NE(mine, other);
  EXPECT_THAT(world.others.findings(), testing::ElementsAre());
}

TEST(FromMemory, ARefusalIsDecidedOnTheStoreItself) {
  AgentWorld world(nullptr);
  world.follow();
  EXPECT_EQ(world.add("one").substr(0, 2), "no");  // no pool
  world.others.pool("a", "10.0.0.0/24", 26);
  EXPECT_TRUE(world.add("one").starts_with("10.0.0."));  // not seen by the cache yet
  EXPECT_FALSE(world.from_memory);
}

TEST(FromMemory, AnAnswerWithoutAWriteIsDecidedOnTheStoreItself) {
  AgentWorld world;
  const std::string first = world.add("one");
  world.others.del("one");
  world.others.add("else");
  const std::string again = world.add("one");  // the cache says that it holds `first` still
  EXPECT_FALSE(world.from_memory);
  EXPECT_NE(again, first);  // it cools
  EXPECT_EQ(world.add("one"), again);
  EXPECT_FALSE(world.from_memory);
}

TEST(FromMemory, LostRepliesAreSettled) {
  for (const auto fault :
       {store::Fault::lose_reply, store::Fault::lose_request, store::Fault::conflict, store::Fault::unavailable}) {
    AgentWorld world;
    world.add("one");
    world.beneath.set_faults(store::FaultScript().on_commit(world.beneath.counts().commit + 1, fault));
    const std::string two = world.add("two");
    EXPECT_EQ(two.substr(0, 5), "10.0.") << two;
    EXPECT_EQ(world.others.add("two"), two);
    world.follow();
    EXPECT_EQ(world.add("two"), two);
    EXPECT_EQ(world.del("two"), 1U);
    EXPECT_THAT(world.others.findings(), testing::ElementsAre());
  }
}

TEST(FromMemory, ALaggingWatchIsNotBelieved) {
  AgentWorld world;
  world.add("one");
  EXPECT_TRUE(world.cached.state().in_use);
  world.others.clock.advance(std::chrono::milliseconds(1100));  // and the watch has not come to our commit
  world.add("two");
  EXPECT_FALSE(world.from_memory && world.cached.state().in_use);
  EXPECT_FALSE(world.cached.state().in_use);
  world.follow();
  EXPECT_TRUE(world.cached.state().in_use);
  world.add("three");
  EXPECT_TRUE(world.from_memory);
}

TEST(FromMemory, EverythingIsReadAnewNowAndThen) {
  AgentWorld world;
  world.add("one");
  const auto rebuilt = world.cached.state().rebuilt;
  world.others.clock.advance(std::chrono::minutes(9));
  world.follow();
  EXPECT_EQ(world.cached.state().rebuilt, rebuilt);
  world.others.clock.advance(std::chrono::minutes(2));
  world.follow();
  EXPECT_EQ(world.cached.state().rebuilt, rebuilt + 1);
  world.add("two");
  EXPECT_TRUE(world.from_memory);
}

TEST(FromMemory, ACommitThatWasReadAnewIsNotWaitedFor) {
  World world;
  world.pool("a", "10.0.0.0/24", 26);
  Meddler beneath(world.store);
  CachedStore cached(beneath, {core::AffinityOwner::Type::host, "node-a"}, world.clock);
  const auto step = [&] { ASSERT_TRUE(cached.step(Deadline::after(world.clock.now(), {}))); };
  step();
  beneath.after_commit = [&] {
    world.clock.advance(std::chrono::minutes(11));
    step();  // reads everything, and watches what comes after
  };
  SeededRandom random{7};
  ASSERT_TRUE(assign({cached, world.clock, random}, World::request("one")));
  ASSERT_EQ(cached.state().rebuilt, 2U);
  step();
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(cached.get(core::pool_key("a"), Deadline::after(world.clock.now(), std::chrono::seconds(1))));
  EXPECT_TRUE(cached.state().in_use);
}

TEST(FromMemory, ForgottenHistoryMeansReadingAnew) {
  AgentWorld world;
  const auto rebuilt = world.cached.state().rebuilt;
  world.others.add("one");
  world.others.store.forget_history();
  EXPECT_FALSE(world.cached.step(Deadline{}));
  EXPECT_FALSE(world.cached.state().in_use);
  world.follow();
  EXPECT_TRUE(world.cached.state().in_use);
  EXPECT_EQ(world.cached.state().rebuilt, rebuilt + 1);
  world.add("two");
  EXPECT_TRUE(world.from_memory);
}

TEST(FromMemory, ForeignBlocksAreKnownByTheirKeysOnly) {
  AgentWorld world(nullptr);
  world.others.pool("a", "10.0.0.0/16", 28);
  for (int i = 0; i < 50; ++i) world.others.add("c" + std::to_string(i), "node-" + std::to_string(i));
  world.others.add("mine", "node-a");
  world.follow();
  EXPECT_EQ(world.cached.state().affinities, 51U);
  EXPECT_EQ(world.cached.state().own_blocks, 1U);
}

/// Random work by the agent, by the plugin alone on the same node and by another node, with the watch let go at random:
/// whatever the cache believes, the register stays sound, and nobody gets an address twice.
TEST(FromMemory, RandomWorkKeepsTheRegisterSound) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    AgentWorld world(nullptr);
    SeededRandom dice(seed);
    world.others.pool("a", "10.0.0.0/25", 28, 0);
    world.others.pool("b", "10.0.1.0/26", 28, 0);
    std::map<std::string, std::string> holds;
    int by_cache = 0;
    for (int i = 0; i < 400; ++i) {
      const std::string container = "c" + std::to_string(dice.next() % 60);
      std::string answer;
      switch (dice.next() % 6) {
        case 0:
        case 1:
          answer = world.add(container);
          if (world.from_memory) ++by_cache;
          break;
        case 2:
          answer = world.others.add(container, dice.next() % 2 == 0 ? "node-a" : "node-b");
          break;
        case 3:
          world.del(container);
          holds.erase(container);
          break;
        case 4:
          world.others.del(container);
          holds.erase(container);
          break;
        default:
          if (dice.next() % 8 == 0) world.others.store.forget_history();
          static_cast<void>(world.cached.step(Deadline{}));
          if (dice.next() % 8 == 0) world.others.clock.advance(std::chrono::seconds(2));
      }
      if (!answer.starts_with("10.")) continue;
      const auto [held, is_new] = holds.emplace(container, answer);
      ASSERT_EQ(held->second, answer) << "seed " << seed << ": another address for the same owner";
      for (const auto& [other, address] : holds) {
        ASSERT_TRUE(other == container || address != answer) << "seed " << seed << ": two holders of " << answer;
      }
    }
    ASSERT_THAT(world.others.findings(), testing::ElementsAre()) << "seed " << seed;
    EXPECT_GT(by_cache, 5) << "seed " << seed << ": the cache hardly ever served";
  }
}

}  // namespace
}  // namespace croft::engine
