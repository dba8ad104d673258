#include <array>

#include "ipam/use/damage_reporting_store.h"
#include "ipam/use/nodes.h"
#include "ipam/use/test_world.h"
#include "store/test_records.h"

// One damaged record costs what rests on it, and no more.

namespace croft::engine {
namespace {

using testing::HasSubstr;

struct DamagedRecords : World {
  DamagedRecords() {
    pool("four", "10.1.0.0/26", 29, 0);
    pool("other", "10.2.0.0/26", 29, 0);
    EXPECT_TRUE(claimed_by("c1", "node-a"));
    EXPECT_TRUE(claimed_by("c2", "node-b"));
  }
  [[nodiscard]] bool claimed_by(const std::string& container, const std::string& node = "node-a") {
    const auto answer = assign(context, request(container, node));
    return answer && std::holds_alternative<core::Assigned>(*answer);
  }
  core::AssignAnswer answer_to(const std::string& container, const std::string& node = "node-a") {
    const auto answer = assign(context, request(container, node));
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : core::AssignAnswer(core::Refusal());
  }
  net::Address address_of(const std::string& container, const std::string& node = "node-a") {
    const auto answer = answer_to(container, node);
    const auto* assigned = std::get_if<core::Assigned>(&answer);
    EXPECT_NE(assigned, nullptr);
    return assigned != nullptr ? assigned->addresses.front().address : net::Address();
  }
  net::Prefix block_of(const std::string& container, const std::string& node = "node-a") {
    return show_address(context, address_of(container, node)).value().block.value();
  }
};

struct Damaged : testing::Test, DamagedRecords {};

/// What rests on the record fails with its error, and everything else goes on.
TEST(DamagedRecord, CostsWhatRestsOnIt) {
  struct Row {
    const char* what;
    std::function<core::Key(const net::Prefix& own)> key;
    const char* gives;  ///< where a new address of the node comes from; null: it is refused
    bool is_answered;   ///< the owner that asks again
    bool is_released;
  };
  const core::AffinityOwner node{core::AffinityOwner::Type::host, "node-a"};
  constexpr auto kFour = "10.1.0.0/26", kOther = "10.2.0.0/26";
  const std::vector<Row> rows = {
      {"a vacancy", [&](const net::Prefix& own) { return core::vacancy_key(node, own); }, kFour, true, true},
      {"a block", [](const net::Prefix& own) { return core::block_key(own); }, kFour, false, false},
      {"an affinity", [&](const net::Prefix& own) { return core::affinity_key(node, own); }, kFour, true, true},
      {"a mark", [](const net::Prefix& own) { return core::high_water_mark_key(own); }, kFour, true, true},
      {"its pool", [](const net::Prefix&) { return core::pool_key("four"); }, kOther, false, true},
      {"another pool", [](const net::Prefix&) { return core::pool_key("other"); }, kFour, true, true},
      {"a pool's reservation", [](const net::Prefix&) { return core::reservation_key("pool-four"); }, kOther, true,
       true},
      {"any reservation", [](const net::Prefix&) { return core::reservation_key("gateways"); }, nullptr, true, true},
      {"the configuration", [](const net::Prefix&) { return core::ipam_config_key(); }, kFour, true, true},
      {"the node", [](const net::Prefix&) { return core::node_key("node-a"); }, kFour, true, true},
      {"its handle", [](const net::Prefix&) { return core::handle_key("net.c1"); }, kFour, false, false},
      {"another handle", [](const net::Prefix&) { return core::handle_key("net.c2"); }, kFour, true, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    DamagedRecords world;
    const core::Key key = row.key(world.block_of("c1"));
    world.store.damage(key);
    const core::AssignAnswer given = world.answer_to("new");
    if (row.gives != nullptr) {
      ASSERT_TRUE(std::holds_alternative<core::Assigned>(given));
      const net::Address address = std::get<core::Assigned>(given).addresses.front().address;
      EXPECT_TRUE(World::prefix(row.gives).contains(address)) << address.to_string();
    } else {
      ASSERT_TRUE(std::holds_alternative<core::Refusal>(given));
      EXPECT_EQ(std::get<core::Refusal>(given).code, ErrorCode::corrupt);
      EXPECT_THAT(std::get<core::Refusal>(given).summary, HasSubstr(key.name));
    }
    const auto again = assign(world.context, World::request("c1"));
    EXPECT_EQ(again.has_value(), row.is_answered);
    if (!again) {
      EXPECT_EQ(again.error().code, ErrorCode::corrupt);
      EXPECT_THAT(again.error().message, HasSubstr(key.name));
    }
    EXPECT_EQ(release_owner(world.context, World::request("c1").owner).has_value(), row.is_released);
    EXPECT_TRUE(check_status(world.context, {node, {true, false}, {}, false}));
    EXPECT_TRUE(list_addresses(world.context) && list_pools(world.context) && list_nodes(world.context));
  }
}

TEST_F(Damaged, ABlockIsLeftAloneAndTheNodeClaimsAnother) {
  const auto block = block_of("c1");
  store.damage(core::block_key(block));
  const auto damaged = store.get(core::block_key(block), Deadline{}).value()->revision;
  // More than the pool has elsewhere: all others are used, this one is not.
  int given = 0;
  for (int i = 0; i < 150; ++i) {
    const auto answer = answer_to("d" + std::to_string(i), i % 2 == 0 ? "node-a" : "node-b");
    const auto* assigned = std::get_if<core::Assigned>(&answer);
    if (assigned == nullptr) continue;
    ++given;
    EXPECT_FALSE(block.contains(assigned->addresses.front().address));
  }
  EXPECT_GT(given, 100);
  EXPECT_EQ(store.get(core::block_key(block), Deadline{}).value()->revision, damaged);
  EXPECT_TRUE(release_owner(context, World::request("c2").owner));
  EXPECT_TRUE(read_overview(context));
  EXPECT_EQ(show_block(context, block).error().code, ErrorCode::corrupt);
}

/// Its name is the only thing that leads to the block, where the gateway is held back.
TEST_F(Damaged, OfABlockWhoseVacancyCanNotBeReadAllAddressesAreGiven) {
  const auto block = block_of("c1");
  store.damage(core::vacancy_key(World::request("c1").node, block));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(block.contains(address_of("d" + std::to_string(i)))) << i;
  EXPECT_FALSE(block.contains(address_of("further")));
}

TEST_F(Damaged, ABlockThatMayHoldAddressesOfANodeKeepsTheNode) {
  ASSERT_TRUE(label_node(context, "node-a", {{"zone", "x"}}));
  const auto own = block_of("c1");
  for (const bool dry_run : {true, false}) {
    EXPECT_FALSE(remove_node(context, {"node-a", false, dry_run})) << "it holds addresses";
  }
  const core::Value sound = *store.get(core::block_key(own), Deadline{}).value()->value;
  store.damage(core::block_key(own));
  for (const bool dry_run : {true, false}) {
    SCOPED_TRACE(dry_run);
    const auto unforced = remove_node(context, {"node-a", false, dry_run});
    ASSERT_FALSE(unforced);
    EXPECT_EQ(unforced.error().code, ErrorCode::refused_for_safety);
    EXPECT_THAT(unforced.error().message, HasSubstr("1 block is damaged (" + core::block_key(own).name + ")"));
    // What nobody can give up stays, and so does the node's record.
    const auto forced = remove_node(context, {"node-a", true, dry_run});
    ASSERT_TRUE(forced);
    EXPECT_THAT(forced->affinities.released, testing::IsEmpty());
    ASSERT_TRUE(forced->affinities.failure);
    EXPECT_EQ(forced->affinities.failure->code, ErrorCode::corrupt);
    EXPECT_FALSE(forced->record_deleted);
  }
  // Also one of another node: an address in it may be borrowed.
  ASSERT_TRUE(store::update_if_revision(store, core::block_key(own), sound,
                                        store.get(core::block_key(own), Deadline{}).value()->revision, {}, Deadline{}));
  ASSERT_TRUE(release_owner(context, World::request("c1").owner));
  store.damage(core::block_key(block_of("c2", "node-b")));
  EXPECT_EQ(remove_node(context, {"node-a", false, true}).error().code, ErrorCode::refused_for_safety);
  EXPECT_TRUE(remove_node(context, {"node-a", true, true}).value().record_deleted);
}

TEST_F(Damaged, NoPoolIsMadeThatMayLieOverADamagedOne) {
  store.damage(core::pool_key("four"));
  EXPECT_EQ(list_pools(context).value().size(), 1U);
  // Whose configuration names it is served by the others.
  EXPECT_TRUE(
      ensure_pools(context, {World::spec("four", "10.1.0.0/26", 29), World::spec("other", "10.2.0.0/26", 29, 0)}));
  const auto made = create_pool(context, World::spec("new", "10.3.0.0/24", 29));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::corrupt);
  EXPECT_THAT(made.error().message, HasSubstr("four"));
}

TEST_F(Damaged, WhatCoolsInADamagedPoolGoesOnCooling) {
  core::Pool slow = list_pools(context).value().front();
  slow.cooldown = std::chrono::seconds{600};
  put(core::pool_key(slow.name), slow);
  const auto block = block_of("c1");
  ASSERT_TRUE(release_owner(context, World::request("c1").owner));
  store.damage(core::pool_key(slow.name));
  clock.advance(std::chrono::seconds{120});
  const auto view = show_block(context, block);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->usage.cooling, 1U);
}

TEST_F(Damaged, AConfigurationIsReadAsStrict) {
  store.damage(core::ipam_config_key());
  int given = 0;
  for (int i = 0; i < 200; ++i) given += claimed_by("d" + std::to_string(i)) ? 1 : 0;
  EXPECT_GT(given, 80);
  const auto views = list_addresses(context);
  ASSERT_TRUE(views);
  for (const AddressView& view : *views) {
    if (view.state == core::AddressState::held) {
      EXPECT_FALSE(view.borrowed()) << view.address.to_string() << " of " << to_string(*view.block_owner) << " on "
                                    << view.node;
    }
  }
}

TEST_F(Damaged, TheAuditNamesEachOnce) {
  store.damage(core::block_key(block_of("c1")));
  store.damage(core::pool_key("four"));
  store.damage(core::reservation_key("gateways"));
  store.damage(core::ipam_config_key());
  store.damage(core::node_key("node-x"), ErrorCode::newer_version);
  const auto report = audit(context, {});
  ASSERT_TRUE(report) << report.error().message;
  std::map<std::string, int> named;
  for (const core::audit::Finding& finding : report->findings) {
    if (finding.id == "block_corrupt" || finding.id.starts_with("record_")) ++named[finding.subject];
  }
  EXPECT_EQ(named.size(), 5U);
  for (const auto& [subject, times] : named) EXPECT_EQ(times, 1) << subject;
}

/// A block larger than any that is read: its CIDR is taken whole, and nobody is told that its addresses are nobody's.
TEST_F(Damaged, ABlockThatIsTooLargeIsTakenWhole) {
  const core::Key key = core::block_key(prefix("10.0.0.0/8"));
  store.damage(key);
  const AuditReport report = audit(context, {}).value();
  const auto is_its = [](const core::audit::Finding& one) { return one.subject == "block 10.0.0.0/8"; };
  const auto found = std::ranges::find_if(report.findings, is_its);
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(found->id, "block_corrupt");
  EXPECT_THAT(found->remedy, HasSubstr("its addresses stay taken"));
  EXPECT_THAT(list_block_cidrs(context).value(), testing::Contains(prefix("10.0.0.0/8")));
  const auto made = create_pool(context, World::spec("new", "10.9.0.0/26", 29));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("10.0.0.0/8"));
}

/// Of Calico's etcd, where Calico's own record is whole.
TEST(DamagedBesideABlock, IsToldOfTheBlockWithTheRemedy) {
  const core::audit::Unreadable block{
      core::block_key(World::prefix("10.1.0.56/29")), {ErrorCode::corrupt, "it is damaged", {}}, true};
  const std::vector<core::audit::Unreadable> unreadable{block};
  const auto found = core::audit::Unseen(unreadable).findings(true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().id, "block_corrupt");
  EXPECT_THAT(found.front().remedy, HasSubstr("`croft record remove block 10.1.0.56/29` leaves the block"));
}

TEST_F(Damaged, IsToldOnce) {
  store.damage(core::pool_key("four"));
  std::vector<std::string> told;
  DamageReportingStore telling(store, [&](const core::Key& key, const Error& error) {
    told.push_back(key.name);
    EXPECT_EQ(error.code, ErrorCode::corrupt);
  });
  const Context through{telling, clock, random};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(assign(through, request("d" + std::to_string(i))));
  EXPECT_TRUE(list_addresses(through));
  EXPECT_EQ(told, std::vector<std::string>{"four"});
}

/// It is not the node's fault, and who makes all nodes unready at once has their pods evicted.
TEST_F(Damaged, NoRecordMakesANodeUnready) {
  StatusRequest status;
  status.node = {core::AffinityOwner::Type::host, "node-a"};
  const auto expect_ready = [&](const char* what) {
    status.fail_when_full = false;
    EXPECT_TRUE(check_status(context, status)) << what;
    status.fail_when_full = true;
    const auto strict = check_status(context, status);
    ASSERT_FALSE(strict) << what;
    EXPECT_EQ(strict.error().code, ErrorCode::corrupt) << what;
    EXPECT_THAT(strict.error().message, HasSubstr(what));
    const auto refused = answer_to("new");
    ASSERT_TRUE(std::holds_alternative<core::Refusal>(refused)) << what;
    EXPECT_EQ(std::get<core::Refusal>(refused).code, ErrorCode::corrupt) << what;
  };
  store.damage(core::reservation_key("gateways"));
  expect_ready("gateways");
  ASSERT_TRUE(store.commit(
      std::array{store::Write{core::reservation_key("gateways"), std::nullopt, store::Condition::always(), false}},
      store::WriteToken(), Deadline{}));
  store.damage(core::pool_key("other"));
  status.fail_when_full = true;
  EXPECT_TRUE(check_status(context, status)) << "a pool serves";
  store.damage(core::pool_key("four"));
  expect_ready("other");
  status.pools.v4 = {"four"};
  status.fail_when_full = false;
  EXPECT_TRUE(check_status(context, status)) << "asked for by name";
}

TEST_F(Damaged, OfManyOfAKindAFewAreNamed) {
  store::MemoryStore beneath;
  for (int i = 0; i < 1000; ++i) beneath.damage(core::handle_key("net.c" + std::to_string(i)));
  beneath.damage(core::pool_key("a"));
  std::vector<std::string> told;
  DamageReportingStore telling(beneath, [&](const core::Key&, const Error& damage) { told.push_back(damage.message); });
  for (int pass = 0; pass < 2; ++pass) {
    for (const core::Kind kind : {core::Kind::handle, core::Kind::pool}) {
      ASSERT_TRUE(telling.for_each(
          {kind, "", 100}, [] { return Deadline{}; }, [](auto&) { return Result<void>(); }));
    }
  }
  ASSERT_EQ(told.size(), kToldOfAKindMax + 2);
  EXPECT_THAT(told[kToldOfAKindMax], HasSubstr("more than 20 records of kind handle"));
}

// As a store's URL with a certificate and no key: that says nothing of the handle.
TEST_F(Damaged, AStoreThatRefusesItsOwnConfigurationFreesNothing) {
  struct Refusing final : store::ForwardingStore {
    using ForwardingStore::ForwardingStore;
    [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing&, Deadline) override {
      return fail(invalid_argument("a certificate and its key, or neither"));
    }
  } refusing(store);
  const Context through{refusing, clock, random};
  const auto released = release_owner(through, World::request("c1").owner);
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace croft::engine
