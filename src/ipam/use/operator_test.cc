#include <thread>

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

TEST_F(OperatorTest, SplitIsOneCommitOverNothingElse) {
  pool("a", "10.1.0.0/24", 26);
  EXPECT_EQ(split(4, core::SplitGateways::none, false).value().parts.size(), 4U);
  EXPECT_THAT(pool_names(), ElementsAre("a 10.1.0.0/24")) << "nothing was applied";
  put(core::pool_key("split-a-1"), core::make_pool(spec("split-a-1", "10.9.0.0/26", 28)).value());
  EXPECT_EQ(split(2, core::SplitGateways::none).error().code, ErrorCode::already_exists);
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
  EXPECT_TRUE(read_overview(context)->pools[0].blocks[0].block.affinity) << "and does nothing";
  EXPECT_TRUE(remove_node(context, {"node-a", true, false}).value().record_deleted);
  EXPECT_FALSE(read_overview(context)->pools[0].blocks[0].block.affinity);
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
  EXPECT_TRUE(delete_reservation(late, "r", false) && delete_reservation(late, "r")) << "tried before, it is there";
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
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DefaultPools : public testing::Test, public World {
 protected:
  /// What came of these CIDRs, or why nothing did.
  std::vector<std::string> ensured(const std::vector<const char*>& cidrs, bool only_look = false) {
    std::vector<core::PoolSpec> specs;
    for (const char* cidr : cidrs) {
      core::PoolSpec one;
      one.cidr = prefix(cidr);
      one.name = one.cidr.family() == net::Family::v4 ? kDefaultPoolV4 : kDefaultPoolV6;
      specs.push_back(std::move(one));
    }
    DefaultPoolsOptions options;
    options.only_look = only_look;
    options.taken = [this]() -> Result<std::vector<TakenSpace>> {
      ++asked;
      return taken;
    };
    const auto done = ensure_default_pools(context, specs, options);
    if (!done) return {std::string(name_of(done.error().code)) + ": " + done.error().message};
    std::vector<std::string> texts;
    for (const DefaultPool& one : *done) {
      constexpr const char* kWords[] = {"made", "there", "to be made"};
      texts.push_back(std::string(kWords[static_cast<int>(one.outcome)]) + " " + one.pool.name + " " +
                      one.pool.cidr.to_string());
    }
    return texts;
  }
  std::vector<TakenSpace> taken;
  int asked = 0;
};

TEST_F(DefaultPools, AreMadeOnceForEachFamily) {
  EXPECT_THAT(ensured({"10.1.0.0/16", "fd00::/48"}, true),
              ElementsAre("to be made default-ipv4-ippool 10.1.0.0/16", "to be made default-ipv6-ippool fd00::/48"));
  EXPECT_TRUE(list_pools(context)->empty());
  EXPECT_THAT(ensured({"10.1.0.0/16", "fd00::/48"}),
              ElementsAre("made default-ipv4-ippool 10.1.0.0/16", "made default-ipv6-ippool fd00::/48"));
  asked = 0;
  EXPECT_THAT(ensured({"10.9.0.0/16"}), ElementsAre("there default-ipv4-ippool 10.1.0.0/16"));
  EXPECT_EQ(asked, 0) << "nobody's addresses are read for what is there";
}

TEST_F(DefaultPools, AnyPoolOfTheFamilyIsEnough) {
  pool("mine", "10.7.0.0/24", 26);
  ASSERT_TRUE(set_pool_disabled(context, "mine", true));
  EXPECT_THAT(ensured({"10.1.0.0/16", "fd00::/48"}),
              ElementsAre("there mine 10.7.0.0/24", "made default-ipv6-ippool fd00::/48"));
}

// On a store that writes one record at a time a pool is made disabled and enabled last.
TEST_F(DefaultPools, OneThatCouldNotBeEnabledIsNoSuccess) {
  bool has_left_one_disabled = false;
  for (std::uint64_t commit = 1; commit < 6; ++commit) {
    World fresh;
    write_one_by_one(fresh.store);
    fresh.store.set_faults(store::FaultScript().from_commit(commit, store::Fault::storage_full));
    const auto done =
        ensure_default_pools(fresh.context, {{kDefaultPoolV4, prefix("10.1.0.0/16"), {}, {}, {}, {}}}, {});
    const auto pools = list_pools(fresh.context);
    ASSERT_TRUE(pools);
    const bool is_disabled = !pools->empty() && pools->front().disabled;
    has_left_one_disabled |= is_disabled;
    EXPECT_EQ(done.has_value(), !pools->empty() && !is_disabled) << "no commits from number " << commit;
    EXPECT_TRUE(!is_disabled || pools->front().being_made);
  }
  EXPECT_TRUE(has_left_one_disabled);
}

/// A Kubernetes API before 1.33: it tells no range of Services, only which addresses they have.
class WithoutRanges : public testing::Test, public World {
 protected:
  WithoutRanges() {
    store::Capabilities can = store.capabilities();
    can.lacks = {core::Kind::range_allocation};
    can.services = core::System::kubernetes;
    store.set_capabilities(can);
    put_service("web", {"10.96.0.10", "fd00:96::a"});
    put_service("headless", {"None"});
  }
  void put_service(const char* name, std::vector<std::string> ips) {
    core::Service service;
    service.name = {"default", name};
    service.cluster_ip = ips.front();
    service.cluster_ips = std::move(ips);
    put(core::service_key(service.name), service);
  }
  std::string made(const char* cidr) {
    const int length = prefix(cidr).family() == net::Family::v4 ? 26 : 122;
    const auto created = create_pool(context, spec("a", cidr, length), [this]() -> Result<std::vector<TakenSpace>> {
      TRY(ServiceSpace space, service_space(context));
      EXPECT_FALSE(space.unread);
      return std::move(space.taken);
    });
    if (!created) return created.error().message;
    return created->existed_before ? "unchanged" : "made";
  }
};

TEST_F(WithoutRanges, NoPoolLiesOverTheAddressesOfServices) {
  constexpr const char* kRefused =
      "cidr 10.96.0.0/24 of pool a overlaps address 10.96.0.10 of Service \"default/web\", whose range nothing tells; "
      "give another CIDR";
  EXPECT_EQ(made("10.96.0.0/24"), kRefused);
  EXPECT_THAT(made("fd00:96::/112"), HasSubstr("address fd00:96::a of Service \"default/web\""));
  EXPECT_TRUE(list_pools(context)->empty());
  EXPECT_EQ(made("10.97.0.0/24"), "made");
}

TEST_F(WithoutRanges, APoolThatIsThereIsNotRefused) {
  ASSERT_EQ(made("10.97.0.0/24"), "made");
  put_service("later", {"10.97.0.1"});
  EXPECT_EQ(made("10.97.0.0/24"), "unchanged");
}

TEST_F(WithoutRanges, WhereARangeIsToldServicesAreNotAsked) {
  core::ServiceCidrObject range;
  range.name = "kubernetes";
  range.cidrs = {prefix("10.96.0.0/28")};
  put({core::Kind::service_cidr, range.name}, range);
  EXPECT_TRUE(service_space(context)->taken.empty());
  EXPECT_THAT(made("10.96.0.0/24"), HasSubstr("ServiceCIDR \"kubernetes\" (10.96.0.0/28)"));
}

/// A ServiceCIDR, or a node, that comes after the pool.
TEST_F(WithoutRanges, WhatLiesInAPoolAndIsNobodysPodsIsTold) {
  ASSERT_EQ(made("10.97.0.0/24"), "made");
  const auto told = [&](const std::vector<TakenSpace>& taken) {
    std::string all;
    const auto found = pools_in_taken_space(context, taken);
    EXPECT_TRUE(found);
    for (const PoolInTakenSpace& one : *found) all += one.pool + " " + one.shared.to_string() + " " + one.whose + ";";
    return all;
  };
  EXPECT_EQ(told(service_cidrs(context).value()), "");
  core::ServiceCidrObject range;
  range.name = "later";
  range.cidrs = {prefix("10.97.0.0/16"), prefix("fd00:97::/112")};
  put({core::Kind::service_cidr, range.name}, range);
  EXPECT_EQ(told(service_cidrs(context).value()), "a 10.97.0.0/24 ServiceCIDR \"later\" (10.97.0.0/16);");
  const std::vector<TakenSpace> node{{"node n", prefix("10.97.0.9/32")}, {"node o", prefix("192.0.2.1/32")}};
  EXPECT_EQ(told(node), "a 10.97.0.9/32 node n;");
  put(core::reservation_key("nodes"), core::Reservation{"nodes", {prefix("10.97.0.8/31")}});
  EXPECT_EQ(told(node), "");
  core::Pool pool = list_pools(context)->front();
  pool.disabled = true;
  put(core::pool_key("a"), pool);
  EXPECT_EQ(told(service_cidrs(context).value()), "");
}

TEST_F(WithoutRanges, WhoMayNotReadServicesIsToldSo) {
  Forbidding nobodys{store};
  nobodys.forbidden = {core::Kind::service};
  const auto space = service_space({nobodys, clock, random});
  ASSERT_TRUE(space) << space.error().message;
  ASSERT_TRUE(space->unread && space->taken.empty());
  EXPECT_EQ(space->unread->message, "cannot list service");
}

/// A store that writes one record at a time, with a pool that its maker has announced and not enabled.
class HalfMade : public testing::Test, public World {
 protected:
  HalfMade() {
    write_one_by_one(store);
    for (std::uint64_t commit = 1; commit < 9; ++commit) {
      const auto before = static_cast<std::uint64_t>(store.counts().commit);
      store.set_faults(store::FaultScript().from_commit(before + commit, store::Fault::storage_full));
      static_cast<void>(create_pool(context, wanted));
      const auto pools = list_pools(context);
      if (pools && !pools->empty() && pools->front().disabled) break;
      store.set_faults({});
      put(core::reservation_key("pool-a"), std::nullopt);
    }
    store.set_faults({});
    EXPECT_TRUE(stored().disabled && stored().being_made);
  }
  core::Pool stored() {
    const auto pools = list_pools(context);
    return pools && !pools->empty() ? pools->front() : core::Pool{};
  }
  void put_pool(const core::Pool& pool) { put(core::pool_key(pool.name), pool); }
  const core::PoolSpec wanted{"a", net::Prefix::parse("10.1.0.0/16").value(), {}, {}, {}, {}};
};

TEST_F(HalfMade, WhoAsksForItAgainCompletesIt) {
  const auto again = create_pool(context, wanted);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->was_completed);
  EXPECT_FALSE(stored().disabled || stored().being_made);
  const auto reservation = store.get(core::reservation_key("pool-a"), Deadline{});
  EXPECT_TRUE(reservation && *reservation);
  const auto third = create_pool(context, wanted);
  ASSERT_TRUE(third);
  EXPECT_TRUE(third->existed_before && !third->was_completed);
}

TEST_F(HalfMade, AlsoAPluginsConfigurationAndTheDefaultPools) {
  const core::Pool half = stored();
  ASSERT_TRUE(ensure_pools(context, {wanted}));
  EXPECT_FALSE(stored().disabled);
  put_pool(half);
  const auto defaults = ensure_default_pools(context, {wanted}, {});
  ASSERT_TRUE(defaults) << defaults.error().message;
  EXPECT_EQ(defaults->front().outcome, DefaultPool::Outcome::made);
  EXPECT_FALSE(stored().disabled);
  put_pool(half);
  core::PoolSpec other = wanted;
  other.cidr = prefix("10.2.0.0/16");
  const auto refused = ensure_default_pools(context, {other}, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr("croft pool enable a"), HasSubstr("10.2.0.0/16")));
  EXPECT_TRUE(stored().disabled);
}

TEST_F(HalfMade, ItIsNotEnabledOverAnother) {
  core::Pool other = stored();
  other.name = "b";
  other.cidr = prefix("10.1.128.0/17");
  other.disabled = other.being_made = false;
  put_pool(other);
  for (const auto& error : {create_pool(context, wanted).error(), set_pool_disabled(context, "a", false).error()}) {
    EXPECT_EQ(error.code, ErrorCode::refused_by_configuration);
    EXPECT_THAT(error.message, testing::AllOf(HasSubstr("10.1.128.0/17"), HasSubstr("pool b")));
  }
  EXPECT_TRUE(stored().disabled);
  EXPECT_TRUE(set_pool_disabled(context, "b", true) && delete_pool(context, "b"));
  EXPECT_TRUE(create_pool(context, wanted));
  EXPECT_FALSE(stored().disabled);
}

TEST_F(HalfMade, WhatAnOperatorDisabledStaysSo) {
  const core::Pool half = stored();
  ASSERT_TRUE(set_pool_disabled(context, "a", true)) << "somebody means it now";
  EXPECT_FALSE(stored().being_made);
  const auto stays = [&] {
    const auto again = create_pool(context, wanted);
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->existed_before && !again->was_completed);
    ASSERT_TRUE(ensure_pools(context, {wanted}) && ensure_default_pools(context, {wanted}, {}));
    EXPECT_TRUE(stored().disabled);
  };
  stays();
  ASSERT_TRUE(set_pool_disabled(context, "a", false) && set_pool_disabled(context, "a", true));
  stays();
  // Another program has enabled it, it was used, and disabled again: the mark was nobody's to take away.
  core::Pool used = half;
  used.disabled = used.being_made = false;
  put_pool(used);
  ASSERT_TRUE(assign(context, request("c")));
  put_pool(half);
  stays();
}

TEST_F(HalfMade, ItIsToldByNameAndCanBeTakenAway) {
  const auto told = audit(context, {});
  ASSERT_TRUE(told && told->findings.size() == 1);
  EXPECT_EQ(told->findings[0].id, "pool_half_made");
  EXPECT_EQ(told->findings[0].subject, "pool a");
  EXPECT_THAT(told->findings[0].remedy,
              testing::AllOf(HasSubstr("croft pool enable a"), HasSubstr("croft pool delete a")));
  EXPECT_TRUE(delete_pool(context, "a"));
  EXPECT_THAT(audit(context, {})->findings, testing::IsEmpty());
}

TEST_F(HalfMade, OfManyWhoCompleteItNoneFails) {
  std::vector<std::thread> threads;
  std::vector<std::string> said(6);
  for (std::size_t i = 0; i < said.size(); ++i) {
    threads.emplace_back([&, i] {
      SeededRandom own(i + 1);
      const auto done = create_pool({store, clock, own}, wanted);
      if (!done) said[i] = done.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(said, testing::Each(""));
  EXPECT_FALSE(stored().disabled);
}

TEST_F(DefaultPools, WhatIsTakenIsRefusedWithBothNames) {
  taken = {{"address 10.1.2.3 of node oak", prefix("10.1.2.3/32")}};
  EXPECT_THAT(ensured({"10.1.0.0/16"}),
              ElementsAre(HasSubstr("refused_by_configuration: cidr 10.1.0.0/16 of pool default-ipv4-ippool overlaps "
                                    "address 10.1.2.3 of node oak")));
  EXPECT_THAT(ensured({"10.2.0.0/16"}), ElementsAre("made default-ipv4-ippool 10.2.0.0/16"));
}

TEST_F(DefaultPools, OfManyAtOnceOneMakesThem) {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::string>> said(8);
  for (std::size_t i = 0; i < said.size(); ++i) {
    threads.emplace_back([&, i] {
      SeededRandom own(i + 1);
      const Context mine{store, clock, own};
      core::PoolSpec spec{
          kDefaultPoolV4, net::Prefix::parse("10." + std::to_string(i) + ".0.0/16").value(), {}, {}, {}, {}};
      const auto done = ensure_default_pools(mine, {spec}, {});
      said[i] = {done ? (done->front().outcome == DefaultPool::Outcome::made ? "made" : "there")
                      : done.error().message};
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t made = 0;
  for (const auto& one : said) {
    if (one.front() == "made")
      ++made;
    else
      EXPECT_EQ(one.front(), "there");
  }
  EXPECT_EQ(made, 1U);
  EXPECT_EQ(list_pools(context)->size(), 1U);
}

}  // namespace
}  // namespace croft::engine
