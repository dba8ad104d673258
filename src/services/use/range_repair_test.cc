#include "services/use/range_repair.h"

#include <fmt/format.h>

#include "ipam/use/test_world.h"
#include "services/use/test_services.h"
#include "store/test_records.h"

namespace croft::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Type = core::audit::RepairFinding::Type;
using store::Fault;
using store::FaultScript;

/// Services on a store in memory, and a repair that may meet somebody else.
struct World : Services {
  using Services::Services;
  Meddler meddler{store};
  Context repairing{meddler, clock, random};
  RangeRepairOptions repair_options{{}, true};
  RangeRepairMemory memory;

  RangeRepairReport repair() {
    auto report = repair_ranges(repairing, repair_options, memory);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *std::move(report) : RangeRepairReport{};
  }
  std::vector<std::string> found() {
    std::vector<std::string> result;
    for (const auto& finding : repair().findings()) {
      result.push_back(fmt::format("{} {}{}", name_of(finding.type), finding.value, finding.mended ? "" : " left"));
    }
    return result;
  }
  /// Changes a range behind the Services' back.
  template <class M, class F>
  void damage(std::string_view name, F f) {
    const store::Key key = core::range_allocation_key(name);
    const auto record = store.get(key, Deadline{}).value();
    auto range = std::get<core::RangeAllocation>(*record->value);
    auto bits = core::service::range_from<M>(range)->range;
    f(bits);
    range.data = bits.snapshot().data;
    EXPECT_TRUE(store::update_if_revision(store, key, range, record->revision, {}, Deadline{}));
  }
  void leak(const char* address) {
    damage<core::service::ServiceCidr>(core::kServiceIps,
                                       [&](auto& bits) { EXPECT_TRUE(bits.take(*net::parse_address(address))); });
  }
  void lose(const char* address) {
    damage<core::service::ServiceCidr>(core::kServiceIps,
                                       [&](auto& bits) { EXPECT_TRUE(bits.give_back(*net::parse_address(address))); });
  }
  bool has(const std::string& value) { return taken().contains(value); }
};

TEST(RepairRanges, ACleanStoreIsNotWritten) {
  World world("10.0.0.0/24,fd00::/112");
  EXPECT_EQ(world.create(World::service("a", core::ServiceType::node_port)), "ok");
  const auto commits = world.store.counts().commit;
  const RangeRepairReport report = world.repair();
  EXPECT_THAT(report.findings(), IsEmpty());
  EXPECT_THAT(report.failures, IsEmpty());
  EXPECT_EQ(report.ranges.size(), 3U);
  EXPECT_FALSE(report.objects);
  EXPECT_EQ(world.store.counts().commit, commits);
}

TEST(RepairRanges, NothingIsThereAndNothingIsMade) {
  World world;
  const RangeRepairReport report = world.repair();
  EXPECT_THAT(report.ranges, IsEmpty());
  EXPECT_THAT(report.failures, IsEmpty());
}

TEST(RepairRanges, AnAbsentRangeIsMadeForWhoSaysWhatItIs) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  const auto key = core::range_allocation_key(core::kServiceIps);
  ASSERT_TRUE(
      store::delete_if_revision(world.store, key, world.store.get(key, Deadline{}).value()->revision, {}, Deadline{}));
  const RangeRepairReport refused = world.repair();
  ASSERT_EQ(refused.failures.size(), 1U);
  EXPECT_EQ(refused.failures.front().error.message,
            "there is no record serviceips, and Services hold values of it: give --service-cluster-ip-range");
  world.repair_options.cidrs = world.ranges.cidrs;
  EXPECT_THAT(world.found(), ElementsAre("repair 10.0.0.7"));
  EXPECT_TRUE(world.has("10.0.0.7"));
}

TEST(RepairRanges, ALookWritesNothing) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.lose("10.0.0.7");
  world.repair_options.write = false;
  EXPECT_THAT(world.found(), ElementsAre("repair 10.0.0.7"));
  EXPECT_FALSE(world.has("10.0.0.7"));
}

TEST(RepairRanges, ADamagedPoolStopsWhoeverWritesAndNobodyWhoLooks) {
  World world("10.0.0.0/24");
  EXPECT_EQ(world.create(World::service("a", core::ServiceType::cluster_ip)), "ok");
  EXPECT_TRUE(store::create_if_absent(world.store, core::pool_key("p"), core::Pool{}, {}, Deadline{}));
  world.store.damage(core::pool_key("p"));
  EXPECT_FALSE(repair_ranges(world.repairing, world.repair_options, world.memory));
  world.repair_options.write = false;
  const auto report = repair_ranges(world.repairing, world.repair_options, world.memory);
  EXPECT_TRUE(report) << report.error().message;
}

// Two writers: somebody makes or deletes a Service between the repair's snapshot and its write.

TEST(RepairRanges, AServiceMadeMeanwhileKeepsItsAddress) {
  for (const bool at_commit : {false, true}) {
    World world;
    EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
    world.leak("10.0.0.9");
    for (int pass = 1; pass <= 2; ++pass) world.repair();
    // The third pass frees .9; a Service takes .8 meanwhile.
    (at_commit ? world.meddler.before_commit : world.meddler.after_read) = [&] {
      EXPECT_EQ(world.create(World::with_ip(World::service("b"), "10.0.0.8")), "ok");
    };
    const RangeRepairReport report = world.repair();
    EXPECT_GE(report.failed_tries.at("serviceips"), 1U);
    EXPECT_EQ(world.taken(), world.held()) << at_commit;
    EXPECT_TRUE(world.has("10.0.0.8"));
    EXPECT_FALSE(world.has("10.0.0.9"));
  }
}

TEST(RepairRanges, WhatNobodyCouldTellIsMendedInTheNextPass) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.leak("10.0.0.9");
  for (int pass = 1; pass <= 2; ++pass) world.repair();
  // A kube-apiserver that has taken the address long ago writes its Service at last: the range does not change.
  world.meddler.before_commit = [&] {
    core::Service late = World::service("late");
    late.cluster_ip = "10.0.0.9";
    late.cluster_ips = {"10.0.0.9"};
    EXPECT_TRUE(store::create_if_absent(world.store, core::service_key(late.name), late, {}, Deadline{}));
  };
  world.repair();
  // Nothing could have told: it is taken again in the next pass.
  EXPECT_THAT(world.found(), ElementsAre("repair 10.0.0.9"));
  EXPECT_EQ(world.taken(), world.held());
}

TEST(RepairRanges, ALookAtAStoreThatChangesIsMadeAgain) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.meddler.after_read = [&] { EXPECT_EQ(world.remove("a"), "ok"); };
  EXPECT_THAT(world.found(), IsEmpty()) << "not: leaked";
}

TEST(RepairRanges, TriesFourTimes) {  // [R13]
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.lose("10.0.0.7");
  const auto next = world.store.counts().commit + 1;
  FaultScript script;
  for (std::uint64_t i = 0; i < 3; ++i) script.on_commit(next + i, Fault::conflict);
  world.store.set_faults(script);
  const RangeRepairReport report = world.repair();
  EXPECT_THAT(report.failed_tries, ElementsAre(Pair("serviceips", 3)));
  EXPECT_THAT(report.written, ElementsAre("serviceips"));
  EXPECT_THAT(report.failures, IsEmpty());
  EXPECT_TRUE(world.has("10.0.0.7"));
}

TEST(RepairRanges, AFailureIsToldAndTheRestDone) {  // [R1]
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a", core::ServiceType::node_port), "10.0.0.7")), "ok");
  world.lose("10.0.0.7");
  world.damage<core::service::NodePortRange>(core::kServiceNodePorts, [](auto& bits) {
    std::vector<int> all;
    bits.for_each_taken([&](int port) { all.push_back(port); });
    for (const int port : all) bits.give_back(port);
  });
  world.store.set_faults(FaultScript().on_commit(world.store.counts().commit + 1, Fault::storage_full));
  const RangeRepairReport report = world.repair();
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_EQ(report.failures.front().range, "serviceips");
  EXPECT_THAT(report.failed_tries, ElementsAre(Pair("serviceips", 1)));
  EXPECT_THAT(report.written, ElementsAre("servicenodeports"));
  EXPECT_TRUE(
      report.failures.front().error.message.starts_with("unable to persist the updated service IP allocations: "))
      << report.failures.front().error.message;
  EXPECT_EQ(world.taken_in<core::service::NodePortRange>(core::kServiceNodePorts).size(), 1U);
}

/// A store that Kubernetes shares: `service` is Croft's own, foreign_service Kubernetes'.
struct Shared : World {
  Shared() {
    repair_options.write = true;
    store.set_capabilities({.atomic_commit = true, .foreign_writers = true});
  }
  void put_foreign(const std::string& name, const std::string& ip) {
    core::Service one = service(name);
    one.cluster_ip = ip;
    one.cluster_ips = {ip};
    EXPECT_TRUE(
        store::create_if_absent(store, core::foreign_service_key(one.name), core::ForeignService{one}, {}, Deadline{}));
  }
};

TEST(RepairRanges, WhatTheOtherKindHoldsIsHeld) {
  Shared world;
  EXPECT_EQ(world.create(World::with_ip(World::service("mine"), "10.0.0.7")), "ok");
  world.leak("10.0.0.9");
  world.put_foreign("theirs", "10.0.0.9");
  for (int pass = 1; pass <= 4; ++pass) EXPECT_THAT(world.found(), IsEmpty()) << pass;
  EXPECT_TRUE(world.has("10.0.0.9"));
  world.put_foreign("mine", "10.0.0.7");
  EXPECT_THAT(world.found(), ElementsAre("duplicate 10.0.0.7 left"));
}

TEST(RepairRanges, ARangeOverAPoolIsNotMoved) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  core::Pool pool;
  pool.name = "pods";
  pool.cidr = *net::parse_prefix("10.0.4.0/24");
  pool.block_length = 26;
  EXPECT_TRUE(store::create_if_absent(world.store, core::pool_key("pods"), pool, {}, Deadline{}));
  world.repair_options.cidrs = core::service::parse_service_cidrs("10.0.0.0/21").value();
  const RangeRepairReport report = world.repair();
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_EQ(report.failures.front().error.message,
            "the range 10.0.0.0/21 overlaps pool pods (10.0.4.0/24); choose another --service-cluster-ip-range");
  world.repair_options.cidrs = core::service::parse_service_cidrs("10.0.0.0/22").value();
  EXPECT_THAT(world.repair().written, ElementsAre("serviceips"));
  EXPECT_TRUE(world.store.get(core::pool_set_key(), Deadline{}).value()) << "what conflicts with a pool made meanwhile";
}

TEST(RepairRanges, APoolMadeMeanwhileIsSeen) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.repair_options.cidrs = core::service::parse_service_cidrs("10.0.0.0/21").value();
  world.meddler.before_commit = [&] {
    core::Pool pool;
    pool.name = "pods";
    pool.cidr = *net::parse_prefix("10.0.4.0/24");
    pool.block_length = 26;
    const std::vector<store::Write> writes{
        {core::pool_key("pods"), pool, store::Condition::if_absent(), false},
        {core::pool_set_key(), core::PoolSet{99}, store::Condition::always(), false}};
    EXPECT_TRUE(world.store.commit(writes, {}, Deadline{}));
  };
  EXPECT_EQ(world.repair().failures.size(), 1U);
}

TEST(RepairRanges, TwoRecordsOfOneFamilyAreNotGuessedAt) {
  World world("10.0.0.0/24,fd00::/112");
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.repair_options.cidrs = core::service::parse_service_cidrs("fd00::/112,10.0.0.0/24").value();
  EXPECT_THAT(world.repair().failures, IsEmpty());
  EXPECT_TRUE(world.has("10.0.0.7"));
  world.repair_options.cidrs = core::service::parse_service_cidrs("10.0.0.0/24").value();
  EXPECT_THAT(world.repair().written, ElementsAre("serviceips"));
  EXPECT_TRUE(world.has("10.0.0.7"));
  world.repair_options.cidrs.reset();
  const RangeRepairReport report = world.repair();
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_THAT(report.failures.front().error.message, testing::HasSubstr("are of one family"));
}

TEST(RepairRanges, ThePortOfAnExternalNameAsksForNoRange) {
  World world;
  core::Service outside = World::service("db", core::ServiceType::external_name, {World::port("", 80, 30090)});
  outside.external_name = "db.example.com";
  EXPECT_TRUE(store::create_if_absent(world.store, core::service_key(outside.name), outside, {}, Deadline{}));
  EXPECT_THAT(world.repair().failures, IsEmpty());
}

TEST(RepairRanges, WhereAddressesAreObjectsOnlyNodePortsAreRepaired) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a", core::ServiceType::node_port), "10.0.0.1")), "ok");
  core::ServiceCidrObject cidr;
  cidr.name = "kubernetes";
  cidr.cidrs = {*net::parse_prefix("10.0.0.0/24")};
  EXPECT_TRUE(store::create_if_absent(world.store, core::service_cidr_key(cidr.name), cidr, {}, Deadline{}));
  world.lose("10.0.0.1");
  world.leak("10.0.0.8");
  world.damage<core::service::NodePortRange>(core::kServiceNodePorts,
                                             [](auto& bits) { EXPECT_TRUE(bits.take(30123)); });
  for (int pass = 1; pass <= 3; ++pass) {
    const RangeRepairReport report = world.repair();
    EXPECT_TRUE(report.objects);
    EXPECT_EQ(report.findings().size(), 1U) << "the port that leaks";
  }
  EXPECT_THAT(world.taken_in<core::service::ServiceCidr>(core::kServiceIps), ElementsAre("10.0.0.8"));
  EXPECT_EQ(world.taken_in<core::service::NodePortRange>(core::kServiceNodePorts).size(), 1U);
}

/// A Kubernetes API shows no bitmaps.
class AsAnApi final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  [[nodiscard]] store::Capabilities capabilities() const override {
    store::Capabilities can = beneath().capabilities();
    can.lacks = {core::Kind::range_allocation};
    return can;
  }
};

TEST(RepairRanges, AStoreThatShowsNoBitmapsIsRefused) {
  World world;
  AsAnApi api{world.store};
  const auto report = repair_ranges({api, world.clock, world.random}, world.repair_options, world.memory);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::refused_by_configuration);
  EXPECT_THAT(report.error().message, ::testing::HasSubstr("--etcd-servers"));
}

}  // namespace
}  // namespace croft::engine
