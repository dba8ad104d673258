#include "ipam/audit/pool_status.h"

#include <chrono>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ipam/decide/assign.h"

namespace croft::core {
namespace {

using net::Prefix;
using testing::HasSubstr;

PoolFill pool(const char* name, const char* cidr) {
  PoolFill fill;
  fill.pool.name = name;
  fill.pool.cidr = Prefix::parse(cidr).value();
  fill.capacity = net::Count::of(fill.pool.cidr);
  return fill;
}

const Condition& of(const std::vector<Condition>& conditions, const std::string& type) {
  for (const Condition& one : conditions) {
    if (one.type == type) return one;
  }
  throw std::runtime_error(type);
}

std::string said(const PoolStatus& status) {
  std::string text;
  for (const Condition& one : status.conditions) {
    text += (text.empty() ? "" : " ") + one.type + (one.holds ? "" : "=no") + ":" + one.reason;
  }
  return text;
}

TEST(PoolStatus, WhatHoldsOfAPool) {
  auto full = pool("full", "10.0.1.0/30");
  full.held = 2;
  full.cooling = 1;
  full.reserved = 1;
  auto off = pool("off", "fd00::/64");
  off.pool.disabled = true;
  auto kept = pool("kept", "10.0.2.0/24");
  kept.pool.unallocatable = "it is being deleted";
  const auto all = status_of_pools({pool("a", "10.0.0.0/24"), full, off, kept});
  EXPECT_EQ(said(all[0]), "Ready:AddressesFree Disabled=no:EnabledInSpec Exhausted=no:AddressesFree Overlaps=no:Apart");
  EXPECT_EQ(said(all[1]), "Ready=no:Exhausted Disabled=no:EnabledInSpec Exhausted:NoFreeAddress Overlaps=no:Apart");
  EXPECT_EQ(said(all[2]), "Ready=no:Disabled Disabled:DisabledInSpec Exhausted=no:AddressesFree Overlaps=no:Apart");
  EXPECT_EQ(said(all[3]),
            "Ready=no:NotAllocatable Disabled=no:EnabledInSpec Exhausted=no:AddressesFree Overlaps=no:Apart");
  EXPECT_EQ(all[2].use.free().to_string(), "18446744073709551616");
  EXPECT_EQ(all[1].use.free().to_string(), "0");
}

TEST(PoolStatus, APoolIsNearlyFullAndThenFull) {
  auto fill = pool("web", "10.0.0.0/24");
  fill.reserved = 6;
  fill.held = 225;
  EXPECT_EQ(fullness_of(fill), Fullness::room) << "25 of 250 are a tenth";
  EXPECT_EQ(fullness_text(fill), "");
  fill.cooling = 1;
  EXPECT_EQ(fullness_of(fill), Fullness::nearly_full);
  EXPECT_EQ(fullness_text(fill),
            "pool web (10.0.0.0/24) is over 90 % full: 24 of 256 addresses are free for every node, 225 held, 1 "
            "cooling, 6 reserved");
  fill.stranded = 24;
  EXPECT_EQ(fullness_of(fill), Fullness::full) << "no other node gets one";
  EXPECT_THAT(fullness_text(fill), HasSubstr("is full: 0 of 256"));
  EXPECT_THAT(fullness_text(fill), HasSubstr("24 free for the owner of their block alone (strict affinity)"));
  auto off = fill;
  off.pool.disabled = true;
  EXPECT_EQ(fullness_of(off), Fullness::room) << "it is not to give any";
  const auto found = audit_fullness({off, fill, pool("wide", "fd00::/64")});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "pool_full");
  EXPECT_EQ(found[0].subject, "pool web");
}

TEST(PoolStatus, APoolThatNobodyHoldsCoolsDown) {
  auto fill = pool("web", "10.0.0.0/29");
  fill.reserved = 2;
  fill.held = 3;
  fill.cooling = 3;
  fill.cools_until = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 15));
  EXPECT_THAT(fullness_text(fill), HasSubstr("is full: 0 of 8")) << "half of them are of pods";
  fill.held = 2;
  fill.cooling = 4;
  EXPECT_THAT(fullness_text(fill), HasSubstr("; 4 of 6 addresses cool down, and the first is free again at "));
  fill.held = 0;
  fill.cooling = 6;
  const auto found = audit_fullness({fill});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "pool_full");
  EXPECT_EQ(found[0].what,
            "pool web (10.0.0.0/29) cools down: 0 of 8 addresses are free for every node, 0 held, 6 cooling, 2 "
            "reserved; " +
                cooling_text(6, 6, *fill.cools_until));
  EXPECT_THAT(found[0].what,
              HasSubstr("; all 6 addresses cool down, and the first is free again at 2026-01-15T00:00:00Z: "));
  EXPECT_THAT(found[0].remedy, HasSubstr("mend what fails behind Croft"));
}

TEST(PoolStatus, PoolsThatOverlapNameEachOther) {
  const auto all = status_of_pools({pool("inner", "10.0.1.0/24"), pool("v6", "fd00::/64"), pool("outer", "10.0.0.0/16"),
                                    pool("twin", "10.0.1.0/24"), pool("apart", "10.1.0.0/16")});
  EXPECT_THAT(of(all[0].conditions, "Overlaps").message, HasSubstr("10.0.1.0/24 overlaps pool outer (10.0.0.0/16)"));
  EXPECT_THAT(of(all[2].conditions, "Overlaps").message, HasSubstr("10.0.0.0/16 overlaps pool inner (10.0.1.0/24)"));
  EXPECT_THAT(of(all[3].conditions, "Overlaps").message, HasSubstr("overlaps pool inner"));
  EXPECT_FALSE(of(all[1].conditions, "Overlaps").holds);
  EXPECT_FALSE(of(all[4].conditions, "Overlaps").holds);
}

/// Against every pair compared.
RC_GTEST_PROP(PoolStatus, OverlapsAreThoseOfAllPairs, ()) {
  const auto count = *rc::gen::inRange(0, 12);
  std::vector<PoolFill> pools;
  for (int i = 0; i < count; ++i) {
    const bool is_v6 = *rc::gen::arbitrary<bool>();
    const auto byte = *rc::gen::inRange(0, 256);
    const auto length = *rc::gen::inRange(0, 9);
    const auto text = is_v6 ? fmt::format("{:x}00::/{}", byte, length) : fmt::format("{}.0.0.0/{}", byte, length);
    const auto address = net::Address::parse(text.substr(0, text.find('/'))).value();
    pools.push_back(pool(fmt::format("p{}", i).c_str(), Prefix::containing(address, length).to_string().c_str()));
  }
  const auto all = status_of_pools(pools);
  for (std::size_t i = 0; i < pools.size(); ++i) {
    bool overlaps = false;
    for (std::size_t j = 0; j < pools.size(); ++j) {
      overlaps |= i != j && pools[i].pool.cidr.overlaps(pools[j].pool.cidr);
    }
    RC_ASSERT(of(all[i].conditions, "Overlaps").holds == overlaps);
    RC_ASSERT(all[i].use.pool.name == pools[i].pool.name);
  }
}

TEST(PoolStatus, WhatNodeRangesAreCutFrom) {
  NodeRangeOverview seen;
  seen.nodes = 3;
  ClusterCidrUse use;
  use.cluster = {Prefix::parse("10.0.0.0/22").value(), 24};
  use.size = 4;
  use.taken = 3;
  use.excluded = 1;
  seen.use = {use};
  auto status = status_of_node_ranges(seen);
  EXPECT_EQ(status.clusters, (std::vector<NodeRangeStatus::Cluster>{{"10.0.0.0/22", 4, 2, 1}}));
  for (const auto* type : {"Exhausted", "Overlaps"}) EXPECT_FALSE(of(status.conditions, type).holds);
  EXPECT_TRUE(of(status.conditions, "Ready").holds);

  seen.use[0].taken = 4;
  seen.bare = {"oak"};
  seen.collisions = {{{"elm", Prefix::parse("10.0.0.0/24").value()}, {"fir", Prefix::parse("10.0.0.0/25").value()}}};
  status = status_of_node_ranges(seen);
  EXPECT_EQ(of(status.conditions, "Ready").message, "1 node lacks a range; `croft node range list` names them");
  EXPECT_EQ(of(status.conditions, "Exhausted").message, "10.0.0.0/22 is full");
  EXPECT_EQ(of(status.conditions, "Overlaps").message, "10.0.0.0/24 of node elm overlaps 10.0.0.0/25 of node fir");
}

}  // namespace
}  // namespace croft::core
