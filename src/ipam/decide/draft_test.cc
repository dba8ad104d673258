#include "ipam/decide/draft.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/pool_changes.h"
#include "register/address_claims.h"
#include "register/pool.h"
#include "register/test_register.h"

namespace croft::core {

namespace {

using net::Address;
using net::Prefix;

class OnePool : public testing::Test {
 protected:
  [[nodiscard]] PoolSpec spec(GatewayChoice::Kind gateway = GatewayChoice::Kind::first_address) const {
    PoolSpec spec;
    spec.name = "a";
    spec.cidr = Prefix::parse("10.79.0.0/28").value();
    spec.gateway = GatewayChoice{gateway, {}};
    spec.cooldown = std::chrono::seconds{0};
    return spec;
  }
  PoolCreated create(GatewayChoice::Kind gateway = GatewayChoice::Kind::first_address) {
    return reg_.decided(plan_create_pool, spec(gateway)).value();
  }
  /// As `croft record remove` does with a damaged one.
  void remove_reservation() { reg_.apply({to_delete(reservation_key("pool-a"), Guard::none)}); }
  [[nodiscard]] bool has_reservation() const { return reg_.get(reservation_key("pool-a")) != nullptr; }
  std::optional<Address> add(const std::string& container) {
    AssignRequest request;
    request.owner = {"net", container, "eth0"};
    request.node = kNode;
    const auto answer = reg_.decided(plan_assign, request, clock_.now());
    const auto* assigned = answer ? std::get_if<Assigned>(&*answer) : nullptr;
    return assigned != nullptr ? std::optional(assigned->addresses.front().address) : std::nullopt;
  }
  std::set<Address> fill() {
    std::set<Address> given;
    while (const auto one = add("c" + std::to_string(given.size()))) given.insert(*one);
    return given;
  }

  ManualClock clock_;
  TestRegister reg_;
};

TEST_F(OnePool, KeepsItsGatewayAndEndsWithoutTheReservation) {
  for (const bool foreign : {false, true}) {
    reg_ = TestRegister();
    reg_.foreign_writers = foreign;
    create();
    remove_reservation();
    const auto given = fill();
    EXPECT_EQ(given.size(), 13U);
    for (const char* kept : {"10.79.0.0", "10.79.0.1", "10.79.0.15"})
      EXPECT_FALSE(given.contains(address(kept))) << kept;
  }
}

TEST_F(OnePool, CreatedAgainGetsItsReservationBack) {
  create();
  const Reservation before = *reg_.get(reservation_key("pool-a"));
  remove_reservation();
  EXPECT_TRUE(create().existed_before);
  ASSERT_TRUE(has_reservation());
  EXPECT_EQ(*reg_.get(reservation_key("pool-a")), before);
}

/// A damaged one is not absent: the operator removes it first.
TEST_F(OnePool, CreatedAgainLeavesADamagedReservation) {
  create();
  reg_.damage(reservation_key("pool-a"));
  EXPECT_TRUE(create().existed_before);
  EXPECT_FALSE(has_reservation());
}

/// It may be another program's, which hands out its first and last address.
TEST_F(OnePool, WithoutAGatewayBesideForeignWritersStaysAsItIs) {
  reg_.foreign_writers = true;
  create(GatewayChoice::Kind::none);
  remove_reservation();
  EXPECT_TRUE(create(GatewayChoice::Kind::none).existed_before);
  EXPECT_FALSE(has_reservation());
  EXPECT_EQ(fill().size(), 16U);
}

class DeletedBlock : public OnePool {
 protected:
  DeletedBlock() {
    create(GatewayChoice::Kind::none);
    cidr_ = Prefix::parse("10.79.0.0/28").value();
    Block block = new_block(cidr_, kNode, clock_.now(), SequenceNumber(std::uint64_t{1} << 62));
    block.deleted = true;
    number_ = block.sequence_number;
    reg_.put(block_key(cidr_), block);
  }
  Prefix cidr_;
  SequenceNumber number_;
};

TEST_F(DeletedBlock, MayBeClaimed) {
  const auto outcome = reg_.decided(plan_claim_affinity, {kNode.type, "node-b"}, cidr_, clock_.now());
  EXPECT_EQ(outcome.value(), ClaimOutcome::claimed);
  EXPECT_FALSE(reg_.get(block_key(cidr_))->deleted);
  EXPECT_GT(reg_.get(block_key(cidr_))->sequence_number, number_);
}

/// Nothing is given out of it, and nothing beside it.
TEST_F(DeletedBlock, WithHoldersIsDamaged) {
  Block block = new_block(cidr_, kNode, clock_.now(), {});
  block = take_address(block, address("10.79.0.3"), Attribute{"net.c9", {}, {}, {}})->block;
  block.deleted = true;
  reg_.put(block_key(cidr_), block);
  EXPECT_FALSE(add("c0"));
  EXPECT_EQ(*reg_.get(block_key(cidr_)), block);
}

/// `croft record remove` asks for --force where this says something.
TEST(Records, WhatSomebodyLivesByIsNotRemovedWithoutAWord) {
  for (const Kind kind : {Kind::block, Kind::reservation, Kind::node, Kind::ipam_config}) {
    EXPECT_NE(loss_without(kind), "") << static_cast<int>(kind);
  }
  for (const Kind kind : {Kind::vacancy, Kind::affinity, Kind::handle}) {
    EXPECT_EQ(loss_without(kind), "") << static_cast<int>(kind);
  }
}

using net::Prefix;
using testing::ElementsAre;
using testing::HasSubstr;

/// The claims of a register with a pool 10.1.0.0/24 and blocks in it and beside it.
class StrayBlocks : public testing::Test {
 protected:
  StrayBlocks() {
    Pool pool;
    pool.name = "a";
    pool.cidr = prefix("10.1.0.0/24");
    pool.block_length = 26;
    reg_.put(pool_key("a"), pool);
    for (const char* cidr : {"10.1.0.64/26", "10.79.0.192/26", "fd00:79::40/122"}) {
      reg_.put(block_key(prefix(cidr)), new_block(prefix(cidr), std::nullopt, ManualClock().now(), {}));
    }
  }
  template <class Ask>
  auto ask(Ask question) {
    using Answer = decltype(question(std::declval<const AddressClaims&>()));
    const auto plan = reg_.plan<Answer>([&](const Snapshot& s) -> Step<Answer> {
      Reader reader(s);
      const AddressClaims claims(reader);
      if (!reader.is_all_read()) return reader.missing();
      return Plan<Answer>{question(claims), {}};
    });
    return plan->answer;
  }
  TestRegister reg_;
};

TEST_F(StrayBlocks, ClaimTheirAddressesAgainstNodeRangesAndServices) {
  const auto cluster = ask([](const AddressClaims& c) { return c.against_cluster_cidr(prefix("10.79.0.0/22")); });
  EXPECT_THAT(cluster.value_or(""), HasSubstr("block 10.79.0.192/26 of a pool that is gone"));
  EXPECT_EQ(ask([](const AddressClaims& c) { return c.against_cluster_cidr(prefix("10.80.0.0/22")); }), std::nullopt);
  const auto services = ask([](const AddressClaims& c) { return c.against_services(prefix("10.79.0.192/27")); });
  EXPECT_THAT(services.value_or(""), HasSubstr("block 10.79.0.192/26"));
  EXPECT_TRUE(ask([](const AddressClaims& c) { return c.against_services(prefix("fd00:79::/112")); }));
  // A node range configured before the pool went keeps off them too; what lies in a pool is the pool's.
  EXPECT_THAT(ask([](const AddressClaims& c) { return c.prefixes_kept_from_nodes(); }),
              ElementsAre(prefix("10.1.0.0/24"), prefix("10.79.0.192/26"), prefix("fd00:79::40/122")));
}

/// Whatever its length, and whatever lies under its name.
TEST_F(StrayBlocks, ABlockOfAnyLengthIsTakenWhole) {
  for (const char* cidr : {"10.0.0.0/8", "::/0"}) reg_.put(block_key(prefix(cidr)), Block{});
  EXPECT_TRUE(ask([](const AddressClaims& c) { return c.against_cluster_cidr(prefix("10.80.0.0/22")); }));
  EXPECT_TRUE(ask([](const AddressClaims& c) { return c.against_services(prefix("fd00:80::/112")); }));
  PoolSpec spec;
  spec.name = "b";
  spec.cidr = prefix("10.90.0.0/24");
  const auto created = reg_.decided(plan_create_pool, spec);
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("block 10.0.0.0/8"));
}

using namespace std::chrono_literals;

PoolSpec spec(const char* cidr) { return {"a", prefix(cidr), {}, {}, {}, {}}; }

GatewayChoice given(const char* gateway) { return {GatewayChoice::Kind::given, address(gateway)}; }

TEST(Pool, DefaultsAreCalicos) {
  const Pool v4 = make_pool(spec("10.1.0.0/16")).value();
  EXPECT_EQ(v4.block_length, 26);
  EXPECT_EQ(v4.gateway, address("10.1.0.1"));
  EXPECT_EQ(v4.cooldown, 30s);
  EXPECT_EQ(v4.node_selector, "all()");
  EXPECT_FALSE(v4.disabled);
  EXPECT_EQ(make_pool(spec("fd00::/64"))->block_length, 122);
}

struct Refused {
  const char* cidr;
  std::optional<int> block_length;
  std::optional<GatewayChoice> gateway;
  const char* text;
};

class PoolRefused : public testing::TestWithParam<Refused> {};

TEST_P(PoolRefused, NamesTheFieldAndTheRemedy) {
  PoolSpec s = spec(GetParam().cidr);
  s.block_length = GetParam().block_length;
  s.gateway = GetParam().gateway;
  const auto pool = make_pool(s);
  ASSERT_FALSE(pool) << GetParam().cidr;
  EXPECT_EQ(pool.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(pool.error().message, HasSubstr(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    Table, PoolRefused,
    testing::Values(Refused{"10.1.0.0/16", 19, {}, "blockSize 19"}, Refused{"10.1.0.0/16", 33, {}, "20 to 32 for IPv4"},
                    Refused{"fd00::/64", 115, {}, "116 to 128 for IPv6"},
                    Refused{"10.1.0.0/28", 26, {}, "larger than the pool"},
                    Refused{"10.1.0.0/16", {}, given("10.2.0.1"), "outside 10.1.0.0/16"},
                    Refused{"10.1.0.0/16", {}, given("fd00::1"), "outside"},
                    Refused{"10.1.0.0/16", {}, given("10.1.0.0"), "network or broadcast"},
                    Refused{"10.1.0.0/16", {}, given("10.1.255.255"), "network or broadcast"},
                    Refused{"10.1.0.0/31", {}, {}, "too small"}, Refused{"10.1.0.0/32", {}, {}, "too small"},
                    Refused{"fd00::/128", {}, {}, "too small"}, Refused{"fd00::/127", {}, {}, "too small"},
                    Refused{"169.254.1.0/24", {}, {}, "link-local"}, Refused{"fe80::/64", {}, {}, "link-local"},
                    Refused{"0.0.0.0/0", {}, {}, "link-local"}, Refused{"127.0.0.0/8", {}, {}, "loopback"},
                    Refused{"127.9.0.0/24", {}, {}, "loopback"}, Refused{"224.0.0.0/4", {}, {}, "multicast"},
                    Refused{"239.1.0.0/16", {}, {}, "multicast"}, Refused{"0.1.0.0/16", {}, {}, "unspecified"},
                    Refused{"ff05::/64", {}, {}, "multicast"}, Refused{"::/112", {}, {}, "unspecified"},
                    Refused{"::/120", {}, {}, "loopback"}));

/// Without a gateway there is no network around one or two addresses: each can be given.
TEST(Pool, OfOneOrTwoAddressesEachCanBeGiven) {
  for (const char* cidr : {"172.16.2.90/32", "172.16.2.90/31", "fd00::5/128", "fd00::4/127"}) {
    PoolSpec small = spec(cidr);
    small.gateway = GatewayChoice{GatewayChoice::Kind::none, {}};
    const auto pool = make_pool(small);
    ASSERT_TRUE(pool) << pool.error().message;
    EXPECT_TRUE(reservation_for(*pool).cidrs.empty());
    small.gateway = given(cidr[0] == 'f' ? "fd00::5" : "172.16.2.91");
    EXPECT_FALSE(make_pool(small));
  }
}

TEST(Pool, CooldownHasBounds) {
  PoolSpec s = spec("10.1.0.0/16");
  s.cooldown = 1200s;
  EXPECT_TRUE(make_pool(s));
  s.cooldown = 1201s;
  EXPECT_THAT(make_pool(s).error().message, HasSubstr("cooldownSeconds 1201"));
  s.cooldown = -1s;
  EXPECT_FALSE(make_pool(s));
}

TEST(Pool, NamesAreKubernetesNames) {
  for (const char* good : {"a", "default-ipv4-ippool", "a.b", "0"}) EXPECT_TRUE(check_pool_name(good)) << good;
  for (const std::string& bad : {std::string(""), std::string("A"), std::string("../x"), std::string("a b"),
                                 std::string("-a"), std::string("a."), std::string("a\0b", 3), std::string("a\n"),
                                 std::string(254, 'a'), std::string("p\xd0\xbe\xd0\xbel")}) {
    EXPECT_FALSE(check_pool_name(bad)) << bad;
  }
}

TEST(Pool, DisagreesOnlyInWhatWasSaid) {
  PoolSpec s = spec("10.1.0.0/16");
  const Pool pool = make_pool(s).value();
  EXPECT_EQ(contradictions_between(pool, s), "");
  s.block_length = 28;
  s.gateway = GatewayChoice{GatewayChoice::Kind::none, {}};
  s.cooldown = 5s;
  EXPECT_EQ(
      contradictions_between(pool, s),
      "blockSize: the pool has 26, not 28; gateway: the pool has 10.1.0.1, not none; cooldownSeconds: the pool has 30, "
      "not 5");
  EXPECT_THAT(contradictions_between(pool, spec("10.2.0.0/16")), HasSubstr("cidr: the pool has 10.1.0.0/16"));
}

TEST(Refusal, OfManyPoolsThoseWithOneReasonAreToldTogether) {
  Refusal refusal{ErrorCode::exhausted, "no address", {}};
  for (int i = 0; i < 500; ++i) {
    const std::string name = "p" + std::to_string(i);
    refusal.considered.push_back({name, prefix("10.1.0.0/24"), i == 2 ? "disabled" : "full"});
  }
  EXPECT_EQ(to_error(refusal).details,
            "pools p0 (10.1.0.0/24), p1 (10.1.0.0/24), p3 (10.1.0.0/24) and 496 more: full; "
            "pool p2 (10.1.0.0/24): disabled");
}

/// Each pool's name may be as long as a name may be, and its reservation has one that may be too.
TEST(Pool, TheReservationOfALongNameHasANameOfItsOwn) {
  const std::string longest(kPoolNameBytesMax, 'k'), fits(kPoolNameBytesMax - 5, 'k');
  EXPECT_EQ(reservation_name_of(fits), "pool-" + fits);
  std::set<std::string> names;
  for (const std::string& pool :
       {fits, fits + "k", longest, longest.substr(0, 252) + "j", std::string(231, 'k') + std::string(21, '.') + "k"}) {
    const std::string name = reservation_name_of(pool);
    EXPECT_TRUE(check_pool_name(name)) << name;
    EXPECT_EQ(name.find(".-"), name.npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(Pool, AReservationIsAPoolsByItsNameAndWhatItKeeps) {
  for (const char* cidr : {"10.1.0.0/24", "10.1.0.0/30", "fd00::/64"}) {
    const Reservation made = reservation_for(make_pool(spec(cidr)).value());
    EXPECT_EQ(pool_of_reservation(made), "a") << cidr;
    Reservation other = made;
    other.name = "host-local-10-1-0-0-24";
    EXPECT_FALSE(pool_of_reservation(other));
    other = made;
    other.cidrs.push_back(prefix("10.9.0.0/24"));
    EXPECT_FALSE(pool_of_reservation(other)) << cidr;
  }
  // Each gateway of before is one more.
  const auto all = {prefix("10.1.0.0/32"), prefix("10.1.0.1/32"), prefix("10.1.0.2/32"), prefix("10.1.0.9/32"),
                    prefix("10.1.0.255/32")};
  EXPECT_EQ(pool_of_reservation({"pool-a", all, {}}), "a");
  EXPECT_FALSE(pool_of_reservation({"pool-a", {prefix("10.1.0.7/32"), prefix("10.1.0.9/32")}, {}}));
  EXPECT_FALSE(pool_of_reservation({"pool-a", {}, {}}));
}

}  // namespace

}  // namespace croft::core
