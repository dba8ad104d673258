#include "register/pool.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "ipam/decide/refusal.h"

namespace croft::core {
namespace {

using net::Address;
using testing::HasSubstr;
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

TEST(Pool, SmallerThanABlockIsOneBlock) {
  EXPECT_EQ(make_pool(spec("10.1.0.0/28"))->block_length, 28);
  EXPECT_EQ(make_pool(spec("fd00::/126"))->block_length, 126);
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

TEST(Pool, TheSmallestThatWork) {
  EXPECT_TRUE(make_pool(spec("10.1.0.0/30")));
  EXPECT_TRUE(make_pool(spec("fd00::/126")));
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
  EXPECT_EQ(disagreement(pool, s), "");
  s.block_length = 28;
  s.gateway = GatewayChoice{GatewayChoice::Kind::none, {}};
  s.cooldown = 5s;
  EXPECT_EQ(
      disagreement(pool, s),
      "blockSize: the pool has 26, the configuration says 28; gateway: the pool has 10.1.0.1, the configuration says "
      "none; cooldownSeconds: the pool has 30, the configuration says 5");
  EXPECT_THAT(disagreement(pool, spec("10.2.0.0/16")), HasSubstr("cidr: the pool has 10.1.0.0/16"));
}

TEST(Pool, ReservesNetworkGatewayAndBroadcast) {
  EXPECT_EQ(reservation_for(make_pool(spec("10.1.0.0/24")).value()).cidrs,
            (std::vector{prefix("10.1.0.0/32"), prefix("10.1.0.1/32"), prefix("10.1.0.255/32")}));
  EXPECT_EQ(reservation_for(make_pool(spec("fd00::/64")).value()).cidrs,
            (std::vector{prefix("fd00::/128"), prefix("fd00::1/128")}));
  PoolSpec without = spec("10.1.0.0/24");
  without.gateway = GatewayChoice{GatewayChoice::Kind::none, {}};
  EXPECT_EQ(reservation_for(make_pool(without).value()).cidrs,
            (std::vector{prefix("10.1.0.0/32"), prefix("10.1.0.255/32")}));
}

TEST(Refusal, NamesEachPoolConsidered) {
  const Refusal refusal{ErrorCode::exhausted,
                        "no address",
                        {{"a", prefix("10.1.0.0/24"), "full"}, {"b", prefix("10.2.0.0/24"), "disabled"}}};
  EXPECT_EQ(to_error(refusal),
            (Error{ErrorCode::exhausted, "no address", "pool a (10.1.0.0/24): full; pool b (10.2.0.0/24): disabled"}));
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
