#include "ipam/use/assign.h"
#include "ipam/use/nodes.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"
#include "ipam/use/test_world.h"

namespace croft::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace std::chrono_literals;

class OperatorTest : public testing::Test, public World {
 protected:
  Result<core::PoolsSplit> split(std::uint64_t parts, core::SplitGateways gateways, bool apply = true) {
    return split_pool(context, {"a", parts, gateways}, apply);
  }
  std::vector<std::string> pool_names() {
    std::vector<std::string> names;
    const std::vector<core::Pool> pools = list_pools(context).value();
    for (const core::Pool& p : pools) names.push_back(p.name + " " + p.cidr.to_string());
    return names;
  }
  core::Explanation explained(const core::AssignRequest& wanted) {
    const auto result = explain(context, wanted);
    EXPECT_TRUE(result) << result.error().message;
    return result.value();
  }
};

// ---------------------------------------------------------------- configuration

TEST_F(OperatorTest, ConfigIsDefaultsUntilSetAndAbsentMembersStay) {
  EXPECT_EQ(read_config(context).value(), core::IpamConfig());
  core::ConfigChange change;
  change.ip_cooldown_seconds = 60;
  ASSERT_TRUE(set_config(context, change));
  change = {};
  change.strict_affinity = true;
  change.max_blocks_per_host = 3;
  ASSERT_TRUE(set_config(context, change));
  const core::IpamConfig config = read_config(context).value();
  EXPECT_TRUE(config.strict_affinity && config.auto_allocate_blocks);
  EXPECT_EQ(config.max_blocks_per_host, 3U);
  EXPECT_EQ(config.ip_cooldown_seconds, 60U);
}

TEST_F(OperatorTest, ConfigKeepsWhatItDoesNotKnow) {
  class Rest : public core::ForeignRest {};
  core::IpamConfig stored;
  stored.rest = std::make_shared<Rest>();
  put(core::ipam_config_key(), stored);
  core::ConfigChange change;
  change.strict_affinity = true;
  EXPECT_EQ(set_config(context, change).value().rest, stored.rest);
  EXPECT_EQ(read_config(context).value().rest, stored.rest);
}

// ---------------------------------------------------------------- splitting a pool

TEST_F(OperatorTest, SplitKeepsSettingsBlocksAndAddresses) {
  pool("a", "10.1.0.0/24", 28, 77);
  change_pool("a", [](core::Pool& p) { p.node_selector = "zone == 'a'"; });
  node("node-a", {{"zone", "a"}});
  const std::string held = add("c1");
  const auto done = split(4, core::SplitGateways::none);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->before, "a");
  EXPECT_THAT(pool_names(), ElementsAre("split-a-0 10.1.0.0/26", "split-a-1 10.1.0.64/26", "split-a-2 10.1.0.128/26",
                                        "split-a-3 10.1.0.192/26"));
  for (const core::Pool& part : done->parts) {
    EXPECT_EQ(part.node_selector, "zone == 'a'");
    EXPECT_EQ(part.cooldown, 77s);
    EXPECT_EQ(part.block_length, 28);
    EXPECT_FALSE(part.gateway);
  }
  EXPECT_EQ(add("c1"), held) << "asking again gives the same";
  EXPECT_THAT(findings(), IsEmpty());
  EXPECT_EQ(del("c1"), 1U);
  EXPECT_THAT(add("c2"), Not(HasSubstr(":")));
}

TEST_F(OperatorTest, SplitMakesNoPoolOverAnother) {
  pool("a", "10.1.0.0/26", 28);
  put(core::pool_key("split-a-1"), core::make_pool(spec("split-a-1", "10.9.0.0/26", 28)).value());
  EXPECT_EQ(split(2, core::SplitGateways::none).error().code, ErrorCode::already_exists);
}

TEST_F(OperatorTest, SplitWithoutApplyingChangesNothing) {
  pool("a", "10.1.0.0/24", 26);
  EXPECT_EQ(split(4, core::SplitGateways::none, false).value().parts.size(), 4U);
  EXPECT_THAT(pool_names(), ElementsAre("a 10.1.0.0/24"));
}

TEST_F(OperatorTest, SplitNeedsOneCommit) {
  pool("a", "10.1.0.0/24", 26);
  write_one_by_one(store);
  EXPECT_EQ(split(2, core::SplitGateways::none).error().code, ErrorCode::refused_by_configuration);
}

// ---------------------------------------------------------------- nodes and claims

TEST_F(OperatorTest, NodesAreThoseWithARecordABlockOrAnAddress) {
  pool("a", "10.1.0.0/28", 28);
  node("labelled", {{"zone", "a"}});
  add("c1", "owner");
  add("c2", "borrower");
  const auto nodes = list_nodes(context).value();
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].node.name, "borrower");
  EXPECT_EQ(nodes[0].borrowed, 1U);
  EXPECT_TRUE(nodes[1].recorded);
  EXPECT_EQ(nodes[2].blocks, 1U);
  EXPECT_EQ(nodes[2].borrowed, 0U);
}

TEST_F(OperatorTest, RemovingANodeGivesUpItsBlocksAndKeepsAddresses) {
  pool("a", "10.1.0.0/28", 29);
  node("node-a", {});
  const std::string held = add("c1");
  const auto refused = remove_node(context, {"node-a", false, false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused_for_safety);
  EXPECT_THAT(refused.error().message, HasSubstr("holds 1 address (" + held + ")"));
  EXPECT_TRUE(remove_node(context, {"node-a", true, true}).value().record_deleted) << "a dry run says the same";
  EXPECT_TRUE(look(context)->pools[0].blocks[0].block.affinity) << "and does nothing";
  EXPECT_TRUE(remove_node(context, {"node-a", true, false}).value().record_deleted);
  EXPECT_FALSE(look(context)->pools[0].blocks[0].block.affinity);
  EXPECT_EQ(show_address(context, ip(held.c_str()))->handle_id, "net.c1");
  EXPECT_TRUE(show_address(context, ip(held.c_str()))->borrowed());
  EXPECT_FALSE(remove_node(context, {"node-a", true, false}).value().record_deleted) << "may be repeated";
  EXPECT_FALSE(remove_node(context, {"nope", false, false}).value().record_deleted);
  EXPECT_EQ(check_node_known(context, "nope").error().code, ErrorCode::not_found);
  EXPECT_TRUE(check_node_known(context, "node-a"));
}

TEST_F(OperatorTest, ARemovalWhoseReplyWasLostIsDone) {
  node("node-a", {});
  Meddler meddled(store);
  const Context late{meddled, clock, random};
  meddled.lose_reply = true;
  EXPECT_TRUE(remove_node(late, {"node-a", false, false})->record_deleted);
}

TEST_F(OperatorTest, ALivingNodesRangeIsNotTakenWithoutAWord) {
  node("node-a", {});
  put(core::node_range_key(prefix("10.7.0.0/24")), core::NodeRange{"node-a", prefix("10.7.0.0/24")});
  put(core::node_range_key(prefix("10.7.1.0/24")), core::NodeRange{"node-b", prefix("10.7.1.0/24")});
  for (const bool dry_run : {false, true}) {
    const auto refused = remove_node(context, {"node-a", false, dry_run});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::refused_for_safety);
    EXPECT_THAT(refused.error().message, HasSubstr("10.7.0.0/24"));
  }
  EXPECT_TRUE(store.get(core::node_key("node-a"), {}).value());
  EXPECT_TRUE(remove_node(context, {"node-a", true, false})->record_deleted);
  // The record is gone, the range not yet: who was stopped there goes on without --force.
  EXPECT_TRUE(remove_node(context, {"node-a", false, false}));
}

TEST_F(OperatorTest, ABlockOfNobodyIsClaimedWithTheAddressesHeldInIt) {
  pool("a", "10.1.0.0/28", 29);
  const std::string held = add("c1");
  ASSERT_TRUE(remove_node(context, {"node-a", true, false}));
  const auto cidr = show_address(context, ip(held.c_str()))->block.value();
  const core::AffinityOwner owner{core::AffinityOwner::Type::host, "node-a"};
  const auto claimed = claim_affinity(context, owner, cidr).value();
  EXPECT_THAT(claimed.claimed, ElementsAre(cidr));
  EXPECT_FALSE(show_address(context, ip(held.c_str()))->borrowed());
  EXPECT_THAT(findings(), IsEmpty());
  const core::AffinityOwner other{core::AffinityOwner::Type::host, "node-b"};
  EXPECT_THAT(claim_affinity(context, other, cidr).value().others, ElementsAre(cidr)) << "it is node-a's again";
}

TEST_F(OperatorTest, TheBrakeCountsByNode) {
  pool("a", "10.1.0.0/26", 28);
  std::vector<core::AddressToRelease> one, all;
  for (int i = 0; i < 4; ++i)
    all.push_back({ip(add("c" + std::to_string(i)).c_str()), "net.c" + std::to_string(i), {}});
  for (int i = 0; i < 9; ++i) add("d" + std::to_string(i), "node-b");
  one.assign(all.begin(), all.begin() + 2);
  EXPECT_TRUE(check_release_share(context, one, 0.5));
  const auto refused = check_release_share(context, all, 0.5);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused_for_safety);
  EXPECT_THAT(refused.error().message, HasSubstr("4 of 4 addresses held on node node-a would go"));
  EXPECT_TRUE(check_release_share(context, all, 1.0));
  for (auto& address : all) address.handle_id = "net.gone";
  EXPECT_TRUE(check_release_share(context, all, 0.5)) << "they have other holders by now";
  for (auto& address : all) address = {address.address, {}, core::SequenceNumber(7000)};
  EXPECT_TRUE(check_release_share(context, all, 0.5)) << "they have other numbers by now";
}

TEST_F(OperatorTest, WhereOthersKeepNodesTheRecordStays) {
  store.set_capabilities({.atomic_commit = true, .foreign_writers = true});
  node("node-a", {});
  EXPECT_FALSE(remove_node(context, {"node-a", false, false}).value().record_deleted);
  EXPECT_EQ(list_nodes(context).value().size(), 1U);
}

// ---------------------------------------------------------------- explaining

TEST_F(OperatorTest, ExplainTellsEveryPoolInOrderAndWritesNothing) {
  pool("a", "10.1.0.0/28", 29);
  pool("b", "10.2.0.0/28", 29);
  pool("c", "10.3.0.0/28", 29);
  change_pool("a", [](core::Pool& p) { p.node_selector = "zone == 'x'"; });
  change_pool("b", [](core::Pool& p) { p.disabled = true; });
  node("node-a", {{"zone", "a"}});
  const auto before = store.counts().commit;
  const core::Explanation told = explained(request("c1"));
  EXPECT_EQ(store.counts().commit, before);
  ASSERT_EQ(told.addresses.size(), 1U);
  EXPECT_EQ(told.addresses[0].origin, core::Origin::new_block);
  const auto& pools = told.families.at(0).pools;
  ASSERT_EQ(pools.size(), 3U);
  EXPECT_EQ(pools[0].pool, "c");
  EXPECT_TRUE(pools[0].usable && pools[0].claimable);
  EXPECT_EQ(pools[1].reason, "nodeSelector zone == 'x' does not select node node-a");
  EXPECT_EQ(pools[1].selected, "the node has zone=a");
  EXPECT_EQ(pools[2].reason, "disabled");
  EXPECT_EQ(add("c1"), told.addresses[0].address.address.to_string()) << "what is told is what is done";
}

TEST_F(OperatorTest, ExplainKnowsOwnBlocksBorrowingAndTakingOver) {
  pool("a", "10.1.0.0/28", 28);
  add("c1", "node-a");
  EXPECT_EQ(explained(request("x")).addresses.at(0).origin, core::Origin::own_block);
  EXPECT_EQ(explained(request("x")).families[0].pools[0].own.at(0).free, 12U);
  const core::Explanation other = explained(request("x", "node-b"));
  EXPECT_EQ(other.addresses.at(0).origin, core::Origin::borrowed);
  EXPECT_EQ(other.addresses[0].block_owner, "host:node-a");
  EXPECT_THAT(other.families[0].pools[0].to_borrow, ElementsAre(prefix("10.1.0.0/28")));
  EXPECT_THAT(other.families[0].pools[0].not_claimable, HasSubstr("claimed"));
  del("c1");
  clock.advance(120s);
  EXPECT_EQ(explained(request("x", "node-b")).addresses.at(0).origin, core::Origin::taken_over);
}

TEST_F(OperatorTest, ExplainRefusesInTheWordsOfTheRefusal) {
  pool("a", "10.1.0.0/29", 29);
  config([](core::IpamConfig& c) { c.strict_affinity = true; });
  for (int i = 0; i < 5; ++i) add("c" + std::to_string(i));
  del("c0");
  const core::Explanation told = explained(request("x"));
  const auto error = core::to_error(std::get<core::Refusal>(told.answer));
  EXPECT_EQ(add("x"), std::string(name_of(error.code)) + ": " + error.message + " [" + error.details + "]");
  EXPECT_TRUE(told.families[0].pools[0].own.at(0).cools_until.has_value());
  EXPECT_TRUE(told.strict_affinity);
}

TEST_F(OperatorTest, ExplainOfAPoolThatMayNotBeUsed) {
  pool("a", "10.1.0.0/28", 29);
  auto wanted = request("x");
  wanted.pools.v4 = {"nowhere"};
  const core::Explanation told = explained(wanted);
  EXPECT_TRUE(std::holds_alternative<core::Refusal>(told.answer));
  EXPECT_EQ(told.families[0].pools.at(0).reason, "not the one asked for");
}

// ---------------------------------------------------------------- pools, and replies that are lost

/// Another pool is made in between, so the records don't tell that the deletion was done: gone is gone.
TEST_F(OperatorTest, ADeletionWhoseReplyWasLostIsDone) {
  Meddler meddled(store);
  const Context late{meddled, clock, random};
  pool("a", "10.1.0.0/28", 29);
  change_pool("a", [](core::Pool& p) { p.disabled = p.being_deleted = true; });
  meddled.lose_reply = true;
  meddled.after_commit = [&] { pool("b", "10.3.0.0/28", 29); };
  const auto deleted = delete_pool(late, "a");
  EXPECT_TRUE(deleted) << deleted.error().message;
  ASSERT_TRUE(create_reservation(context, {"r", {prefix("10.1.0.0/30")}}));
  meddled.lose_reply = true;
  EXPECT_TRUE(delete_reservation(late, "r"));
  EXPECT_FALSE(delete_reservation(late, "r")) << "there was none";
}

// ---------------------------------------------------------------- a deletion that was cut short

/// A store that writes one record at a time, with a pool whose blocks are empty again.
struct Killed : World {
  Killed() {
    write_one_by_one(store);
    pool("a", "10.1.0.0/24", 29, 0);
    // More blocks than one step deletes.
    for (int i = 0; i < 24; ++i) {
      const std::string name = std::to_string(i);
      add("c" + name, "node-" + name);
      EXPECT_EQ(del("c" + name), 1U);
    }
  }
  /// Its process dies before this commit from now on.
  Result<void> killed_at(std::uint64_t commit) {
    const auto before = static_cast<std::uint64_t>(store.counts().commit);
    store.set_faults(store::FaultScript().from_commit(before + commit, store::Fault::storage_full));
    auto done = delete_pool(context, "a");
    store.set_faults({});
    return done;
  }
  std::vector<std::string> told() {
    std::vector<std::string> texts;
    const auto report = audit(context, {});
    EXPECT_TRUE(report);
    for (const auto& one : report->findings) texts.push_back(std::string(one.id) + ": " + one.remedy);
    return texts;
  }
};

class KilledDeletion : public testing::Test, public Killed {};

TEST_F(KilledDeletion, IsToldWhereverItWasAndEndedByAskingAgain) {
  bool has_left_reservation = false, is_done = false;
  for (std::uint64_t commit = 1; commit < 500 && !is_done; ++commit) {
    Killed fresh;
    const auto killed = fresh.killed_at(commit);
    const auto pools = list_pools(fresh.context).value();
    is_done = killed && fresh.told().empty();
    if (is_done) break;
    if (commit > 1) {
      const bool is_there = !pools.empty();
      const std::string kind = is_there ? "pool_half_deleted" : "reservation_left";
      EXPECT_THAT(fresh.told(), Contains(testing::AllOf(HasSubstr(kind), HasSubstr("`croft pool delete a`"))))
          << "killed at " << commit;
      has_left_reservation |= !is_there;
    } else {
      EXPECT_THAT(fresh.told(), IsEmpty());
    }
    const auto again = delete_pool(fresh.context, "a");
    ASSERT_TRUE(again) << "killed at " << commit << ": " << again.error().message;
    EXPECT_THAT(fresh.told(), IsEmpty()) << "killed at " << commit;
    EXPECT_EQ(delete_pool(fresh.context, "a").error().code, ErrorCode::not_found);
  }
  EXPECT_TRUE(is_done && has_left_reservation);
}

TEST_F(KilledDeletion, APoolThatIsEnabledOrDisabledOnPurposeIsNoLongerBeingDeleted) {
  for (const bool disabled : {true, false}) {
    ASSERT_FALSE(killed_at(2));
    ASSERT_TRUE(list_pools(context)->at(0).being_deleted);
    ASSERT_TRUE(set_pool_disabled(context, "a", disabled));
    EXPECT_FALSE(list_pools(context)->at(0).being_deleted);
    EXPECT_EQ(list_pools(context)->at(0).disabled, disabled);
    EXPECT_THAT(told(), IsEmpty());
  }
}

TEST_F(KilledDeletion, OneThatIsRefusedLeavesThePoolAsItWas) {
  ASSERT_TRUE(assign(context, request("live")));
  for (const bool disabled : {true, false}) {
    ASSERT_TRUE(set_pool_disabled(context, "a", disabled));
    const core::Pool before = list_pools(context)->at(0);
    EXPECT_EQ(delete_pool(context, "a").error().code, ErrorCode::refused_for_safety);
    EXPECT_EQ(list_pools(context)->at(0), before);
  }
}

/// Its name alone makes no reservation a pool's.
TEST_F(KilledDeletion, WhatSomebodyReservedByHandStays) {
  const core::Reservation by_hand{"pool-b", {prefix("10.1.0.7/32"), prefix("10.1.0.9/32")}, {}};
  put(core::reservation_key("pool-b"), by_hand);
  EXPECT_THAT(told(), IsEmpty());
  EXPECT_EQ(delete_pool(context, "b").error().code, ErrorCode::not_found);
  EXPECT_TRUE(store.get(core::reservation_key("pool-b"), Deadline{}).value());
}

// ---------------------------------------------------------------- releasing

TEST_F(OperatorTest, ReleaseWithoutApplyingChangesNothing) {
  pool("a", "10.1.0.0/28", 29);
  const net::Address address = ip(add("c1").c_str());
  const auto told = release_addresses(context, {{address, {}, {}}}, false).value();
  EXPECT_THAT(told.released, ElementsAre(address));
  EXPECT_EQ(show_address(context, address)->state, core::AddressState::held);
}

/// The reply of the release is lost, and before it is decided again another has the address.
TEST_F(OperatorTest, ALateReleaseLeavesTheSuccessorAlone) {
  pool("a", "10.1.0.0/30", 30, 0);
  change_pool("a", [](core::Pool& p) { p.gateway.reset(); });
  const net::Address address = ip(add("dead").c_str());
  Meddler meddled(store);
  meddled.lose_reply = true;
  meddled.after_commit = [&] { EXPECT_EQ(add("live"), address.to_string()); };
  const auto done = release_addresses({meddled, clock, random}, {{address, {}, {}}}).value();
  EXPECT_THAT(done.released, ElementsAre(address));
  EXPECT_THAT(done.mismatched, IsEmpty());
  EXPECT_EQ(show_address(context, address)->handle_id, "net.live");
}

TEST_F(OperatorTest, ALeakedHandleGoesOnlyUnchanged) {
  pool("a", "10.1.0.0/28", 29);
  put(core::handle_key("net.x"), core::Handle{"net.x", {{"10.1.0.0/29", 1}}, false});
  const auto leaked = audit(context, {}).value().leaked_handles;
  ASSERT_EQ(leaked.size(), 1U);
  put(core::handle_key("net.x"), core::Handle{"net.x", {{"10.1.0.0/29", 2}}, false});
  EXPECT_FALSE(mend_handle(context, "net.x", leaked[0].revision).value()) << "another revision";
  const auto again = audit(context, {}).value().leaked_handles;
  EXPECT_TRUE(mend_handle(context, "net.x", again.at(0).revision).value());
  EXPECT_FALSE(store.get(core::handle_key("net.x"), {}).value());
}

}  // namespace
}  // namespace croft::engine
