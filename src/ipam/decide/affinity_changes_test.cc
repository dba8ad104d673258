#include "ipam/decide/affinity_changes.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {

namespace {

const char* const kCidr = "10.0.0.0/28";

/// A pool of one block, which node-a has; container "c" may hold an address of it.
class AffinityChanges : public testing::Test {
 protected:
  AffinityChanges() {
    PoolSpec spec{"a", prefix(kCidr), 28, GatewayChoice{GatewayChoice::Kind::none, {}}, std::chrono::seconds(30), {}};
    EXPECT_TRUE(reg.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); }));
    EXPECT_EQ(claim(kNode), ClaimOutcome::claimed);
  }
  ClaimOutcome claim(const AffinityOwner& by) {
    return reg.decide<ClaimOutcome>([&](const Snapshot& s) { return plan_claim_affinity(s, by, prefix(kCidr), now()); })
        .value();
  }
  void hold() {
    AssignRequest request;
    request.owner = owner;
    request.node = kNode;
    EXPECT_TRUE(reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, request, now()); }));
  }
  void release() {
    EXPECT_TRUE(reg.decide<Released>([&](const Snapshot& s) { return plan_release_owner(s, owner, now()); }));
  }
  bool free_cooled() {
    return reg.decide<bool>([&](const Snapshot& s) { return plan_free_cooled(s, prefix(kCidr), now()); }).value();
  }
  Instant now() const { return clock.now(); }

  TestRegister reg;
  ManualClock clock;
  Owner owner{"net", "c", "eth0"};
};

TEST_F(AffinityChanges, AReleaseIsAnsweredByWhatIsThere) {
  struct Row {
    const char* what;
    bool held, must_be_empty;
    const char* by;
    std::optional<SequenceNumber> sequence;
    AffinityOutcome outcome;
    bool block_stays;
  };
  const Row rows[] = {
      {"another's", false, true, "node-b", {}, AffinityOutcome::not_there, true},
      {"another block than the one seen", false, true, "node-a", SequenceNumber(1), AffinityOutcome::changed, true},
      {"held", true, true, "node-a", {}, AffinityOutcome::not_empty, true},
      {"held, no matter", true, false, "node-a", {}, AffinityOutcome::released, true},
      {"empty", false, true, "node-a", {}, AffinityOutcome::released, false},
  };
  for (const Row& row : rows) {
    const TestRegister before = reg;
    if (row.held) hold();
    const AffinityRelease wanted{node(row.by), prefix(kCidr), row.must_be_empty, row.sequence};
    const auto done =
        reg.decide<AffinityOutcome>([&](const Snapshot& s) { return plan_release_affinity(s, wanted, now()); });
    ASSERT_TRUE(done) << row.what;
    EXPECT_EQ(*done, row.outcome) << row.what;
    EXPECT_EQ(reg.get(block_key(prefix(kCidr))) != nullptr, row.block_stays) << row.what;
    EXPECT_EQ(reg.get(affinity_key(kNode, prefix(kCidr))) != nullptr, row.outcome != AffinityOutcome::released)
        << row.what;
    reg = before;
  }
}

TEST_F(AffinityChanges, CooldownsThatEndedAreWrittenDownOnce) {
  EXPECT_FALSE(free_cooled());
  hold();
  release();
  EXPECT_FALSE(free_cooled());
  clock.advance(std::chrono::seconds(30));
  EXPECT_TRUE(free_cooled());
  EXPECT_FALSE(free_cooled());
}

TEST_F(AffinityChanges, AHandleIsMendedToWhatItsBlocksSay) {
  struct Row {
    const char* what;
    std::map<std::string, std::uint32_t> said;
    bool mended;
  };
  const Row rows[] = {{"right", {{kCidr, 1}}, false},
                      {"too high", {{kCidr, 3}}, true},
                      {"a block that is not there", {{kCidr, 1}, {"10.0.1.0/28", 2}}, true}};
  hold();
  for (const Row& row : rows) {
    reg.put(handle_key("net.c"), Handle{"net.c", row.said});
    const auto done = reg.decide<bool>([&](const Snapshot& s) { return plan_mend_handle(s, "net.c"); });
    ASSERT_TRUE(done) << row.what;
    EXPECT_EQ(*done, row.mended) << row.what;
    EXPECT_EQ(reg.get(handle_key("net.c"))->blocks, rows[0].said) << row.what;
  }
}

TEST_F(AffinityChanges, AnAddressIsReleasedFromWhomItWasMeant) {
  struct Row {
    const char* what;
    const char* address;
    std::optional<std::string> handle;
    std::size_t released, not_held, mismatched;
  };
  const Row rows[] = {{"free", "10.0.0.9", {}, 0, 1, 0},
                      {"of another", "10.0.0.1", "net.d", 0, 0, 1},
                      {"of this one", "10.0.0.1", "net.c", 1, 0, 0},
                      {"whoever's", "10.0.0.1", {}, 1, 0, 0}};
  hold();
  for (const Row& row : rows) {
    const auto plan = reg.plan<AddressReleases>([&](const Snapshot& s) {
      return plan_release_addresses(s, prefix(kCidr), {{address(row.address), row.handle, {}}}, now());
    });
    ASSERT_TRUE(plan) << row.what;
    EXPECT_EQ(plan->answer.released.size(), row.released) << row.what;
    EXPECT_EQ(plan->answer.not_held.size(), row.not_held) << row.what;
    EXPECT_EQ(plan->answer.mismatched.size(), row.mismatched) << row.what;
    EXPECT_EQ(plan->writes.empty(), row.released == 0) << row.what;
  }
}

using testing::ElementsAre;
using testing::IsEmpty;
using Attributes = std::map<std::string, std::string>;

/// A pool of one block, in which a test writes holders past all rules.
class ReleaseOwner : public testing::Test {
 protected:
  ReleaseOwner() {
    const PoolSpec spec{"a", prefix(kCidr), 28, GatewayChoice{GatewayChoice::Kind::none, {}}, std::chrono::seconds(30),
                        {}};
    EXPECT_TRUE(reg.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); }));
    EXPECT_TRUE(reg.decide<ClaimOutcome>(
        [&](const Snapshot& s) { return plan_claim_affinity(s, kNode, prefix(kCidr), clock.now()); }));
  }
  void hold(const char* text, const std::string& handle_id, Attributes attributes) {
    Block block = *reg.get(block_key(prefix(kCidr)));
    auto taken = take_address(std::move(block), address(text), Attribute{handle_id, std::move(attributes), {}, {}});
    ASSERT_TRUE(taken);
    reg.put(block_key(prefix(kCidr)), std::move(taken->block));
    const Handle* before = reg.get(handle_key(handle_id));
    Handle handle = before != nullptr ? *before : Handle{handle_id, {}, false, {}};
    ++handle.blocks[kCidr];
    reg.put(handle_key(handle_id), std::move(handle));
  }
  std::vector<net::Address> release() {
    const auto done = reg.decide<Released>([&](const Snapshot& s) {
      return plan_release_owner(s, {"net", "c1", "eth0"}, clock.now());
    });
    EXPECT_TRUE(done) << done.error().message;
    return done ? done->addresses : std::vector<net::Address>();
  }

  TestRegister reg;
  ManualClock clock;
};

TEST_F(ReleaseOwner, WithoutAHandleNothingElseIsRead) {
  Snapshot snapshot;
  snapshot.set(handle_key("net.c1"), std::nullopt);
  const auto step = plan_release_owner(snapshot, {"net", "c1", "eth0"}, clock.now());
  const auto* plan = std::get_if<Plan<Released>>(&step);
  ASSERT_NE(plan, nullptr) << "it asks for more";
  EXPECT_THAT(plan->writes, IsEmpty());
}

TEST_F(ReleaseOwner, WhatAHandleCountsTooManyGoesAndItsBlockIsWrittenAnew) {
  hold("10.0.0.2", "net.c1", {{kInterfaceKey, "eth0"}});
  Handle handle = *reg.get(handle_key("net.c1"));
  handle.blocks["10.0.1.0/28"] = 1;  // it does not exist
  handle.blocks[kCidr] = 2;
  reg.put(handle_key("net.c1"), handle);
  EXPECT_THAT(release(), ElementsAre(address("10.0.0.2")));
  EXPECT_EQ(reg.get(handle_key("net.c1")), nullptr);
  reg.put(handle_key("net.c1"), handle);
  const SequenceNumber before = reg.get(block_key(prefix(kCidr)))->sequence_number;
  EXPECT_THAT(release(), IsEmpty());
  EXPECT_EQ(reg.get(handle_key("net.c1")), nullptr);
  EXPECT_GT(reg.get(block_key(prefix(kCidr)))->sequence_number, before);
}

}  // namespace

}  // namespace croft::core
