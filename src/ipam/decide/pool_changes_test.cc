#include "ipam/decide/pool_changes.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"

namespace croft::core {
namespace {

using std::chrono::seconds;

/// Pool "a" with blocks of /28, and what is decided about it.
class PoolChanges : public testing::Test {
 protected:
  void make(const char* cidr, GatewayChoice::Kind gateway = GatewayChoice::Kind::none) {
    const PoolSpec spec{"a", prefix(cidr), 28, GatewayChoice{gateway, {}}, seconds(30), {}};
    ASSERT_TRUE(reg.decided(plan_create_pool, spec));
  }
  void claim(const net::Prefix& cidr) {
    const auto outcome = reg.decided(plan_claim_affinity, kNode, cidr, clock.now());
    ASSERT_TRUE(outcome);
    ASSERT_EQ(*outcome, ClaimOutcome::claimed);
  }
  void hold(const char* wanted = nullptr) {
    AssignRequest request;
    request.owner = owner;
    request.node = kNode;
    if (wanted != nullptr) request.addresses = {address(wanted)};
    const auto done = reg.decided(plan_assign, request, clock.now());
    ASSERT_TRUE(done && std::holds_alternative<Assigned>(*done));
  }
  void release() { ASSERT_TRUE(reg.decided(plan_release_owner, owner, clock.now())); }
  Result<Plan<Pool>> set_disabled(const std::string& name, bool disabled) {
    return reg.plan<Pool>([&](const Snapshot& s) {
      return plan_change_pool(s, PoolSpec{name, {}, {}, {}, {}, disabled});
    });
  }
  void disable() { reg.apply(set_disabled("a", true)->writes); }
  Result<PoolDeleted> drop(const std::string& name = "a") { return reg.decided(plan_delete_pool, name, clock.now()); }
  Result<PoolsSplit> split(const PoolSplit& wanted) { return reg.decided(plan_split_pool, wanted, clock.now()); }
  [[nodiscard]] std::size_t count(Kind kind) const {
    std::size_t found = 0;
    for (const auto& [key, value] : reg.records()) found += key.kind == kind ? 1U : 0U;
    return found;
  }

  TestRegister reg;
  ManualClock clock;
  Owner owner{"net", "c", "eth0"};
};

std::optional<ErrorCode> code_of(const auto& result) {
  return result ? std::nullopt : std::optional(result.error().code);
}

/// Somebody deletes a pool under living pods, as kubectl lets him: the very same may be made again.
TEST_F(PoolChanges, APoolThatIsGoneUnderItsPodsIsMadeAgainAsItWas) {
  make("10.0.0.0/26");
  hold("10.0.0.1");
  reg.apply({to_delete(pool_key("a"), Guard::none), to_delete(reservation_key("pool-a"), Guard::none)});
  const auto again = [&](const char* cidr, int length, GatewayChoice gateway) {
    const PoolSpec spec{"a", prefix(cidr), length, gateway, seconds(30), {}};
    return reg.decided(plan_create_pool, spec);
  };
  const GatewayChoice none{GatewayChoice::Kind::none, {}};
  const auto other_length = again("10.0.0.0/26", 27, none);
  EXPECT_EQ(code_of(other_length), ErrorCode::refused_by_configuration);
  EXPECT_THAT(other_length.error().message, testing::HasSubstr("blockSize 28"));
  EXPECT_EQ(code_of(again("10.0.0.0/29", 29, none)), ErrorCode::refused_by_configuration);
  EXPECT_EQ(code_of(again("10.0.0.8/29", 29, none)), ErrorCode::refused_by_configuration);
  const auto its_gateway = again("10.0.0.0/26", 28, {});
  EXPECT_EQ(code_of(its_gateway), ErrorCode::refused_by_configuration);
  EXPECT_THAT(its_gateway.error().message, testing::HasSubstr("gateway 10.0.0.1 is taken"));
  ASSERT_TRUE(again("10.0.0.0/26", 28, none));
  hold();
  EXPECT_EQ(count(Kind::block), 1U);
}

TEST_F(PoolChanges, SettingsOfAPoolThatIsThere) {
  make("10.0.0.0/26");
  hold("10.0.0.3");
  const Pool before = *reg.get(pool_key("a"));
  const auto set = [&](const PoolSpec& change) { return reg.decided(plan_change_pool, change); };
  const auto gateway = [](const char* text) {
    PoolSpec change{"a", {}, {}, GatewayChoice{GatewayChoice::Kind::given, address(text)}, {}, {}};
    return change;
  };
  EXPECT_EQ(code_of(set({"b", {}, {}, {}, seconds(1), {}})), ErrorCode::not_found);
  EXPECT_EQ(code_of(set({"a", {}, {}, {}, seconds(1201), {}})), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(set({"a", {}, 27, {}, {}, {}})), ErrorCode::invalid_argument) << "blocks keep their size";
  EXPECT_EQ(code_of(set(gateway("10.0.1.1"))), ErrorCode::invalid_argument) << "outside";
  EXPECT_EQ(code_of(set(gateway("10.0.0.3"))), ErrorCode::refused_by_configuration) << "a pod's";
  PoolSpec bad{"a", {}, {}, {}, {}, {}};
  bad.node_selector = "rack ==";
  EXPECT_EQ(code_of(set(bad)), ErrorCode::invalid_argument);
  bad = {"a", {}, {}, {}, {}, {}};
  bad.priority = 1001;
  EXPECT_EQ(code_of(set(bad)), ErrorCode::invalid_argument);
  EXPECT_EQ(*reg.get(pool_key("a")), before) << "nothing of this";

  PoolSpec all{"a", {}, {}, {}, seconds(5), true};
  all.node_selector = "rack == \"a\"";
  all.namespace_selector = "has(team)";
  all.priority = 7;
  ASSERT_TRUE(set(all));
  Pool wanted = before;
  wanted.cooldown = seconds(5);
  wanted.disabled = true;
  wanted.node_selector = "rack == \"a\"";
  wanted.namespace_selector = "has(team)";
  wanted.priority = 7;
  EXPECT_EQ(*reg.get(pool_key("a")), wanted);
  all = {"a", {}, {}, {}, {}, {}};
  all.node_selector = "";
  ASSERT_TRUE(set(all));
  EXPECT_EQ(reg.get(pool_key("a"))->node_selector, "all()");
}

/// Pods have the gateway of before in their routes for as long as they live.
TEST_F(PoolChanges, AGatewayOfBeforeStaysOutOfUse) {
  make("10.0.0.0/26", GatewayChoice::Kind::first_address);
  const PoolSpec change{"a", {}, {}, GatewayChoice{GatewayChoice::Kind::given, address("10.0.0.9")}, {}, {}};
  ASSERT_TRUE(reg.decided(plan_change_pool, change));
  EXPECT_EQ(reg.get(pool_key("a"))->gateway, address("10.0.0.9"));
  const auto& kept = reg.get(reservation_key("pool-a"))->cidrs;
  for (const char* one : {"10.0.0.0/32", "10.0.0.1/32", "10.0.0.9/32", "10.0.0.63/32"}) {
    EXPECT_EQ(std::ranges::count(kept, prefix(one)), 1) << one;
  }
  EXPECT_EQ(kept.size(), 4U);
}

TEST_F(PoolChanges, TheHigherPriorityServesFirst) {
  for (const char* name : {"a", "b"}) {
    PoolSpec spec{name, prefix(*name == 'a' ? "10.0.0.0/26" : "10.0.1.0/26"), 28, {}, seconds(0), {}};
    spec.priority = *name == 'b' ? 1 : 0;
    ASSERT_TRUE(reg.decided(plan_create_pool, spec));
  }
  hold();
  EXPECT_EQ(count(Kind::block), 1U);
  EXPECT_TRUE(prefix("10.0.1.0/26").contains(*cidr_of(reg.records().lower_bound(Key{Kind::block, ""})->first)));
}

TEST_F(PoolChanges, ReservationsOfAPerson) {
  make("10.0.0.0/26", GatewayChoice::Kind::first_address);
  const auto reserve = [&](const Reservation& wanted) { return reg.decided(plan_create_reservation, wanted); };
  const auto remove = [&](const char* name) { return code_of(reg.decided(plan_delete_reservation, name)); };
  const Reservation wanted{"printers", {prefix("10.0.0.0/28"), prefix("10.0.0.32/32")}};
  EXPECT_EQ(reserve(wanted), false);
  EXPECT_EQ(reserve({"printers", {prefix("10.0.0.32/32"), prefix("10.0.0.0/28")}}), true) << "the same, was there";
  EXPECT_EQ(code_of(reserve({"printers", {prefix("10.0.0.0/28")}})), ErrorCode::already_exists);
  EXPECT_EQ(code_of(reserve({"none", {}})), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(reserve({"No_name", wanted.cidrs})), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(reserve({"pool-printers", wanted.cidrs})), ErrorCode::invalid_argument) << "a pool's own";
  EXPECT_EQ(remove("nobody"), ErrorCode::not_found);
  EXPECT_EQ(remove("pool-a"), ErrorCode::refused_for_safety) << "it keeps the gateway";
  EXPECT_EQ(remove("printers"), std::nullopt);
  EXPECT_EQ(reg.get(reservation_key("printers")), nullptr);
}

TEST_F(PoolChanges, ManyBlocksGoInBatchesAndThePoolBehindThem) {
  make("10.0.0.0/23");
  for (std::uint64_t i = 0; i < kDeleteBlocksMax + 1; ++i) claim(prefix("10.0.0.0/23").subprefix(i, 28));
  disable();
  const auto first = drop();
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->complete);
  EXPECT_EQ(count(Kind::block), 1U);
  const auto second = drop();
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->complete);
  EXPECT_EQ(count(Kind::block), 0U);
  EXPECT_NE(reg.get(pool_key("a")), nullptr);
  const net::Prefix nothing = prefix("10.0.1.240/28"), elsewhere = prefix("10.0.2.0/28");
  for (const net::Prefix& cidr : {nothing, elsewhere}) {
    reg.apply({to_put(affinity_key(kNode, cidr), Affinity{kNode, cidr, {}, false}, Guard::none)});
  }
  const auto last = drop();
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->complete);
  EXPECT_EQ(reg.get(pool_key("a")), nullptr);
  EXPECT_EQ(count(Kind::affinity), 1U) << "a claim on nothing goes with the pool, another pool's stays";
  EXPECT_EQ(count(Kind::high_water_mark), kDeleteBlocksMax + 1);
}

/// What pools/split.txt does not say.
TEST_F(PoolChanges, APoolIsSplitByItsCidrIntoAsManyPartsAsACommitHolds) {
  make("10.0.0.0/20");
  for (const std::uint64_t parts : {1, 64}) {
    EXPECT_EQ(code_of(split({"a", parts, {}})), ErrorCode::invalid_argument) << parts;
  }
  const auto done = split({"10.0.0.0/20", 32, {}});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->parts.size(), 32U);
  EXPECT_EQ(count(Kind::pool), 32U);
  EXPECT_EQ(count(Kind::reservation), 32U);
}

}  // namespace
}  // namespace croft::core
