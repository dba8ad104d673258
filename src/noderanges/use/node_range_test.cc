#include "noderanges/use/node_range.h"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ipam/use/test_world.h"

// Names in brackets are rows of docs/notes/node-ranges.md#cases.

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr store::Capabilities kOneByOne{.atomic_commit = false};

core::ClusterCidr cut(const char* cidr, int node_length) { return {World::prefix(cidr), node_length}; }

std::string text_of(const Error& error) { return std::string(name_of(error.code)) + ": " + error.message; }

/// The ranges of an answer joined with blanks, or "code: message".
std::string text_of(const Result<core::NodeRangesAssigned>& answer) {
  if (!answer) return text_of(answer.error());
  std::string text;
  for (const net::Prefix& cidr : answer->cidrs) text += (text.empty() ? "" : " ") + cidr.to_string();
  return text;
}

struct NodeWorld : World {
  std::string configure(std::vector<core::ClusterCidr> clusters, std::vector<const char*> excluded = {}) {
    core::NodeRangeSpec spec{std::move(clusters), {}};
    for (const char* text : excluded) spec.excluded.push_back(prefix(text));
    const auto done = configure_node_ranges(context, spec);
    if (!done) return text_of(done.error());
    std::string text = done->changed ? "changed" : "same";
    for (const core::NodeRange& range : done->outside) text += " " + range.node + "=" + range.cidr.to_string();
    return text;
  }
  std::string take(const std::string& node) { return text_of(assign_node_ranges(context, node)); }
  std::string adopt(const std::string& node, const char* cidr) {
    return text_of(adopt_node_range(context, node, prefix(cidr)));
  }

  core::NodeRangeOverview seen() { return read_node_range_overview(context).value(); }
  /// "CIDR node" of all records.
  std::vector<std::string> records() {
    std::vector<std::string> lines;
    for (const auto& one : seen().ranges) lines.push_back(one.range.cidr.to_string() + " " + one.range.node);
    return lines;
  }
};

// --- giving out ---

TEST(NodeRange, NotFromServiceRangesThatTheStoreKnows) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("127.123.234.0/24", 30)}), "changed");
  world.put(core::range_allocation_key(core::kServiceIps), core::RangeAllocation{"127.123.234.0/26", "", {}});
  world.put(core::range_allocation_key(core::kSecondaryServiceIps), core::RangeAllocation{"garbage", "", {}});
  EXPECT_EQ(world.take("node-a"), "127.123.234.64/30");
  EXPECT_EQ(world.adopt("node-b", "127.123.234.8/30"),
            "refused_by_configuration: 127.123.234.8/30 overlaps 127.123.234.0/26, which no node may have (a Service "
            "range, a pool, or excluded)");
}

TEST(NodeRange, NotFromServiceCidrObjectsNorFromPoolsOfOthers) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("10.96.0.0/11", 20)}), "changed");
  core::ServiceCidrObject cidr;
  cidr.name = "kubernetes";
  cidr.cidrs = {World::prefix("10.96.0.0/12"), World::prefix("fd00:10:96::/112")};
  world.put(core::service_cidr_key(cidr.name), cidr);
  core::Pool pool;
  pool.name = "calicos";
  pool.cidr = World::prefix("10.112.0.0/16");
  pool.block_length = 26;
  world.put(core::pool_key(pool.name), pool);
  EXPECT_EQ(world.take("a"), "10.113.0.0/20");
  EXPECT_THAT(world.adopt("b", "10.97.0.0/20"), testing::HasSubstr("overlaps 10.96.0.0/12"));
}

TEST(NodeRange, APoolIsNotMadeOverServices) {
  NodeWorld world;
  core::ServiceCidrObject cidr;
  cidr.name = "kubernetes";
  cidr.cidrs = {World::prefix("10.96.0.0/12")};
  world.put(core::service_cidr_key(cidr.name), cidr);
  world.put(core::range_allocation_key(core::kSecondaryServiceIps), core::RangeAllocation{"10.32.0.0/24", "", nullptr});
  for (const auto& [pool, why] : {std::pair("10.100.0.0/16", "ServiceCIDR \"kubernetes\" (10.96.0.0/12)"),
                                  std::pair("10.32.0.128/25", "the Service range 10.32.0.0/24")}) {
    core::PoolSpec spec;
    spec.name = "web";
    spec.cidr = World::prefix(pool);
    spec.block_length = 26;
    const auto made = create_pool(world.context, spec);
    ASSERT_FALSE(made) << pool;
    EXPECT_THAT(made.error().message, testing::HasSubstr(why));
  }
}

// --- configuration ---

TEST(NodeRange, APoolMadeMeanwhileIsSeen) {
  /// Makes a pool the first time that pools are listed for the configuration.
  struct Meddling : store::MemoryStore {
    std::function<void()> once;
    [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
      auto answer = MemoryStore::read(wanted, deadline);
      if (wanted.lists.contains({core::Kind::pool, ""}) && once) std::exchange(once, {})();
      return answer;
    }
  };
  Meddling store;
  const ManualClock clock;
  SeededRandom random{1};
  const Context context{store, clock, random};
  store::MemoryStore other(store.data());
  const Context others{other, clock, random};
  store.once = [&] { ASSERT_TRUE(create_pool(others, World::spec("web", "10.0.0.0/20", 26))); };
  const auto done = configure_node_ranges(context, {{cut("10.0.0.0/16", 24)}, {}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "cluster CIDR 10.0.0.0/16 overlaps pool web (10.0.0.0/20)");
}

TEST(NodeRange, ADamagedConfigurationIsToldAndNotGuessed) {
  NodeWorld world;
  core::NodeRangeSet set;
  set.cluster_cidrs = {cut("0.0.0.0/4", 32)};
  world.put(core::node_range_set_key(), set);
  EXPECT_THAT(world.take("a"), HasSubstr("corrupt: stored configuration of node ranges: New CIDR set failed"));
  set.cluster_cidrs = {cut("10.0.0.0/24", 26)};  // without cursor, and with one past the end
  world.put(core::node_range_set_key(), set);
  EXPECT_EQ(world.take("a"), "10.0.0.0/26");
  set.cursors = {5, 9};
  world.put(core::node_range_set_key(), set);
  EXPECT_EQ(world.take("b"), "10.0.0.64/26");
  world.put(core::node_range_key(World::prefix("10.0.0.128/26")), core::NodeRange{"c", World::prefix("10.0.0.192/26")});
  EXPECT_EQ(world.take("d"), "corrupt: node range \"ipv4/10.0.0.128/26\" says that it is 10.0.0.192/26");
}

TEST(NodeRange, ADamagedPoolStopsWhoeverClaimsAndNobodyWhoLooks) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("10.0.0.0/16", 24)}), "changed");
  EXPECT_EQ(world.take("a"), "10.0.0.0/24");
  world.pool("p", "10.9.0.0/24", 26, 0);
  world.store.damage(core::pool_key("p"));
  EXPECT_THAT(world.take("b"), HasSubstr("corrupt"));
  const auto seen = read_node_range_overview(world.context);
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(seen->ranges.size(), 1U);
}

// --- nodes that are gone ---

struct Reconciled : NodeWorld {
  GoneNodes memory;
  ReconcileOptions options{10min, false};
  std::vector<std::string> alarms;  ///< of the last pass
  Reconciled() { EXPECT_EQ(configure({cut("10.0.0.0/22", 24)}), "changed"); }

  std::vector<std::string> pass() {
    const auto done = reconcile_node_ranges(context, memory, options);
    if (!done) return {text_of(done.error())};
    std::vector<std::string> lines;
    for (const auto& one : done->assigned)
      lines.push_back("assigned " + one.node + " " + one.cidrs.front().to_string());
    for (const auto& one : done->refused) lines.push_back("refused " + one.node);
    for (const auto& one : done->gone) lines.push_back("gone " + one.node + " " + one.cidr.to_string());
    for (const auto& one : done->released) lines.push_back("released " + one.node);
    alarms.clear();
    for (const auto& one : done->alarms) alarms.emplace_back(name_of(one.kind));
    return lines;
  }
};

TEST(NodeRangeReconcile, InAnotherEpochTheGraceBeginsAnew) {
  Reconciled world;
  for (const char* node : {"a", "b", "c"}) world.node(node, {});
  world.pass();
  world.put(core::node_key("b"), std::nullopt);
  EXPECT_THAT(world.pass(), ElementsAre("gone b 10.0.1.0/24"));
  world.clock.advance(10min);
  world.store.begin_epoch();
  EXPECT_THAT(world.pass(), ElementsAre("gone b 10.0.1.0/24"));
  world.clock.advance(10min);
  EXPECT_THAT(world.pass(), ElementsAre("released b"));
}

TEST(NodeRangeReconcile, NewNodesGetRangesAndGoneOnesGiveThemBackAfterTheGrace) {  // [N7] [N8]
  Reconciled world;
  for (const char* node : {"a", "b", "c", "d", "e"}) world.node(node, {});
  EXPECT_THAT(world.pass(), ElementsAre("assigned a 10.0.0.0/24", "assigned b 10.0.1.0/24", "assigned c 10.0.2.0/24",
                                        "assigned d 10.0.3.0/24", "refused e"));
  EXPECT_THAT(world.pass(), ElementsAre("refused e"));
  world.put(core::node_key("b"), std::nullopt);
  EXPECT_THAT(world.pass(), ElementsAre("refused e", "gone b 10.0.1.0/24"));
  world.clock.advance(9min);
  EXPECT_THAT(world.pass(), ElementsAre("refused e", "gone b 10.0.1.0/24"));
  world.clock.advance(1min);
  EXPECT_THAT(world.pass(), ElementsAre("assigned e 10.0.1.0/24", "released b"));
  EXPECT_THAT(world.pass(), IsEmpty());
}

TEST(NodeRangeReconcile, ANodeThatCameBackBeginsTheGraceAnew) {
  Reconciled world;
  world.node("a", {});
  world.node("b", {});
  ASSERT_EQ(world.pass().size(), 2U);
  world.put(core::node_key("b"), std::nullopt);
  EXPECT_THAT(world.pass(), ElementsAre("gone b 10.0.1.0/24"));
  world.node("b", {});
  EXPECT_THAT(world.pass(), IsEmpty());
  world.put(core::node_key("b"), std::nullopt);
  world.clock.advance(1h);
  EXPECT_THAT(world.pass(), ElementsAre("gone b 10.0.1.0/24"));
  // The wall clock says nothing.
  world.clock.jump_wall(1000h);
  EXPECT_THAT(world.pass(), ElementsAre("gone b 10.0.1.0/24"));
}

TEST(NodeRangeReconcile, TheGraceDoesNotRunWhileNoNodeIsSeen) {
  Reconciled world;
  for (const char* node : {"a", "b", "c"}) world.node(node, {});
  ASSERT_EQ(world.pass().size(), 3U);
  for (const char* node : {"a", "b", "c"}) world.put(core::node_key(node), std::nullopt);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(world.pass().size(), 3U);
    EXPECT_THAT(world.alarms, ElementsAre("lists_do_not_fit"));
    world.clock.advance(1h);
  }
  world.node("a", {});
  EXPECT_THAT(world.pass(), ElementsAre("gone b 10.0.1.0/24", "gone c 10.0.2.0/24"));
  EXPECT_THAT(world.alarms, ElementsAre("lists_do_not_fit")) << "1 of 3";
  world.clock.advance(1h);
  EXPECT_THAT(world.pass(), ElementsAre("gone b 10.0.1.0/24", "gone c 10.0.2.0/24")) << "the first look that counts";
  EXPECT_THAT(world.alarms, IsEmpty());
  world.node("b", {});
  world.clock.advance(10min);
  EXPECT_THAT(world.pass(), ElementsAre("released c"));
}

TEST(NodeRangeReconcile, AListThatShrankProvesNothingAlsoAfterARestart) {
  Reconciled world;
  for (const char* node : {"a", "b", "c"}) world.node(node, {});
  ASSERT_EQ(world.pass().size(), 3U);
  world.put(core::node_key("b"), std::nullopt);
  world.put(core::node_key("c"), std::nullopt);
  world.memory = {};
  EXPECT_EQ(world.pass().size(), 2U);
  EXPECT_THAT(world.alarms, ElementsAre("lists_do_not_fit"));
}

TEST(NodeRangeReconcile, OnePassGivesBackNoMoreThanItsShare) {
  Reconciled world;
  ASSERT_EQ(world.configure({cut("10.0.0.0/18", 24)}), "changed");
  for (int i = 0; i < 40; ++i) world.node("n" + std::to_string(i), {});
  ASSERT_EQ(world.pass().size(), 40U);
  for (int i = 0; i < 15; ++i) world.put(core::node_key("n" + std::to_string(i)), std::nullopt);
  EXPECT_EQ(world.pass().size(), 15U);
  EXPECT_THAT(world.alarms, IsEmpty());
  world.clock.advance(10min);
  world.pass();
  EXPECT_THAT(world.alarms, ElementsAre("too_many"));
  EXPECT_EQ(world.records().size(), 30U);
  world.pass();
  EXPECT_THAT(world.alarms, IsEmpty());
  EXPECT_EQ(world.records().size(), 25U);
}

TEST(NodeRangeReconcile, WithoutGraceOrOnADryRunNothingIsGivenBack) {
  Reconciled world;
  world.node("a", {});
  world.node("b", {});
  ASSERT_EQ(world.pass().size(), 2U);
  world.put(core::node_key("b"), std::nullopt);
  world.options.grace = 0s;
  EXPECT_THAT(world.pass(), ElementsAre("gone b 10.0.1.0/24"));
  world.clock.advance(1h);
  EXPECT_THAT(world.pass(), ElementsAre("gone b 10.0.1.0/24"));
  world.options = {10min, true};
  world.node("c", {});
  EXPECT_THAT(world.pass(), ElementsAre("released b"));
  EXPECT_THAT(world.records(), ElementsAre("10.0.0.0/24 a", "10.0.1.0/24 b"));
}

TEST(NodeRangeReconcile, ANodeThatComesBackDuringThePassKeepsItsRange) {
  Reconciled world;
  world.node("a", {});
  world.node("b", {});
  ASSERT_EQ(world.pass().size(), 2U);
  world.put(core::node_key("b"), std::nullopt);
  Meddler meddled(world.store);
  const Context context{meddled, world.clock, world.random};
  ASSERT_TRUE(reconcile_node_ranges(context, world.memory, world.options));
  world.clock.advance(10min);
  meddled.before_commit = [&] { world.node("b", {}); };
  const auto done = reconcile_node_ranges(context, world.memory, world.options);
  ASSERT_TRUE(done);
  EXPECT_THAT(done->released, IsEmpty());
  EXPECT_THAT(world.records(), ElementsAre("10.0.0.0/24 a", "10.0.1.0/24 b"));
}

/// Their keys differ; the set of ranges, which each writes, is what they have in common.
TEST(NodeRangeAdopt, OfTwoAtOnceThatOverlapOneIsRefused) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("10.0.0.0/16", 24)}), "changed");
  Meddler meddled(world.store);
  meddled.before_commit = [&] { EXPECT_EQ(world.adopt("b", "10.0.2.0/25"), "10.0.2.0/25"); };
  const Context context{meddled, world.clock, world.random};
  const auto adopted = adopt_node_range(context, "a", World::prefix("10.0.2.0/24"));
  ASSERT_FALSE(adopted);
  EXPECT_EQ(adopted.error().code, ErrorCode::already_exists) << adopted.error().message;
}

TEST(NodeRangeReconcile, ManyNodesInBatches) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("10.0.0.0/16", 24), cut("fd00::/48", 64)}, {"10.0.0.0/25"}), "changed");
  for (int i = 0; i < 100; ++i) world.node("node-" + std::to_string(100 + i), {});
  const auto before = world.store.counts().commit;
  GoneNodes memory;
  const auto done = reconcile_node_ranges(world.context, memory, {}).value();
  EXPECT_EQ(done.assigned.size(), 100U);
  EXPECT_EQ(world.store.counts().commit - before, 4U);
  const auto& counts = done.counts.at(World::prefix("10.0.0.0/16"));
  EXPECT_EQ(counts.tries.size(), 100U);
  EXPECT_EQ(counts.tries.front(), 1U);
  EXPECT_EQ(world.seen().use.front().taken, 101U);
  EXPECT_EQ(world.seen().ranges.size(), 200U);
}

// --- faults ---

/// The reply of the release is lost, and before it is decided again the node has got another range.
TEST(NodeRange, ALateReleaseLeavesTheNextRangeAlone) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("10.0.0.0/16", 24), cut("fd00::/48", 64)}), "changed");
  ASSERT_EQ(world.take("a"), "10.0.0.0/24 fd00::/64");
  Meddler meddled(world.store);
  meddled.lose_reply = true;
  meddled.after_commit = [&] { ASSERT_EQ(world.take("a"), "10.0.1.0/24 fd00:0:0:1::/64"); };
  const Context late{meddled, world.clock, world.random};
  const auto released = release_node_ranges(late, "a", core::IfRecorded::release);
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_THAT(released->cidrs, ElementsAre(World::prefix("10.0.0.0/24"), World::prefix("fd00::/64")));
  EXPECT_THAT(world.records(), ElementsAre("10.0.1.0/24 a", "fd00:0:0:1::/64 a"));

  // Only another's write in between, and the range is gone: it was given back.
  meddled.lose_reply = true;
  meddled.after_commit = [&] { ASSERT_EQ(world.take("b"), "10.0.2.0/24 fd00:0:0:2::/64"); };
  EXPECT_EQ(release_node_ranges(late, "a", core::IfRecorded::release).value().cidrs.size(), 2U);
  EXPECT_THAT(world.records(), ElementsAre("10.0.2.0/24 b", "fd00:0:0:2::/64 b"));
}

/// kubernetes/kubernetes#90922: another mask size.
TEST(NodeRange, SeveralLengthsLiveSideBySideOnEachStore) {
  for (const bool atomic : {true, false}) {
    NodeWorld world;
    if (!atomic) world.store.set_capabilities(kOneByOne);
    ASSERT_EQ(world.configure({cut("10.0.0.0/22", 27)}), "changed");
    EXPECT_EQ(world.take("a"), "10.0.0.0/27");
    ASSERT_EQ(world.configure({cut("10.0.0.0/22", 24)}), "changed");
    EXPECT_EQ(world.take("a"), "10.0.0.0/27") << "it keeps what it has";
    EXPECT_EQ(world.take("b"), "10.0.1.0/24");
    ASSERT_EQ(world.configure({cut("10.0.0.0/22", 28)}), "changed");
    EXPECT_EQ(world.take("c"), "10.0.0.32/28");
    EXPECT_EQ(world.adopt("d", "10.0.2.0/25"), "10.0.2.0/25");
    EXPECT_THAT(world.adopt("e", "10.0.2.64/26"), HasSubstr("already_exists"));
    EXPECT_THAT(world.seen().collisions, IsEmpty());
  }
}

// --- several writers ---

/// Where commits are not atomic, two may record one for a node before either has seen the other's.
TEST(NodeRange, OneByOneSeveralWhoGiveOneNodeARangeAgreeOnIt) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("10.0.0.0/16", 24), cut("fd00::/56", 64)}), "changed");
  constexpr int kWriters = 4;
  constexpr int kNodes = 40;
  std::vector<std::vector<std::string>> told(kWriters);
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      store::MemoryStore store(world.store.data());
      store.set_capabilities(kOneByOne);
      SeededRandom random{static_cast<std::uint64_t>(w) + 11};
      const Context context{store, world.clock, random};
      for (int i = 0; i < kNodes; ++i) {
        // Half of them begin at the other end: who gives ranges meanwhile moves the cursor on.
        const std::string node = "node-" + std::to_string(w % 2 == 0 ? i : kNodes - 1 - i);
        auto done = assign_node_ranges(context, node);
        for (int again = 0; !done && again < 20; ++again) done = assign_node_ranges(context, node);
        told[static_cast<std::size_t>(w)].push_back(node + " " + text_of(done));
      }
      std::ranges::sort(told[static_cast<std::size_t>(w)]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : told) EXPECT_EQ(one, told.front());
  EXPECT_THAT(world.seen().collisions, IsEmpty());
  EXPECT_EQ(world.seen().ranges.size(), std::size_t{kNodes} * 2);
}

/// The remedy of `croft check`, for any store.
TEST(NodeRange, AssignGivesBackWhatTheNodeHasTwice) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("10.0.0.0/22", 24)}), "changed");
  EXPECT_EQ(world.take("a"), "10.0.0.0/24");
  world.put(core::node_range_key(World::prefix("10.0.2.0/24")), core::NodeRange{"a", World::prefix("10.0.2.0/24")});
  EXPECT_EQ(world.seen().surplus.size(), 1U);
  EXPECT_EQ(world.take("b"), "10.0.1.0/24");
  EXPECT_EQ(world.seen().surplus.size(), 1U);
  EXPECT_EQ(world.take("a"), "10.0.0.0/24");
  EXPECT_THAT(world.records(), ElementsAre("10.0.0.0/24 a", "10.0.1.0/24 b"));
}

TEST(NodeRangeReconcile, GivesBackWhatANodeHasTwice) {
  NodeWorld world;
  world.store.set_capabilities(kOneByOne);
  ASSERT_EQ(world.configure({cut("10.0.0.0/22", 24)}), "changed");
  for (const char* name : {"a", "b"}) world.node(name, {});
  const auto range = [](const char* node, const char* cidr) { return core::NodeRange{node, World::prefix(cidr)}; };
  // As who died before he looked left them, the later one first.
  for (const auto& one :
       {range("a", "10.0.2.0/24"), range("a", "10.0.0.0/24"), range("b", "10.0.1.0/24"), range("b", "10.0.3.0/24")}) {
    world.put(core::node_range_key(one.cidr), one);
  }
  EXPECT_EQ(world.seen().surplus.size(), 2U);
  GoneNodes memory;
  ReconcileOptions options;
  options.said = {range("b", "10.0.3.0/24")};
  options.dry_run = true;
  EXPECT_THAT(reconcile_node_ranges(world.context, memory, options)->surplus, IsEmpty());
  EXPECT_EQ(world.records().size(), 4U);
  options.dry_run = false;
  const auto done = reconcile_node_ranges(world.context, memory, options);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->surplus.size(), 2U);
  EXPECT_THAT(world.records(), ElementsAre("10.0.2.0/24 a", "10.0.3.0/24 b"));
  EXPECT_EQ(world.take("a"), "10.0.2.0/24");
}

/// Where commits are not atomic, who still cuts with the mask of before may record one that overlaps.
TEST(NodeRange, OneByOneWritersOfSeveralLengthsStayApart) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("10.0.0.0/16", 26)}), "changed");
  constexpr int kWriters = 4;
  std::array<std::map<std::string, std::vector<net::Prefix>>, kWriters> told;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      store::MemoryStore store(world.store.data());
      store.set_capabilities(kOneByOne);
      SeededRandom random{static_cast<std::uint64_t>(w) + 7};
      const Context context{store, world.clock, random};
      for (int i = 0; i < 24; ++i) {
        static_cast<void>(configure_node_ranges(context, {{cut("10.0.0.0/16", 24 + (i + w) % 4)}, {}}));
        const std::string node = "node-" + std::to_string(w) + "-" + std::to_string(i);
        auto done = assign_node_ranges(context, node);
        for (int again = 0; !done && again < 40; ++again) done = assign_node_ranges(context, node);
        ASSERT_TRUE(done) << done.error().message;
        told[static_cast<std::size_t>(w)][node] = done->cidrs;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto seen = world.seen();
  EXPECT_THAT(seen.collisions, IsEmpty());
  EXPECT_EQ(seen.ranges.size(), std::size_t{kWriters} * 24);
  for (const core::NodeRangeSeen& one : seen.ranges) {
    const auto writer = static_cast<std::size_t>(one.range.node[5] - '0');
    EXPECT_EQ(told[writer][one.range.node], std::vector{one.range.cidr}) << "what was answered stays";
  }
}

TEST(NodeRangeReconcile, GivesBackWhatOverlapsWhereTwoWroteAtOnce) {
  for (const bool atomic : {true, false}) {
    NodeWorld world;
    if (!atomic) world.store.set_capabilities(kOneByOne);
    ASSERT_EQ(world.configure({cut("10.0.0.0/22", 24)}), "changed");
    for (const char* name : {"a", "b"}) world.node(name, {});
    // As who died before he looked left it.
    for (const auto& [node, cidr] : {std::pair("a", "10.0.0.32/27"), std::pair("b", "10.0.0.0/24")}) {
      world.put(core::node_range_key(World::prefix(cidr)), core::NodeRange{node, World::prefix(cidr)});
    }
    GoneNodes memory;
    ASSERT_TRUE(reconcile_node_ranges(world.context, memory, {}));
    if (atomic) {
      EXPECT_EQ(world.seen().collisions.size(), 1U) << "there it is damage, which a person looks at";
    } else {
      EXPECT_THAT(world.records(), ElementsAre("10.0.0.32/27 a", "10.0.1.0/24 b"));
    }
  }
}

/// Each of `writers` threads gets ranges for 24 nodes of its own, all at once, from 100.
void take_with(int writers, store::Capabilities capabilities) {
  NodeWorld world;
  ASSERT_EQ(world.configure({cut("10.0.0.0/16", 24), cut("fd00::/56", 64)}), "changed");
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      store::MemoryStore store(world.store.data());
      store.set_capabilities(capabilities);
      SeededRandom random{static_cast<std::uint64_t>(w) + 7};
      const Context context{store, world.clock, random};
      for (int i = 0; i < 24; ++i) {
        const std::string node = "node-" + std::to_string(w) + "-" + std::to_string(i);
        // A loser may give up after many tries; asked again it goes on.
        auto done = assign_node_ranges(context, node);
        for (int again = 0; !done && again < 20; ++again) done = assign_node_ranges(context, node);
        EXPECT_TRUE(done) << done.error().message;
        if (i % 3 != 0) continue;
        auto released = release_node_ranges(context, node, core::IfRecorded::release);
        for (int again = 0; !released && again < 20; ++again)
          released = release_node_ranges(context, node, core::IfRecorded::release);
        EXPECT_TRUE(released) << released.error().message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto seen = world.seen();
  EXPECT_THAT(seen.collisions, IsEmpty());
  EXPECT_EQ(seen.ranges.size(), static_cast<std::size_t>(writers) * 16 * 2);
  std::map<std::string, int> ranges_of;
  for (const auto& one : seen.ranges) ++ranges_of[one.range.node];
  for (const auto& [node, count] : ranges_of) EXPECT_EQ(count, 2) << node;
}

TEST(NodeRange, WritersAtOnceGetDifferentRanges) { take_with(4, {.atomic_commit = true}); }
TEST(NodeRange, WritersAtOnceGetDifferentRangesOneByOne) { take_with(3, kOneByOne); }

// --- any history ---

store::Fault any_fault() {
  return *rc::gen::element(store::Fault::lose_reply, store::Fault::lose_request, store::Fault::conflict,
                           store::Fault::unavailable, store::Fault::storage_full);
}

/// The dumbest check: every pair.
bool all_apart(const std::vector<core::NodeRangeSeen>& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    for (std::size_t k = i + 1; k < ranges.size(); ++k) {
      if (ranges[i].range.cidr.overlaps(ranges[k].range.cidr)) return false;
    }
  }
  return true;
}

void any_history(bool atomic) {
  NodeWorld world;
  if (!atomic) world.store.set_capabilities(kOneByOne);
  const std::vector<std::vector<core::ClusterCidr>> configurations =
      atomic ? std::vector<std::vector<core::ClusterCidr>>{{cut("10.0.0.0/28", 30), cut("fd00::/61", 64)},
                                                           {cut("10.0.0.0/28", 31)},
                                                           {cut("fd00::/61", 63), cut("10.0.0.8/29", 32)},
                                                           {cut("10.0.0.0/29", 30), cut("10.0.0.16/29", 31)}}
             : std::vector<std::vector<core::ClusterCidr>>{{cut("10.0.0.0/28", 30), cut("fd00::/61", 64)},
                                                           {cut("10.0.0.0/28", 30)},
                                                           {cut("fd00::/61", 64), cut("10.0.0.8/29", 30)}};
  RC_ASSERT(world.configure(configurations.front()) == "changed");
  std::map<std::string, std::set<net::Prefix>> ledger;  // what was acknowledged, and not surely given back
  const int steps = *rc::gen::inRange(1, 50);
  for (int i = 0; i < steps; ++i) {
    const std::string node = "n" + std::to_string(*rc::gen::inRange(0, 6));
    if (*rc::gen::inRange(0, 3) == 0) {
      const auto nth = world.store.counts().commit + static_cast<std::uint64_t>(*rc::gen::inRange(1, 5));
      // Once, or for good: the process died.
      const bool for_good = *rc::gen::arbitrary<bool>();
      world.store.set_faults(for_good ? store::FaultScript().from_commit(nth, store::Fault::unavailable)
                                      : store::FaultScript().on_commit(nth, any_fault()));
    }
    const auto acknowledge = [&](const Result<core::NodeRangesAssigned>& answer) {
      if (!answer) return;
      for (const net::Prefix& cidr : answer->cidrs) ledger[node].insert(cidr);
      std::set<net::Family> families;
      for (const net::Prefix& cidr : answer->cidrs) RC_ASSERT(families.insert(cidr.family()).second);
    };
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
      case 1:
      case 2:
        acknowledge(assign_node_ranges(world.context, node));
        break;
      case 3: {
        const auto length = *rc::gen::inRange(28, 33);
        const auto address = net::Address::v4(0x0a000000U + static_cast<std::uint32_t>(*rc::gen::inRange(0, 32)));
        acknowledge(adopt_node_range(world.context, node, net::Prefix::containing(address, length)));
        break;
      }
      case 4:
        // Whether it succeeds or not, nothing is promised any more.
        ledger.erase(node);
        static_cast<void>(release_node_ranges(world.context, node, core::IfRecorded::release));
        break;
      default: {
        const auto which = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(configurations.size())));
        static_cast<void>(configure_node_ranges(world.context, {configurations[which], {}}));
      }
    }
    world.store.set_faults({});
    const auto seen = world.seen();
    RC_ASSERT(all_apart(seen.ranges));
    RC_ASSERT(seen.collisions.empty());
    for (const auto& [holder, cidrs] : ledger) {
      for (const net::Prefix& cidr : cidrs) {
        const bool recorded = std::ranges::any_of(seen.ranges, [&](const auto& one) {
          return one.range == core::NodeRange{holder, cidr};
        });
        RC_ASSERT(recorded);
      }
    }
    for (const core::ClusterCidrUse& use : seen.use) RC_ASSERT(use.taken <= use.size);
  }
  // When faults stop, everything can be given back, and all of it given out again.
  for (int i = 0; i < 6; ++i)
    RC_ASSERT(release_node_ranges(world.context, "n" + std::to_string(i), core::IfRecorded::release).has_value());
  RC_ASSERT(world.seen().ranges.empty());
  RC_ASSERT(configure_node_ranges(world.context, {configurations.front(), {}}).has_value());
  std::set<std::string> given;
  for (int i = 0; i < 4; ++i) given.insert(world.take("m" + std::to_string(i)));
  RC_ASSERT(given.size() == 4U);
  RC_ASSERT(world.seen().use.front().taken == 4U);
}

TEST(NodeRangeProperty, RangesAreApartUnderAnyHistoryWithFaults) {
  EXPECT_TRUE(rc::check([] { any_history(true); }));
}
TEST(NodeRangeProperty, RangesAreApartUnderAnyHistoryWithFaultsOneByOne) {
  EXPECT_TRUE(rc::check([] { any_history(false); }));
}

}  // namespace
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The objects of a cluster's nodes.
class SomeNodes final : public NodeCidrs {
 public:
  [[nodiscard]] Result<std::vector<OfNode>> all() override { return nodes; }
  [[nodiscard]] Result<void> publish(const std::string& node, const std::vector<net::Prefix>& cidrs) override {
    if (publish_error) return fail(*publish_error);
    std::set<net::Family> families;
    for (const net::Prefix& cidr : cidrs) {
      if (families.insert(cidr.family()).second) continue;
      return fail(ErrorCode::refused_by_configuration, "may specify no more than one CIDR for each IP family");
    }
    OfNode& found = of(node);
    EXPECT_THAT(found.cidrs, IsEmpty()) << "the API lets nobody change them";
    found.cidrs = cidrs;
    return {};
  }
  OfNode& of(const std::string& node) { return *std::ranges::find(nodes, node, &OfNode::node); }
  std::vector<OfNode> nodes;
  std::optional<Error> publish_error;
};

struct Cluster : World {
  Cluster() {
    const core::NodeRangeSpec spec{{{prefix("10.244.0.0/16"), 24}, {prefix("fd00::/56"), 64}}, {}};
    EXPECT_TRUE(configure_node_ranges(context, spec));
  }
  void make(const std::string& name, const std::vector<const char*>& cidrs = {}) {
    node(name, {});
    NodeCidrs::OfNode& made = nodes.nodes.emplace_back();
    made.node = name;
    for (const char* cidr : cidrs) made.cidrs.push_back(prefix(cidr));
  }
  /// As the controller does it; false when nothing may be given.
  bool pass() {
    auto found = adopt_node_cidrs(context, nodes, memory, false);
    EXPECT_TRUE(found) << found.error().message;
    adopted = *std::move(found);
    if (adopted.rival) return false;
    ReconcileOptions options;
    options.as_they_are = adopted.as_they_are;
    options.said = adopted.said;
    EXPECT_TRUE(reconcile_node_ranges(context, gone, options));
    auto done = say_node_cidrs(context, nodes);
    EXPECT_TRUE(done) << done.error().message;
    said = *std::move(done);
    return true;
  }
  /// A node whose ranges are recorded, and whose object could not be told of them; false as of pass().
  bool record_unsaid(const std::string& name) {
    make(name);
    nodes.publish_error = Error{ErrorCode::unavailable, "the API is away", {}};
    const bool may_give = pass();
    nodes.publish_error.reset();
    return may_give;
  }
  std::vector<std::string> said_by(const std::string& node) {
    std::vector<std::string> texts;
    for (const net::Prefix& cidr : nodes.of(node).cidrs) texts.push_back(cidr.to_string());
    return texts;
  }

  SomeNodes nodes;
  NodeCidrsMemory memory;
  GoneNodes gone;
  NodeCidrsAdopted adopted;
  NodeCidrsSaid said;
};

TEST(NodeCidrs, ANewNodeSaysItsRangesThatOfTheFirstClusterCidrFirst) {
  Cluster cluster;
  cluster.make("oak");
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.0.0/24", "fd00::/64"));
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said.said, IsEmpty());
}

/// A controller that dies between the record and the object.
TEST(NodeCidrs, WhatIsRecordedIsSaidByTheNextPass) {
  Cluster cluster;
  cluster.make("oak");
  cluster.nodes.publish_error = Error{ErrorCode::unavailable, "the API is away", {}};
  ASSERT_TRUE(cluster.pass());
  ASSERT_EQ(cluster.said.failed.size(), 1U);
  EXPECT_THAT(cluster.said_by("oak"), IsEmpty());
  cluster.nodes.publish_error.reset();
  cluster.make("elm");
  cluster.memory = {};  // another controller
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.0.0/24", "fd00::/64"));
  EXPECT_THAT(cluster.said_by("elm"), ElementsAre("10.244.1.0/24", "fd00:0:0:1::/64"));
}

TEST(NodeCidrs, BesideAnotherProgramNothingIsGiven) {
  Cluster cluster;
  ASSERT_TRUE(cluster.record_unsaid("oak"));
  cluster.nodes.of("oak").cidrs = {World::prefix("10.244.77.0/24")};
  cluster.nodes.of("oak").written_by = "kube-controller-manager";
  cluster.make("elm");
  EXPECT_FALSE(cluster.pass());
  EXPECT_THAT(*cluster.adopted.rival,
              testing::AllOf(HasSubstr("oak"), HasSubstr("10.244.77.0/24"), HasSubstr("kube-controller-manager"),
                             HasSubstr("--allocate-node-cidrs=false")));
  EXPECT_FALSE(cluster.pass()) << "for good";
  EXPECT_THAT(cluster.said_by("elm"), IsEmpty());
}

TEST(NodeCidrs, OneNodesFaultKeepsNobodyElseWaiting) {
  Cluster cluster;
  cluster.make("oak");
  cluster.make("elm");
  cluster.make("ash");
  cluster.make("out", {"192.168.0.0/24"});
  cluster.nodes.of("elm").damage = Error{ErrorCode::corrupt, "node elm says the range \"odd\"", {}};
  cluster.nodes.of("ash").being_deleted = true;
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.0.0/24", "fd00::/64"));
  EXPECT_THAT(cluster.said_by("elm"), IsEmpty());
  EXPECT_THAT(cluster.said_by("ash"), IsEmpty());
  std::vector<std::string> failed;
  for (const auto& [node, error] : cluster.adopted.failed) failed.push_back(node);
  EXPECT_THAT(failed, ElementsAre("elm", "out"));
}

std::vector<std::string> failed_in(const NodeCidrsAdopted& adopted) {
  std::vector<std::string> nodes;
  for (const auto& [node, error] : adopted.failed) nodes.push_back(node);
  return nodes;
}

/// A record of before is in its grace yet, and then it is gone while another node says its range.
TEST(NodeCidrs, WhatAnotherNodesRecordStandsInTheWayOfIsNobodyElses) {
  Cluster cluster;
  cluster.make("old");
  ASSERT_TRUE(cluster.pass());
  cluster.nodes.nodes.clear();
  cluster.put(core::node_key("old"), std::nullopt);
  cluster.make("heir", {"10.244.0.0/24", "fd00::/64"});
  cluster.make("a");
  cluster.make("b");
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(failed_in(cluster.adopted), ElementsAre("heir", "heir"));
  ASSERT_EQ(cluster.adopted.overlaps.size(), 2U);
  EXPECT_EQ(
      cluster.adopted.overlaps.front(),
      (core::SaidOverlap{{"heir", World::prefix("10.244.0.0/24")}, {"old", World::prefix("10.244.0.0/24")}, true}));
  ASSERT_TRUE(release_node_ranges(cluster.context, "old", core::IfRecorded::refuse));
  ReconcileOptions options;
  options.said = cluster.adopted.said;
  options.as_they_are = cluster.adopted.as_they_are;
  cluster.make("c");
  // The round of the cursor: without what is said, one of these would get the heir's.
  const core::NodeRangeSpec small{{{World::prefix("10.244.0.0/22"), 24}, {World::prefix("fd00::/62"), 64}}, {}};
  ASSERT_TRUE(configure_node_ranges(cluster.context, small));
  cluster.make("d");
  const auto done = reconcile_node_ranges(cluster.context, cluster.gone, options);
  ASSERT_TRUE(done);
  ASSERT_EQ(done->assigned.size(), 1U);
  EXPECT_EQ(done->assigned.front().cidrs,
            (std::vector{World::prefix("10.244.3.0/24"), World::prefix("fd00:0:0:3::/64")}));
  ASSERT_EQ(done->refused.size(), 1U);
  EXPECT_THAT(done->refused.front().refusal->message, HasSubstr("beside 1 that nodes' objects say without a record"));
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.adopted.adopted, testing::SizeIs(2)) << "and now the heir's is its own by the record too";
}

/// Else two nodes would say one range.
TEST(NodeCidrs, ARecordIsNotSaidBesideAnotherNodesWord) {
  Cluster cluster;
  ASSERT_TRUE(cluster.record_unsaid("oak"));
  cluster.make("elm", {"10.244.0.0/25"});
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), IsEmpty());
  ASSERT_EQ(cluster.said.failed.size(), 1U);
  EXPECT_EQ(cluster.said.failed.front().first, "oak");
  EXPECT_THAT(
      cluster.said.failed.front().second.message,
      testing::AllOf(HasSubstr("elm"), HasSubstr("10.244.0.0/25"), HasSubstr("croft node range release oak --force")));
  ASSERT_TRUE(release_node_ranges(cluster.context, "oak", core::IfRecorded::release));
  ASSERT_TRUE(cluster.pass());
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.1.0/24", "fd00:0:0:1::/64"));
}

TEST(NodeCidrs, WhatAnotherNodeSaysIsNotTakenDownByHand) {
  Cluster cluster;
  cluster.make("oak");
  cluster.make("elm", {"10.244.7.0/25"});
  const auto look = look_at_node_cidrs(cluster.nodes);
  ASSERT_TRUE(look);
  const auto done = adopt_node_range(cluster.context, "oak", World::prefix("10.244.7.0/24"), look->said);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::already_exists);
  EXPECT_THAT(done.error().message, testing::AllOf(HasSubstr("10.244.7.0/25"), HasSubstr("elm")));
  EXPECT_TRUE(adopt_node_range(cluster.context, "elm", World::prefix("10.244.7.0/25"), look->said)) << "its own";
}

/// Another controller gave one after this one's look: what it gives back a moment later is no trouble to tell of.
TEST(NodeCidrs, OfTwoRangesThatWereGivenAtOnceOneIsSaid) {
  Cluster cluster;
  store::Capabilities one_by_one = cluster.store.capabilities();
  one_by_one.atomic_commit = false;
  cluster.store.set_capabilities(one_by_one);
  cluster.make("oak");
  for (const char* cidr : {"10.244.3.0/24", "10.244.7.0/24", "fd00:0:0:1::/64"}) {
    const core::NodeRange range{"oak", World::prefix(cidr)};
    cluster.put(core::node_range_key(range.cidr), range);
  }
  const auto done = say_node_cidrs(cluster.context, cluster.nodes);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(done->failed, IsEmpty());
  ASSERT_EQ(done->surplus.size(), 1U);
  EXPECT_EQ(done->surplus[0].range.cidr.to_string(), "10.244.7.0/24");
  EXPECT_THAT(cluster.said_by("oak"), ElementsAre("10.244.3.0/24", "fd00:0:0:1::/64"));
}

TEST(NodeCidrs, WithoutConfigurationNothingIsDone) {
  World world;
  SomeNodes nodes;
  nodes.nodes.push_back({"oak", {World::prefix("10.0.0.0/24")}, {}, false, {}});
  NodeCidrsMemory memory;
  EXPECT_THAT(adopt_node_cidrs(world.context, nodes, memory, false)->adopted, IsEmpty());
  EXPECT_THAT(say_node_cidrs(world.context, nodes)->said, IsEmpty());
}

}  // namespace
}  // namespace croft::engine
