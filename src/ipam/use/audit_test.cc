#include "ipam/use/audit.h"

#include <fmt/format.h>

#include "ipam/use/nodes.h"
#include "ipam/use/test_world.h"

namespace croft::engine {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using namespace std::chrono_literals;

RunningPods listed(std::vector<core::audit::RunningPod> pods) {
  return [pods = std::move(pods)] { return Result<std::vector<core::audit::RunningPod>>(pods); };
}

/// A sound register that each test spoils in one way, past all guards.
class AuditTest : public testing::Test, public World {
 protected:
  void SetUp() override {
    pool("a", "10.1.0.0/28", 29);
    add("c1");
    add("c2");
    ASSERT_THAT(findings(), IsEmpty());
    block_ = read_overview(context)->pools[0].blocks[0].block;
  }
  void put_large_handle() {
    core::Handle large{"net.c3", {}, false};
    for (int i = 0; i < 3000; ++i) large.blocks[fmt::format("10.2.{}.{}/29", i / 32, i % 32 * 8)] = 1;
    put(core::handle_key("net.c3"), large);
  }
  const core::AffinityOwner node_{core::AffinityOwner::Type::host, "node-a"};
  core::Block block_;
};

TEST_F(AuditTest, BlockWithoutPoolAndOverlap) {
  put(core::block_key(prefix("10.9.0.0/29")), core::new_block(prefix("10.9.0.0/29"), {}, clock.now(), {}));
  put(core::block_key(prefix("10.9.0.4/30")), core::new_block(prefix("10.9.0.4/30"), {}, clock.now(), {}));
  EXPECT_THAT(findings(), Contains(HasSubstr("block_without_pool block 10.9.0.0/29")));
  EXPECT_THAT(findings(), Contains(HasSubstr("block_overlap block 10.9.0.4/30: it overlaps block 10.9.0.0/29")));
  put(core::block_key(prefix("10.1.0.0/30")), core::new_block(prefix("10.1.0.0/30"), {}, clock.now(), {}));
  EXPECT_THAT(findings(), Contains("block_without_pool block 10.1.0.0/30: pool a has blocks of /29"));
}

TEST_F(AuditTest, ClaimsAndHints) {
  put(core::affinity_key(node_, block_.cidr), std::nullopt);
  put(core::vacancy_key(node_, block_.cidr), std::nullopt);
  put(core::affinity_key(node_, prefix("10.1.0.24/29")), core::Affinity{node_, prefix("10.1.0.24/29"), {}, false});
  put(core::vacancy_key(core::AffinityOwner{core::AffinityOwner::Type::host, "node-b"}, block_.cidr), core::Vacancy{});
  const auto found = findings();
  for (const char* kind : {"affinity_missing", "vacancy_missing", "affinity_stale"}) {
    EXPECT_THAT(found, Contains(HasSubstr(kind)));
  }
  EXPECT_THAT(found, Not(Contains(HasSubstr("nothing to do"))));
}

TEST_F(AuditTest, Handles) {
  put(core::handle_key("net.c1"), std::nullopt);
  put(core::handle_key("net.c2"), core::Handle{"net.c2", {{block_.cidr.to_string(), 5}}, false});
  put(core::handle_key("net.c3"), core::Handle{"net.c3", {{block_.cidr.to_string(), 1}}, false});
  const auto found = findings();
  EXPECT_THAT(found, Contains(HasSubstr("handle_missing handle net.c1")));
  EXPECT_THAT(found, Contains(HasSubstr("handle_miscount handle net.c2")));
  EXPECT_THAT(found, Contains(HasSubstr("handle_empty handle net.c3: block 10.1.0.8/29: counts 1, holds 0")));
  put(core::handle_key("net.c1"), core::Handle{"net.c1", {}, false});
  EXPECT_THAT(findings(), Contains("handle_undercount handle net.c1: block 10.1.0.8/29: counts 0, holds 1"));
}

/// Of a handle with tens of thousands of blocks no more is said than people read.
TEST_F(AuditTest, OfAHandleWithManyBlocksTheFirstTenAreNamed) {
  put_large_handle();
  const auto found = findings();
  EXPECT_THAT(found, Contains(AllOf(HasSubstr("handle_empty handle net.c3: block 10.2.0.0/29: counts 1, holds 0; "),
                                    HasSubstr("; and 2990 more blocks"))));
  for (const std::string& one : found) EXPECT_LT(one.size(), 700U);
}

/// A store without common moments, whose handles nobody reads all at once.
class PagedHandles : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  [[nodiscard]] store::Capabilities capabilities() const override {
    store::Capabilities can = ForwardingStore::capabilities();
    can.atomic_commit = false;
    return can;
  }
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    EXPECT_FALSE(wanted.lists.contains({core::Kind::handle, ""}));
    return ForwardingStore::read(wanted, deadline);
  }
};

/// A handle may have a megabyte, and there is one for each pod.
TEST_F(AuditTest, WhereNothingIsOfOneMomentHandlesAreLookedAtOneByOne) {
  put_large_handle();
  put(core::handle_key("net.c1"), std::nullopt);
  put(core::handle_key("net.c2"), core::Handle{"net.c2", {{block_.cidr.to_string(), 5}}, false});
  put(core::handle_key("net.c4"), core::Handle{"net.c4", {}, true});
  PagedHandles paged(store);
  const auto whole = audit(context, {});
  const auto by_pages = audit({paged, clock, random}, {});
  ASSERT_TRUE(whole && by_pages);
  const auto texts_of = [](const AuditReport& report) {
    std::vector<std::string> texts;
    for (const auto& one : report.findings) texts.push_back(std::string(one.id) + one.subject + one.what);
    for (const auto& one : report.leaked_handles) texts.push_back(fmt::format("{} {}", one.id, one.revision.value));
    texts.push_back(fmt::format("{} handles", report.handles));
    return texts;
  };
  EXPECT_EQ(texts_of(*by_pages), texts_of(*whole));
  EXPECT_EQ(by_pages->leaked_handles.size(), 1U);
}

TEST_F(AuditTest, ClaimsThatWereInterrupted) {
  put(core::affinity_key(node_, block_.cidr),
      core::Affinity{node_, block_.cidr, core::AffinityState::pending_deletion, false});
  put(core::affinity_key(node_, prefix("10.1.0.0/29")),
      core::Affinity{node_, prefix("10.1.0.0/29"), core::AffinityState::pending, false});
  const core::AffinityOwner other{core::AffinityOwner::Type::host, "node-b"};
  put(core::affinity_key(other, block_.cidr),
      core::Affinity{other, block_.cidr, core::AffinityState::confirmed, false});
  EXPECT_THAT(
      findings(),
      testing::UnorderedElementsAre(
          "affinity_unconfirmed affinity host/node-a/ipv4/10.1.0.8/29: it is to be deleted, though the block is its "
          "owner's",
          "affinity_stale affinity host/node-a/ipv4/10.1.0.0/29: there is no such block; the claim is pending",
          "affinity_stale affinity host/node-b/ipv4/10.1.0.8/29: the block belongs to host:node-a"));
}

TEST_F(AuditTest, SelectorsThatDoNotParseAndSwitchesThatContradictEachOther) {
  change_pool("a", [](core::Pool& p) {
    p.node_selector = "zone ==";
    p.namespace_selector = "has(";
  });
  config([](core::IpamConfig& c) { c.max_blocks_per_host = 3; });
  const auto found = findings();
  EXPECT_THAT(found, Contains(HasSubstr("selector_invalid pool a: nodeSelector of pool a does not parse")));
  EXPECT_THAT(found, Contains(HasSubstr("selector_invalid pool a: namespaceSelector")));
  EXPECT_THAT(found, Contains(HasSubstr("config_contradicts configuration: maxBlocksPerHost 3 needs")));
}

TEST_F(AuditTest, ReleaseYetToCome) {
  del("c1");
  EXPECT_THAT(findings(), IsEmpty());
  for (core::Block block = read_overview(context)->pools[0].blocks[0].block;
       core::Attribute & attribute : block.attributes) {
    if (!attribute.cooling) continue;
    attribute.cooling->released_at = Instant{clock.now().wall + 1h, {}, {}};
    put(core::block_key(block.cidr), block);
  }
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("release_in_future 10.1.0.")));
}

TEST_F(AuditTest, CountsNodesAndWhatIsBorrowed) {
  add("c3", "node-b");
  for (int i = 0; i < 4; ++i) add("d" + std::to_string(i));
  const auto report = audit(context, {}).value();
  ASSERT_EQ(report.nodes.size(), 2U);
  EXPECT_EQ(report.nodes[0].node, "node-a");
  EXPECT_EQ(report.nodes[0].held, 6U);
  EXPECT_EQ(report.nodes[1].blocks, 1U);
  EXPECT_EQ(report.allocations.size(), 7U);
  EXPECT_EQ(report.borrowed, 0U);
  EXPECT_EQ(report.without_node, 0U);
}

TEST_F(AuditTest, TheRuntimeOfOneNodeSaysNothingOfOthers) {
  add("c3", "node-b");
  clock.advance(60s);
  const core::audit::LiveAttachments other = runtime({{"net", "x", "eth0"}});
  EXPECT_EQ(audit(context, {other}).value().findings.size(), 3U);
  EXPECT_EQ(audit(context, {.live = other, .node = "node-b"}).value().findings.size(), 1U);
}

TEST_F(AuditTest, BesideForeignWritersPoolsWithoutGatewayNeedNoReservations) {
  put(core::reservation_key("pool-a"), std::nullopt);
  store.set_capabilities({.atomic_commit = true, .foreign_writers = true});
  EXPECT_THAT(findings(), Contains(HasSubstr("reservation_missing")));
  change_pool("a", [](core::Pool& pool) { pool.gateway.reset(); });
  store.set_capabilities({.atomic_commit = true});
  EXPECT_THAT(findings(), Contains(HasSubstr("reservation_missing")));
  store.set_capabilities({.atomic_commit = true, .foreign_writers = true});
  EXPECT_THAT(findings(), IsEmpty());
}

/// What an account may not read is not held against what it may, and is told.
TEST_F(AuditTest, WithoutARightTheRestIsJudged) {
  using core::Kind;
  put(core::handle_key("net.c9"), core::Handle{"net.c9", {{block_.cidr.to_string(), 1}}, false});
  PagedHandles paged(store);
  for (store::Store* beneath : {static_cast<store::Store*>(&store), static_cast<store::Store*>(&paged)}) {
    Forbidding some(*beneath);
    for (const Kind kind : {Kind::handle, Kind::affinity, Kind::reservation, Kind::ipam_config, Kind::node}) {
      some.forbidden = {kind};
      const auto report = audit({some, clock, random}, {});
      ASSERT_TRUE(report) << core::name_of(kind) << ": " << report.error().message;
      EXPECT_EQ(report->not_allowed.size(), 1U) << core::name_of(kind);
      EXPECT_TRUE(report->not_allowed.contains(kind));
      EXPECT_EQ(report->findings.size(), kind == Kind::handle ? 0U : 1U) << core::name_of(kind);
      EXPECT_EQ(report->held, 2U);
    }
    for (const Kind kind : {Kind::pool, Kind::block}) {
      some.forbidden = {kind};
      EXPECT_EQ(audit({some, clock, random}, {}).error().code, ErrorCode::permission_denied) << core::name_of(kind);
    }
  }
}

/// A server that takes connections and says nothing: every call ends with its deadline.
class SilentStore : public store::MemoryStore {
 public:
  explicit SilentStore(ErrorCode code) : code_(code) {}
  Result<store::Revision> position(Deadline deadline) override {
    asked_until = deadline;
    return fail(code_, "no answer in time");
  }
  Deadline asked_until;

 private:
  const ErrorCode code_;
};

TEST_F(AuditTest, WaitsForAStoreThatSaysNothingNoLongerThanForItsFirstWord) {
  for (const ErrorCode code : {ErrorCode::deadline_exceeded, ErrorCode::unavailable}) {
    SilentStore silent(code);
    const auto heard = wait_for_first_answer({silent, clock, random, std::chrono::minutes(10)});
    ASSERT_FALSE(heard);
    EXPECT_EQ(heard.error().code, code);
    EXPECT_THAT(heard.error().message, testing::HasSubstr("the store does not answer"));
    EXPECT_EQ(silent.asked_until.at_since_boot, clock.now().since_boot + kFirstAnswerMax);
  }
  // What is wrong otherwise, the look at the register says.
  SilentStore refusing(ErrorCode::permission_denied);
  EXPECT_TRUE(wait_for_first_answer({refusing, clock, random, std::chrono::minutes(10)}));
}

class DamageTest : public AuditTest {
 protected:
  std::vector<std::string> found() {
    std::vector<std::string> texts = findings();
    for (std::string& text : texts) text.resize(text.find(": "));
    return texts;
  }
};

TEST_F(DamageTest, IsAFindingAndTheRestIsCheckedAllTheSame) {
  store.damage(core::block_key(block_.cidr));
  EXPECT_THAT(found(), ElementsAre("block_corrupt block 10.1.0.8/29"))
      << "claims, hints and handles of a block that can't be read are not held against it";
  put(core::handle_key("net.c9"), core::Handle{"net.c9", {{"10.1.0.0/29", 1}}, false});
  EXPECT_THAT(found(), ElementsAre("block_corrupt block 10.1.0.8/29", "handle_empty handle net.c9"));
}

TEST_F(DamageTest, OfOtherRecordsAndOfNewerVersions) {
  store.damage(core::handle_key("net.c1"));
  store.damage(core::affinity_key(node_, block_.cidr), ErrorCode::newer_version);
  store.damage(core::ipam_config_key());
  EXPECT_THAT(found(), testing::UnorderedElementsAre("record_unreadable handle net.c1",
                                                     "record_newer affinity host/node-a/ipv4/10.1.0.8/29",
                                                     "record_unreadable ipam_config default"));
}

TEST_F(DamageTest, OfWhatOthersDecideOver) {
  const net::Prefix range = prefix("10.7.0.0/24");
  const std::vector<std::pair<core::Key, core::Value>> records{
      {core::service_key({"default", "web"}), core::Service{}},
      {core::range_allocation_key(core::kServiceIps), core::RangeAllocation{}},
      {core::range_allocation_key(core::kServiceNodePorts), core::RangeAllocation{}},
      {core::node_range_key(range), core::NodeRange{"node-a", range}},
      {core::node_range_set_key(), core::NodeRangeSet{}},
      {core::pool_set_key(), core::PoolSet{}},
  };
  for (const auto& [key, value] : records) put(key, value);
  EXPECT_THAT(found(), testing::IsEmpty());
  for (const auto& [key, value] : records) {
    store.damage(key);
    EXPECT_THAT(found(), ElementsAre("record_unreadable " + std::string(core::name_of(key.kind)) + " " + key.name));
    put(key, value);
  }
}

/// As many as there are pools, and not as there are pairs.
TEST_F(AuditTest, OfManyPoolsInOnePlaceEachIsToldOnce) {
  for (int i = 0; i < 200; ++i) {
    const std::string name = fmt::format("p{:03}", i);
    put(core::pool_key(name), core::make_pool(spec(name, i % 2 == 0 ? "10.7.0.0/24" : "10.7.0.0/25", 26)).value());
  }
  const auto found = findings();
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](const auto& f) { return f.starts_with("pool_overlap"); }),
            199);
}

TEST_F(AuditTest, PoolsReservationsAndSequences) {
  put(core::pool_key("b"), core::make_pool(spec("b", "10.1.0.0/24", 26)).value());
  put(core::reservation_key("pool-a"), std::nullopt);
  put(core::high_water_mark_key(block_.cidr),
      core::HighWaterMark{core::with_next_sequence_number(block_).sequence_number});
  const auto found = findings();
  EXPECT_THAT(found, Contains(HasSubstr("pool_overlap pool a: 10.1.0.0/28 overlaps pool b")));
  EXPECT_THAT(found, Contains(HasSubstr("reservation_missing pool a: no reservation keeps 10.1.0.0")));
  EXPECT_THAT(found, Contains(HasSubstr("sequence_behind block")));
  put(core::reservation_key("more"), core::Reservation{"more", {prefix("10.1.0.0/28")}});
  EXPECT_THAT(findings(), Contains(HasSubstr("reserved_held")));
}

TEST_F(AuditTest, WhatTheRuntimeDoesNotKnowIsNamedWithItsRemedy) {
  const core::audit::LiveAttachments live = runtime({{"net", "c1", "eth0"}});
  EXPECT_THAT(findings(live), IsEmpty()) << "younger than a minute";
  clock.advance(60s);
  const auto report = audit(context, {live}).value();
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_THAT(report.findings[0].what, HasSubstr("container c2"));
  EXPECT_THAT(report.findings[0].remedy, HasSubstr("--handle net.c2 --sequence "));
  EXPECT_EQ(report.held, 2U);
}

TEST_F(AuditTest, AnEmptyCacheProvesNothing) {
  clock.advance(60s);
  const auto report = audit(context, {core::audit::LiveAttachments{}}).value();
  EXPECT_THAT(findings(core::audit::LiveAttachments{}), ElementsAre(HasSubstr("cache_empty")));
  for (const core::audit::Allocation& allocation : report.allocations) EXPECT_FALSE(allocation.unattached);
}

TEST_F(AuditTest, AnEntryWhoseNamespaceIsGoneIsNobody) {
  clock.advance(60s);
  core::audit::LiveAttachments live = runtime({{"net", "c1", "eth0"}, {"net", "c2", "eth0"}});
  live.entries[0].netns = core::RuntimeAttachment::Netns::gone;
  live.entries[0].netns_path = "/run/netns/c1";
  live.entries[1].netns = core::RuntimeAttachment::Netns::unclear;
  EXPECT_THAT(findings(live), ElementsAre(HasSubstr("whose network namespace /run/netns/c1 is gone")));
}

/// The register was put back to a time before they came.
TEST_F(AuditTest, WhoLivesWithAnAddressThatHeDoesNotHoldIsNamed) {
  const auto owner = [](const char* id) { return core::Owner{"net", id, "eth0"}; };
  core::audit::LiveAttachments live =
      runtime({owner("c1"), owner("c2"), owner("new"), owner("gone"), owner("unclear")});
  const auto held = held_addresses(context, owner("c1")).value(), others = held_addresses(context, owner("c2")).value();
  live.entries[0].addresses = {held.at(0)};
  live.entries[1].addresses = {others.at(0)};
  EXPECT_THAT(findings(live), IsEmpty());
  // Elsewhere, as free, as another's.
  live.entries[2].addresses = {ip("192.0.2.1"), ip("10.1.0.13"), held.at(0)};
  live.entries[2].pod = {"web", "shop", "u"};
  live.entries[3].addresses = live.entries[4].addresses = {ip("10.1.0.12")};
  live.entries[3].netns = core::RuntimeAttachment::Netns::gone;
  live.entries[4].netns = core::RuntimeAttachment::Netns::unclear;
  const auto found = audit(context, {live}).value().findings;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].id, "not_held");
  EXPECT_THAT(found[0].what, AllOf(HasSubstr("container new interface eth0 in network net for pod shop/web has it"),
                                   HasSubstr("gives it to handle net.c1"), HasSubstr("two have it")));
  EXPECT_EQ(found[0].remedy, "delete the pod at once: it has another's address");
  EXPECT_EQ(found[1].subject, "10.1.0.13");
  EXPECT_THAT(found[1].what, HasSubstr("the register has it as free"));
  EXPECT_EQ(found[1].remedy, "delete the pod before another one gets the address");
  EXPECT_EQ(found[1].pod.name, "web");
  // Released while its container lives.
  ASSERT_EQ(del("c2"), 1U);
  EXPECT_THAT(findings(live), Contains(HasSubstr("the register has it as released by handle net.c2")));
}

/// Multus: to the runtime all of a container is its network, and the delegates' own names are in a cache of its own.
TEST_F(AuditTest, AnEntryOfAnotherNetworkSpeaksForAllOfItsContainer) {
  clock.advance(60s);
  const auto held = held_addresses(context, {"net", "c1", "eth0"}).value();
  core::audit::LiveAttachments live = runtime({{"multus-cni-network", "c1", "eth0"}, {"net", "c2", "net7"}});
  live.entries[0].addresses = held;
  live.entries[1].addresses = held_addresses(context, {"net", "c2", "eth0"}).value();
  EXPECT_THAT(findings(live), IsEmpty());
  live.entries[0].netns = core::RuntimeAttachment::Netns::gone;
  EXPECT_THAT(findings(live), ElementsAre(HasSubstr("not_attached")));
  live.entries.push_back({{"net", "c1", "eth0"}, core::RuntimeAttachment::Netns::unclear, {}, {}, {}, {}, {}});
  EXPECT_THAT(findings(live), IsEmpty());
  live.entries = runtime({{"x", "x", "eth0"}}).entries;
  live.unreadable = {{"multus-cni-network-c1-eth0", "empty"}, {"multus-cni-network-xc2-eth0", "empty"}};
  EXPECT_THAT(findings(live), UnorderedElementsAre(HasSubstr("container c2"), HasSubstr("cache_unreadable"),
                                                   HasSubstr("cache_unreadable")));
}

TEST_F(AuditTest, AContainerInTwoCachesIsToldOnce) {
  core::audit::LiveAttachments live = runtime({{"multus-cni-network", "new", "eth0"}, {"net", "new", "eth0"}});
  for (core::RuntimeAttachment& entry : live.entries) entry.addresses = {ip("10.1.0.13")};
  EXPECT_THAT(findings(live), ElementsAre(HasSubstr("not_held 10.1.0.13")));
  // Another container holds what it has.
  for (core::RuntimeAttachment& entry : live.entries)
    entry.addresses = held_addresses(context, {"net", "c1", "eth0"}).value();
  EXPECT_THAT(findings(live), ElementsAre(HasSubstr("two have it")));
}

TEST_F(AuditTest, OfPodsThatRunTheFirstTenAreNamed) {
  const auto of = [&](std::vector<core::audit::RunningPod> pods) {
    std::vector<std::string> texts;
    const AuditReport report = audit(context, {}, listed(std::move(pods))).value();
    for (const core::audit::Finding& one : report.findings) texts.push_back(one.subject + " " + one.what);
    return texts;
  };
  const auto held = held_addresses(context, {"net", "c1", "eth0"}).value().at(0);
  EXPECT_THAT(of({{{"any", "shop", "u"}, "node-a", {held, ip("192.0.2.1")}}}), IsEmpty())
      << "whose it is isn't recorded";
  core::AssignRequest named = request("c3");
  named.pod = {"web", "shop", "u"};
  const net::Address webs = ip(add(named).front().c_str());
  EXPECT_THAT(of({{{"web", "shop", "u2"}, "node-a", {webs}}}), IsEmpty());
  EXPECT_THAT(of({{{"web", "other", "u"}, "node-b", {webs}}}),
              ElementsAre(AllOf(HasSubstr("pod other/web on node node-b reports it"), HasSubstr("pod shop/web (handle"),
                                HasSubstr("two have it"))));
  std::vector<core::audit::RunningPod> many;
  for (int i = 0; i < 12; ++i) many.push_back({{"p" + std::to_string(i), "shop", ""}, "node-a", {ip("10.1.0.13")}});
  many.push_back({{"web", "other", "u"}, "node-b", {webs}});
  const auto found = of(std::move(many));
  ASSERT_EQ(found.size(), 11U);
  EXPECT_THAT(found.front(), HasSubstr("two have it")) << "those first";
  EXPECT_THAT(found.back(), HasSubstr("3 more addresses of running pods"));
}

/// In the middle of docs/runbooks/migrate.md, From host-local: node-2 has its claim, and host-local gives its
/// addresses.
class HalfMoved : public testing::Test, public World {
 protected:
  void SetUp() override {
    pool("a", "10.244.0.0/16", 24);
    set_config(context, {true, false, {}, {}, {}}).value();
    for (int i = 2; i <= 3; ++i) {
      ranges_.push_back({fmt::format("node-{}", i), net::Prefix::parse(fmt::format("10.244.{}.0/24", i)).value()});
      claim_affinity(context, node(i), ranges_.back().cidr).value();
    }
  }
  static core::AffinityOwner node(int i) { return {core::AffinityOwner::Type::host, fmt::format("node-{}", i)}; }
  [[nodiscard]] std::vector<core::audit::Finding> found(const std::vector<std::pair<int, std::string>>& pods) {
    std::vector<core::audit::RunningPod> running;
    for (const auto& [i, address] : pods) {
      running.push_back({{"p" + address, "shop", ""}, fmt::format("node-{}", i), {ip(address.c_str())}});
    }
    return audit(context, {.pod_ranges = ranges_}, listed(std::move(running))).value().findings;
  }
  std::vector<core::NodeRange> ranges_;
};

TEST_F(HalfMoved, WhatHostLocalGaveIsToldOnceANode) {
  const auto told = found({{2, "10.244.2.5"}, {2, "10.244.2.6"}, {2, "10.244.2.7"}, {3, "10.244.3.9"}});
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].id, "node_not_moved");
  EXPECT_EQ(told[0].subject, "node node-2");
  EXPECT_THAT(told[0].what, AllOf(HasSubstr("3 of its pods' addresses, as 10.244.2.5"), HasSubstr("of host-local")));
  EXPECT_THAT(told[0].remedy, AllOf(HasSubstr("docs/runbooks/migrate.md"), HasSubstr("older register")));
  EXPECT_EQ(told[1].subject, "node node-3");
}

TEST_F(HalfMoved, TheCacheOfTheNodeItselfSaysNoOther) {
  core::audit::LiveAttachments live = runtime({{"cbr0", "c1", "eth0"}, {"cbr0", "c2", "eth0"}});
  live.entries[0].addresses = {ip("10.244.2.5")};
  live.entries[1].addresses = {ip("10.244.2.6")};
  const auto told = audit(context, {.live = live, .node = "node-2"}).value().findings;
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].id, "node_not_moved");
  EXPECT_EQ(told[0].subject, "node node-2");
  EXPECT_EQ(audit(context, {.live = live, .node = "node-3"}).value().findings.at(0).id, "not_held");
}

TEST_F(HalfMoved, APodCidrThatNobodyClaimedIsToldWithTheClaim) {
  ranges_.push_back({"node-4", net::Prefix::parse("10.244.4.0/24").value()});
  const auto told = found({{4, "10.244.4.5"}, {4, "10.244.4.6"}});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].id, "node_not_moved");
  EXPECT_THAT(told[0].remedy, AllOf(HasSubstr("10.244.4.5"), HasSubstr("croft affinity claim")));
}

TEST_F(HalfMoved, WhatTheRegisterLostIsStillTold) {
  // Of a block that gave something.
  const std::string webs = add("web", "node-2");
  EXPECT_EQ(found({{2, "10.244.2.77"}}).at(0).id, "pod_not_held");
  // Also when all is free again.
  ASSERT_EQ(del("web"), 1U);
  EXPECT_EQ(found({{2, "10.244.2.77"}}).at(0).id, "pod_not_held");
  EXPECT_EQ(found({{3, webs}}).at(0).id, "pod_not_held");
  // Of another's range, or nobody's.
  EXPECT_EQ(found({{2, "10.244.3.5"}}).at(0).id, "pod_not_held");
  EXPECT_EQ(found({{2, "10.244.9.5"}}).at(0).id, "pod_not_held");
  // Where others may take a node's block, or where nodes take blocks that are no podCIDR.
  set_config(context, {true, true, {}, {}, {}}).value();
  EXPECT_EQ(found({{3, "10.244.3.5"}}).at(0).id, "node_not_moved");
  ranges_.clear();
  EXPECT_EQ(found({{3, "10.244.3.5"}}).at(0).id, "pod_not_held");
  set_config(context, {false, true, {}, {}, {}}).value();
  EXPECT_EQ(found({{3, "10.244.3.5"}}).at(0).id, "pod_not_held");
}

/// Damaged, or more than is read: what it is about counts as alive, so a look that told nothing of it would hide that.
TEST_F(AuditTest, AnEntryThatCannotBeReadIsNamed) {
  core::audit::LiveAttachments live = runtime({{"net", "c1", "eth0"}, {"net", "c2", "eth0"}});
  live.unreadable = {{"net-c3-eth0", "/cache/results/net-c3-eth0: invalid JSON: larger than 4194304 bytes"}};
  auto report = audit(context, {live}).value();
  ASSERT_THAT(report.findings, testing::SizeIs(1));
  EXPECT_EQ(report.findings[0].id, "cache_unreadable");
  EXPECT_EQ(report.findings[0].subject, "net-c3-eth0");
  EXPECT_THAT(report.findings[0].what, HasSubstr("/cache/results/net-c3-eth0: invalid JSON: larger than"));
  EXPECT_THAT(report.findings[0].remedy, HasSubstr("crictl"));
  for (int i = 0; i < 30; ++i) live.unreadable.push_back(live.unreadable.front());
  report = audit(context, {live}).value();
  ASSERT_THAT(report.findings, testing::SizeIs(11));
  EXPECT_THAT(report.findings.back().what, HasSubstr("21 more"));
}

TEST_F(AuditTest, ANetworkWithDotsAndAHolderWithoutInterfaceAreKnownByTheirHandle) {
  for (auto& attribute : block_.attributes) {
    attribute.secondary.erase(core::kInterfaceKey);
    attribute.secondary.erase(core::kNetworkKey);
  }
  put(core::block_key(block_.cidr), block_);
  clock.advance(60s);
  EXPECT_THAT(findings(runtime({{"net", "c1", "eth0"}, {"net", "c2", "eth7"}})), IsEmpty());
}

TEST_F(AuditTest, TwoLivingContainersOfOnePodAreNamedWithIt) {
  auto wanted = request("c3");
  wanted.pod = {"web", "shop", "uid-1"};
  add(wanted);
  wanted.owner.container_id = "c4";
  add(wanted);
  clock.advance(60s);
  const auto owner = [](const char* id) { return core::Owner{"net", id, "eth0"}; };
  core::audit::LiveAttachments live = runtime({owner("c1"), owner("c2"), owner("c3"), owner("c4")});
  EXPECT_EQ(audit(context, {live}).value().findings.at(0).pod, (core::PodIdentity{"web", "shop", "uid-1"}));
  EXPECT_THAT(findings(live), ElementsAre(AllOf(StartsWith("pod_twice "), HasSubstr("container c3 holds"))));
  // In a container nobody can say what is there; still only one of them is the pod's.
  live.entries[3].netns = core::RuntimeAttachment::Netns::unmounted;
  EXPECT_THAT(findings(live),
              ElementsAre(AllOf(StartsWith("pod_twice "), HasSubstr("can't be told to be there or gone"))));
  live.entries[3].netns = core::RuntimeAttachment::Netns::gone;
  EXPECT_THAT(findings(live),
              ElementsAre(AllOf(StartsWith("not_attached "), HasSubstr("for pod shop/web (UID uid-1)"))));
}

}  // namespace
}  // namespace croft::engine
