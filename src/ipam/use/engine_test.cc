#include <thread>

#include "ipam/use/test_world.h"
#include "store/forwarding_store.h"

namespace croft::engine {
namespace {

using core::SequenceNumber;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using namespace std::chrono_literals;

class Engine : public testing::Test, public World {
 protected:
  void TearDown() override { EXPECT_THAT(findings(), IsEmpty()); }
};

TEST_F(Engine, HowFullPoolsAre) {
  pool("a", "10.1.0.0/24", 28);
  pool("b", "fd00::/64", 122);
  for (int i = 0; i < 20; ++i) add("c" + std::to_string(i));
  EXPECT_EQ(del("c3"), 1U);
  const auto fills = fill_of_pools(context).value();
  ASSERT_EQ(fills.size(), 2U);
  EXPECT_EQ(fills[0].held, 19U);
  EXPECT_EQ(fills[0].cooling, 1U);
  EXPECT_EQ(fills[0].blocks, 2U);
  EXPECT_EQ(fills[0].owned_blocks, 2U);
  EXPECT_EQ(fills[0].borrowed, 0U);
  EXPECT_EQ(fills[0].open(), fills[0].free());
}

TEST_F(Engine, WhatOtherNodesTookAndWhatTheyCannotTake) {
  pool("a", "10.1.0.0/28", 28);
  add("c1", "node-a");
  add("c2", "node-b");  // there is one block
  auto fill = fill_of_pools(context).value().front();
  EXPECT_EQ(fill.borrowed, 1U);
  EXPECT_TRUE(fill.stranded.is_zero());
  config([](core::IpamConfig& c) { c.strict_affinity = true; });
  fill = fill_of_pools(context).value().front();
  EXPECT_EQ(fill.stranded, fill.free());
  const auto shown = read_overview(context).value().pools.front();
  EXPECT_EQ(shown.usage.stranded, fill.stranded);
  EXPECT_EQ(shown.blocks.front().usage.stranded, fill.stranded);
  EXPECT_TRUE(fill.open().is_zero());
}

TEST_F(Engine, APoolOfAConfigurationThatDisagreesIsRefused) {
  pool("a", "10.1.0.0/16", 26);
  EXPECT_EQ(ensure_pools(context, {spec("a", "10.1.0.0/16", 28)}).error().code, ErrorCode::refused_by_configuration);
}

TEST_F(Engine, ABlockMadeAgainNeverRepeatsASequenceNumber) {
  pool("a", "10.1.0.0/30", 30, 0);
  ASSERT_EQ(add("c1"), "10.1.0.2");
  const SequenceNumber first = show_address(context, ip("10.1.0.2"))->sequence_number;
  del("c1");
  ASSERT_TRUE(delete_pool(context, "a"));
  clock.jump_wall(-8760h);
  pool("a", "10.1.0.0/30", 30, 0);
  ASSERT_EQ(add("c2"), "10.1.0.2");
  EXPECT_GT(show_address(context, ip("10.1.0.2"))->sequence_number, first);
}

/// Another program takes the pool's record away and brings it back.
TEST_F(Engine, ACooldownLastsWhileItsPoolIsAway) {
  pool("a", "10.1.0.0/28", 28, 600);
  const std::string first = add("c1");
  add("c2");
  del("c1");
  const core::Value record = *store.get(core::pool_key("a"), Deadline{}).value()->value;
  put(core::pool_key("a"), std::nullopt);
  clock.advance(std::chrono::seconds(32));
  del("c2");  // a write of the block
  put(core::pool_key("a"), record);
  EXPECT_EQ(show_address(context, ip(first.c_str()))->state, core::AddressState::cooling);
  for (int i = 0; i < 16; ++i) EXPECT_NE(add("d" + std::to_string(i)), first);  // until the pool is full
}

TEST_F(Engine, ALateReleaseNeverFreesASuccessor) {
  pool("a", "10.1.0.0/30", 30, 0);
  add("c1");
  const auto before = show_address(context, ip("10.1.0.2")).value();
  del("c1");
  add("c2");
  const auto late = release_addresses(context, {{ip("10.1.0.2"), before.handle_id, {}}}).value();
  EXPECT_THAT(late.mismatched, ElementsAre(ip("10.1.0.2")));
  const auto stale = release_addresses(context, {{ip("10.1.0.2"), "net.c2", before.sequence_number}}).value();
  EXPECT_THAT(stale.mismatched, ElementsAre(ip("10.1.0.2")));
  const auto now = show_address(context, ip("10.1.0.2")).value();
  const auto right =
      release_addresses(context, {{ip("10.1.0.2"), "net.c2", now.sequence_number}, {ip("10.9.9.9"), {}, {}}}).value();
  EXPECT_THAT(right.released, ElementsAre(ip("10.1.0.2")));
  EXPECT_THAT(right.not_held, ElementsAre(ip("10.9.9.9")));
}

TEST_F(Engine, ReleasingAWholeBlockByAddressKeepsWithinTheLimitOfACommit) {
  pool("a", "10.1.0.0/24", 24);
  std::vector<core::AddressToRelease> all;
  for (int i = 0; i < 253; ++i) {
    const auto text = add("c" + std::to_string(i));
    all.push_back({ip(text.c_str()), {}, {}});
  }
  EXPECT_EQ(release_addresses(context, all)->released.size(), 253U);
}

/// docs/promises.md#new-sandbox: that the old one is gone is not for an ADD to say.
TEST_F(Engine, WhatASandboxHoldsStaysWhenAnotherOfThePodComes) {
  pool("a", "10.0.0.0/26", 28, 0);
  auto first = request("c1"), second = request("c2");
  first.pod = second.pod = {"web-0", "shop", "5f0c4d0e"};
  const auto held = add(first);
  clock.advance(1h);
  EXPECT_NE(add(second), held);
  EXPECT_THAT(*held_addresses(context, first.owner), ElementsAre(ip(held.front().c_str())));
  EXPECT_THAT(release_owner(context, first.owner)->addresses, SizeIs(1)) << "its own DEL frees it";
  EXPECT_THAT(*held_addresses(context, second.owner), SizeIs(1));
}

// --- unknown outcomes, conflicts, races ---

class EngineFaults : public Engine, public testing::WithParamInterface<store::Fault> {};

TEST_P(EngineFaults, AtEachCommitOfAddAndDelNothingIsLostOrHeldTwice) {
  pool("a", "10.1.0.0/24", 30);
  for (std::uint64_t at = 1; at <= 3; ++at) {
    const std::string name = "c" + std::to_string(at);
    store.set_faults(store::FaultScript().on_commit(store.counts().commit + at, GetParam()));
    // Two that are told to try again do so: an owner that asks again writes, too.
    const auto ask = [&] {
      const std::string answer = add(name);
      return answer.starts_with("10.1.0.") ? answer : add(name);
    };
    const std::string address = ask();
    ASSERT_THAT(address, StartsWith("10.1.0."));
    EXPECT_EQ(ask(), address);
    store.set_faults(store::FaultScript().on_commit(store.counts().commit + 1, GetParam()));
    static_cast<void>(release_owner(context, {"net", name, "eth0"}));
    store.set_faults({});
    del(name);
    EXPECT_EQ(held_addresses(context, {"net", name, "eth0"})->size(), 0U);
    EXPECT_THAT(findings(), IsEmpty());
  }
  EXPECT_EQ(read_overview(context)->pools[0].usage.held, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, EngineFaults,
                         testing::Values(store::Fault::lose_reply, store::Fault::lose_request, store::Fault::conflict,
                                         store::Fault::unavailable, store::Fault::storage_full));

/// A client before each of whose commits another one writes a block.
class AlwaysFirst : public store::ForwardingStore {
 public:
  AlwaysFirst(store::Store& beneath, core::Key block) : ForwardingStore(beneath), block_(std::move(block)) {}
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    core::Block block = std::get<core::Block>(*beneath().get(block_, deadline).value()->value);
    const store::Write write{block_, core::with_next_sequence_number(std::move(block)), store::Condition::always()};
    EXPECT_TRUE(beneath().commit({&write, 1}, {}, deadline));
    return ForwardingStore::commit(writes, token, deadline);
  }

 private:
  core::Key block_;
};

/// Nor does one that has rivals ask hundreds of times a second.
TEST_F(Engine, WaitsBetweenConflictsGrow) {
  pool("a", "10.1.0.0/24", 26);
  ASSERT_THAT(add("c0"), StartsWith("10.1.0."));
  AlwaysFirst rivals(store, core::block_key(read_overview(context)->pools[0].blocks[0].block.cidr));
  Context late{rivals, clock, random};
  std::chrono::nanoseconds waited{0}, quick{0};
  int waits = 0;
  late.wait_by = [&](std::chrono::nanoseconds span) {
    EXPECT_LE(span, std::chrono::seconds(1));
    clock.advance(span);
    waited += span;
    if (++waits <= 16) quick += span;
  };
  const auto before = store.counts().commit;
  const auto answer = assign(late, request("c1"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::deadline_exceeded);
  EXPECT_THAT(answer.error().message,
              HasSubstr("tries the store said that somebody else had changed the same records"));
  EXPECT_LT(store.counts().commit - before, 160U);
  EXPECT_LT(quick, std::chrono::milliseconds(320)) << "who has rivals is not kept waiting";
  EXPECT_EQ(waited, late.time_limit) << "and the last wait ends with the call";
}

/// The same of a commit of which nobody knows whether it was done.
TEST_F(Engine, ACommitOfUnknownFateIsRepeatedAFewTimesAndSlower) {
  pool("a", "10.1.0.0/24", 26);
  std::vector<std::chrono::nanoseconds> waits;
  context.wait_by = [&](std::chrono::nanoseconds span) {
    clock.advance(span);
    waits.push_back(span);
  };
  const auto before = store.counts().commit;
  store.set_faults(store::FaultScript().from_commit(1, store::Fault::lose_request));
  EXPECT_THAT(add("c1"), StartsWith("unknown_outcome: "));
  EXPECT_EQ(store.counts().commit - before, 17U);
  ASSERT_EQ(waits.size(), 16U);
  EXPECT_LE(waits.front(), std::chrono::milliseconds(10));
  EXPECT_GE(waits.back(), std::chrono::milliseconds(500));
  EXPECT_LE(waits.back(), std::chrono::seconds(1));
}

/// What is refused after that says nothing of the commit before it, which may be done yet.
TEST_F(Engine, ARefusalAfterAnUnknownOutcomeDoesNotMakeItKnown) {
  pool("a", "10.1.0.0/24", 26);
  const auto next = store.counts().commit + 1;
  store.set_faults(
      store::FaultScript().on_commit(next, store::Fault::lose_request).on_commit(next + 1, store::Fault::unavailable));
  EXPECT_THAT(add("c1"), StartsWith("unknown_outcome: "));
}

TEST_F(Engine, RacingThreadsOnOneNodeAndOnSeveral) {
  pool("a", "10.1.0.0/23", 28);
  std::mutex mutex;
  std::multiset<std::string> seen;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      store::MemoryStore client(store.data());
      SeededRandom own_random(static_cast<std::uint64_t>(t) + 100);
      const Context own{client, clock, own_random};
      for (int i = 0; i < 40; ++i) {
        const auto answer =
            assign(own, request("t" + std::to_string(t) + "-" + std::to_string(i), t < 2 ? "node-a" : "node-b"));
        ASSERT_TRUE(answer) << answer.error().message;
        const auto* assigned = std::get_if<core::Assigned>(&*answer);
        ASSERT_NE(assigned, nullptr);
        const std::lock_guard lock(mutex);
        seen.insert(assigned->addresses.front().address.to_string());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(seen.size(), 160U);
  EXPECT_EQ((std::set<std::string>(seen.begin(), seen.end()).size()), 160U);
  EXPECT_EQ(read_overview(context)->pools[0].usage.held, 160U);
}

/// A store in which somebody makes an overlapping pool at the n-th read of another client.
class MeddledStore final : public store::MemoryStore {
 public:
  MeddledStore(std::shared_ptr<store::MemoryData> data, int at, std::function<void()> meddle)
      : MemoryStore(std::move(data)), at_(at), meddle_(std::move(meddle)) {}
  Result<void> for_each(const store::ListRequest& request, const Until& until, const Take& take) override {
    meddle_once();
    return MemoryStore::for_each(request, until, take);
  }
  Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    meddle_once();
    return MemoryStore::read(wanted, deadline);
  }

 private:
  void meddle_once() {
    if (++reads_ == at_) meddle_();
  }
  int reads_ = 0;
  int at_;
  std::function<void()> meddle_;
};

TEST_F(Engine, TwoPoolsMadeAtOnceNeverOverlapWhicheverReadTheOtherComesBefore) {
  for (int at = 1; at <= 8; ++at) {
    store::MemoryStore fresh;
    const Context other{fresh, clock, random};
    bool made = false;
    MeddledStore meddled(fresh.data(), at,
                         [&] { made = create_pool(other, spec("b", "10.1.0.0/24", 26)).has_value(); });
    const Context own{meddled, clock, random};
    const bool mine = create_pool(own, spec("a", "10.1.0.0/16", 26)).has_value();
    EXPECT_NE(mine, made) << "at read " << at;
    EXPECT_EQ(list_pools(other)->size(), 1U) << "at read " << at;
  }
}

TEST_F(Engine, AClaimMadeAtAnyReadOfAnotherIsNotLost) {
  for (int at = 1; at <= 12; ++at) {
    store::MemoryStore fresh;
    const Context other{fresh, clock, random};
    ASSERT_TRUE(create_pool(other, spec("a", "10.1.0.0/26", 29)));
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(assign(other, request("c" + std::to_string(i))));
    MeddledStore meddled(fresh.data(), at, [&] {
      for (int i = 0; i < 12; ++i) EXPECT_TRUE(assign(other, request("m" + std::to_string(i))));
    });
    const Context own{meddled, clock, random};
    ASSERT_TRUE(assign(own, request("mine")));
    const std::uint64_t held = read_overview(other)->pools[0].usage.held;
    EXPECT_TRUE(held == 19U || held == 7U) << held << " at read " << at;
    const auto report = audit(other, {});
    EXPECT_THAT(report->findings, IsEmpty()) << "at read " << at;
  }
}

TEST_F(Engine, ADelAtAnyReadOfAnAddForTheSameContainerLeavesAHandleThatCountsIt) {
  for (int at = 1; at <= 12; ++at) {
    store::MemoryStore fresh;
    const Context other{fresh, clock, random};
    ASSERT_TRUE(create_pool(other, spec("a", "10.1.0.0/26", 29)));
    for (const char* container : {"before", "c"}) ASSERT_TRUE(assign(other, request(container)));
    MeddledStore meddled(fresh.data(), at,
                         [&] { EXPECT_TRUE(release_owner(other, request("c").owner)) << "at read " << at; });
    const Context own{meddled, clock, random};
    ASSERT_TRUE(assign(own, request("c")));
    const bool is_held = read_overview(other)->pools[0].usage.held == 2U;
    const bool is_counted = fresh.get(core::handle_key("net.c"), Deadline{}).value().has_value();
    EXPECT_EQ(is_held, is_counted) << "at read " << at;
    EXPECT_THAT(audit(other, {})->findings, IsEmpty()) << "at read " << at;
  }
}

// --- work bounds ---

TEST_F(Engine, AnAddCostsTheSameReadsHoweverMuchIsHeld) {
  pool("a", "10.0.0.0/16", 26);
  const auto cost = [&](int i) {
    const auto before = store.counts();
    EXPECT_THAT(add("c" + std::to_string(i)), StartsWith("10.0."));
    const auto after = store.counts();
    return after.list + after.read + after.commit - before.list - before.read - before.commit;
  };
  std::map<std::uint64_t, int> histogram;
  for (int i = 0; i < 3000; ++i) ++histogram[cost(i)];
  // An ADD into a block with room; now and then the claim of a block on top.
  EXPECT_LE(histogram.rbegin()->first, 9U);
  EXPECT_LE(histogram.size(), 2U);
}

TEST(PoolsOfAConfiguration, AreReadTogetherWithAllElse) {
  using Pools = std::vector<core::PoolSpec>;
  using Ask = Result<void> (*)(const Context& context, const char* container, const Pools& pools);
  const std::pair<const char*, Ask> rows[] = {
      {"ADD",
       [](const Context& context, const char* container, const Pools& pools) -> Result<void> {
         TRY_VOID(assign(context, World::request(container), pools));
         return {};
       }},
      {"STATUS", [](const Context& context, const char* container, const Pools& pools) {
         return check_status(context, {World::request(container).node, {true, false}, {}}, pools);
       }}};
  for (const auto& [what, ask] : rows) {
    SCOPED_TRACE(what);
    World world;
    Asked asked(world.store);
    const Context counted{asked, world.clock, world.random};
    const Pools pools{World::spec("a", "10.0.0.0/16", 26), World::spec("b", "10.1.0.0/24", 28)};
    ASSERT_TRUE(ask(counted, "c1", pools)) << "makes them";
    EXPECT_EQ(list_pools(world.context)->size(), 2U);
    asked.forget();
    ASSERT_TRUE(ask(counted, "c2", {}));
    const std::size_t without = asked.requests();
    asked.forget();
    ASSERT_TRUE(ask(counted, "c3", pools));
    EXPECT_EQ(asked.lists_of(core::Kind::pool), 1U);
    EXPECT_EQ(asked.requests(), without);
    asked.forget();
    ASSERT_TRUE(ask(counted, "c3", pools)) << "again";
    EXPECT_EQ(asked.lists_of(core::Kind::pool), 1U);
    const auto other = ask(counted, "c3", {World::spec("a", "10.0.0.0/16", 28)});
    ASSERT_FALSE(other) << "also for who has an address";
    EXPECT_EQ(other.error().code, ErrorCode::refused_by_configuration);
  }
}

// --- GC, CHECK, STATUS ---

TEST_F(Engine, GcFreesWhatTheRuntimeDoesNotListAndNothingElse) {
  pool("a", "10.1.0.0/24", 26);
  add("alive");
  add("gone");
  add("elsewhere", "node-b");
  auto other = request("gone");
  other.owner.network = "othernet";
  const std::string others = add(other).front();
  clock.advance(59s);
  add("young");
  clock.advance(1s);
  const core::AffinityOwner node{core::AffinityOwner::Type::host, "node-a"};
  Asked asked(store);
  const Context counted{asked, clock, random};
  const auto collected = collect_attachments(counted, "net", node, {{"alive", "eth0"}}).value();
  EXPECT_EQ(asked.lists_of({core::Kind::block, core::block_names_of(net::Family::v4)}), 0U)
      << "the walk over the blocks has told which one it is";
  EXPECT_EQ(collected.released.size(), 1U);
  EXPECT_EQ(collected.kept_young, 1U);
  EXPECT_EQ(show_address(context, collected.released[0])->state, core::AddressState::cooling);
  EXPECT_EQ(held_addresses(context, {"net", "gone", "eth0"})->size(), 0U);
  EXPECT_EQ(held_addresses(context, {"net", "alive", "eth0"})->size(), 1U);
  EXPECT_EQ(held_addresses(context, {"net", "elsewhere", "eth0"})->size(), 1U);
  EXPECT_EQ(held_addresses(context, other.owner)->size(), 1U);
}

TEST_F(Engine, StatusFailsForConfigurationButNotForAFullPool) {
  const core::AffinityOwner node{core::AffinityOwner::Type::host, "node-a"};
  StatusRequest status{node, {true, false}, {}, false};
  EXPECT_EQ(check_status(context, status).error().code, ErrorCode::no_pool);
  pool("a", "10.1.0.0/30", 30);
  EXPECT_TRUE(check_status(context, status));
  add("c1");
  EXPECT_TRUE(check_status(context, status));
  status.fail_when_full = true;
  EXPECT_EQ(check_status(context, status).error().code, ErrorCode::exhausted);
  ASSERT_TRUE(set_pool_disabled(context, "a", true));
  EXPECT_EQ(check_status(context, status).error().code, ErrorCode::refused_by_configuration);
  status.fail_when_full = false;
  EXPECT_TRUE(check_status(context, status)) << "what an operator disabled is no fault of the node";
  EXPECT_EQ(list_addresses(context)->size(), 4U) << "asking changes nothing";
}

TEST_F(Engine, StatusAsksForSomePodOfWhateverNamespace) {
  const core::AffinityOwner node{core::AffinityOwner::Type::host, "node-a"};
  const StatusRequest status{node, {true, false}, {}, false};
  pool("a", "10.1.0.0/24", 28);
  core::Pool changed = list_pools(context)->front();
  const auto put = [&] {
    const store::Write write{core::pool_key("a"), core::Value(changed), store::Condition::always()};
    return store.commit({&write, 1}, {}, Deadline{}).has_value();
  };
  changed.namespace_selector = "team == 'web'";
  ASSERT_TRUE(put());
  EXPECT_TRUE(check_status(context, status));
  changed.assignment_mode = core::AssignmentMode::manual;
  ASSERT_TRUE(put());
  EXPECT_TRUE(check_status(context, status)) << "a pod may name it";
  changed.node_selector = "rack == 'b'";
  ASSERT_TRUE(put());
  EXPECT_EQ(check_status(context, status).error().code, ErrorCode::refused_by_configuration) << "not of this node";
}

TEST_F(Engine, ShowTellsEverythingAboutAnAddress) {
  pool("a", "10.1.0.0/29", 29);
  auto wanted = request("c1");
  wanted.pod = {"cart-0", "shop", "uid"};
  ASSERT_EQ(add(wanted).front(), "10.1.0.2");
  const auto view = show_address(context, ip("10.1.0.2")).value();
  EXPECT_EQ(view.state, core::AddressState::held);
  EXPECT_EQ(view.owner, (core::Owner{"net", "c1", "eth0"}));
  EXPECT_EQ(view.pod, "cart-0");
  EXPECT_EQ(view.namespace_name, "shop");
  EXPECT_EQ(view.node, "node-a");
  EXPECT_EQ(view.since, "2026-01-15T10:00:00Z");
  EXPECT_EQ(show_address(context, ip("10.1.0.1"))->state, core::AddressState::reserved);
  EXPECT_EQ(show_address(context, ip("10.1.0.5"))->state, core::AddressState::free);
  EXPECT_EQ(show_address(context, ip("10.9.0.5")).error().code, ErrorCode::not_found);
  const auto usage = read_overview(context)->pools[0].usage;
  EXPECT_EQ(usage.size, 8U);
  EXPECT_EQ(usage.reserved, 3U);
  EXPECT_EQ(usage.free(), 4U);
}

}  // namespace
}  // namespace croft::engine
