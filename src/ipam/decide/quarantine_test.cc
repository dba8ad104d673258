#include "ipam/decide/quarantine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "register/quarantine.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class QuarantineTest : public testing::Test {
 protected:
  QuarantineTest() {
    for (const char* cidr : {"10.0.0.0/29", "fd00::/125"}) {
      const PoolSpec spec{prefix(cidr).first().is_v4() ? "four" : "six",
                          prefix(cidr),
                          prefix(cidr).length(),
                          GatewayChoice{GatewayChoice::Kind::none, {}},
                          std::chrono::seconds(0),
                          {}};
      EXPECT_TRUE(reg.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); }));
    }
  }
  std::vector<AssignedAddress> add(const Owner& owner) {
    AssignRequest request;
    request.owner = owner;
    request.node = kNode;
    request.count = {1, 1};
    const auto done = reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, request, clock.now()); });
    EXPECT_TRUE(done && std::holds_alternative<Assigned>(*done));
    return std::get<Assigned>(*done).addresses;
  }
  std::vector<net::Address> quarantine(const Owner& owner, const std::vector<FoundAlive>& found) {
    const auto done = reg.decide<std::vector<net::Address>>(
        [&](const Snapshot& s) { return plan_quarantine(s, owner, "n1", found, clock.now()); });
    EXPECT_TRUE(done) << done.error().message;
    return done.value_or(std::vector<net::Address>());
  }
  const Attribute* holder(const AssignedAddress& one) const {
    return attribute_of(*reg.get(block_key(one.block)), *net::ordinal_of(one.block, one.address));
  }

  TestRegister reg;
  ManualClock clock;
  const Owner first{"net", "c1", "eth0"}, second{"net", "c2", "eth0"};
};

TEST_F(QuarantineTest, OneFamilyGoesTheOtherStaysAndNobodyGetsWhatWent) {
  for (const std::size_t gone : {std::size_t{0}, std::size_t{1}}) {
    const Owner owner{"net", "c" + std::to_string(gone), "eth0"};
    const auto had = add(owner);
    ASSERT_EQ(had.size(), 2U);
    EXPECT_THAT(quarantine(owner, {{had[gone], "veth1"}}), ElementsAre(had[gone].address));
    const Attribute* now = holder(had[gone]);
    ASSERT_NE(now, nullptr);
    EXPECT_TRUE(is_in_quarantine(*now));
    EXPECT_EQ(now->secondary.find(kDeviceKey)->second, "veth1");
    EXPECT_EQ(now->secondary.find(kNodeKey)->second, "n1");
    const Handle* kept = reg.get(handle_key(quarantine_handle_of(had[gone].address)));
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(kept->blocks.at(had[gone].block.to_string()), 1U);
    const Handle* handle = reg.get(handle_key(handle_of(owner)));
    ASSERT_NE(handle, nullptr);
    EXPECT_EQ(handle->blocks.size(), 1U);
    const auto has = add(owner);
    EXPECT_EQ(has[1 - gone].address, had[1 - gone].address);
    EXPECT_TRUE(has[1 - gone].held_before);
    EXPECT_NE(has[gone].address, had[gone].address);
    EXPECT_FALSE(has[gone].held_before);
    // Who asks for it by name is told why not.
    AssignRequest named;
    named.owner = second;
    named.node = kNode;
    named.count = {0, 0};
    named.addresses = {had[gone].address};
    const auto refused =
        reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, named, clock.now()); });
    ASSERT_TRUE(refused && std::holds_alternative<Refusal>(*refused));
    EXPECT_THAT(
        std::get<Refusal>(*refused).considered.front().reason,
        testing::HasSubstr("in quarantine since 2026-01-15T10:00:00Z, when an ADD on node n1 found it alive over "
                           "device veth1"));
    // The owner's DEL leaves it where it is.
    const auto released =
        reg.decide<Released>([&](const Snapshot& s) { return plan_release_owner(s, owner, clock.now()); });
    ASSERT_TRUE(released);
    EXPECT_EQ(released->addresses.size(), 2U);
    EXPECT_TRUE(is_in_quarantine(*holder(had[gone])));
  }
}

TEST_F(QuarantineTest, WhatIsTheOwnersNoMoreIsLeftAlone) {
  const auto had = add(first);
  EXPECT_THAT(quarantine(second, {{had[0], "veth1"}}), IsEmpty());
  FoundAlive older{had[0], "veth1"};
  older.assigned.sequence_number = SequenceNumber(had[0].sequence_number.value - 1);
  EXPECT_THAT(quarantine(first, {older}), IsEmpty());
  EXPECT_EQ(holder(had[0])->handle_id, "net.c1");
  ASSERT_TRUE(reg.decide<Released>([&](const Snapshot& s) { return plan_release_owner(s, first, clock.now()); }));
  EXPECT_THAT(quarantine(first, {{had[0], "veth1"}}), IsEmpty());
  EXPECT_EQ(holder(had[0]), nullptr);
}

}  // namespace
}  // namespace croft::core
