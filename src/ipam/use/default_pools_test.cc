#include <thread>

#include "ipam/use/pools.h"
#include "ipam/use/test_world.h"
#include "store/forwarding_store.h"

namespace croft::engine {
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

/// An account that may not list Services.
class WithoutServices final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  [[nodiscard]] Result<void> for_each(const store::ListRequest& request, const Until& until,
                                      const Take& take) override {
    if (request.kind == core::Kind::service) return fail(ErrorCode::permission_denied, "may not list Services");
    return beneath().for_each(request, until, take);
  }
};

TEST_F(WithoutRanges, WhoMayNotReadServicesIsToldSo) {
  WithoutServices nobodys{store};
  const auto space = service_space({nobodys, clock, random});
  ASSERT_TRUE(space) << space.error().message;
  ASSERT_TRUE(space->unread && space->taken.empty());
  EXPECT_EQ(space->unread->message, "may not list Services");
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
