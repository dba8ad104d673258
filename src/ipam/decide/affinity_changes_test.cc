#include "ipam/decide/affinity_changes.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"

namespace croft::core {

namespace {

const char* const kCidr = "10.0.0.0/28";

using testing::ElementsAre;
using testing::IsEmpty;
using Attributes = std::map<std::string, std::string>;

/// A pool of one block, in which a test writes holders past all rules.
class ReleaseOwner : public testing::Test {
 protected:
  ReleaseOwner() {
    const PoolSpec spec{"a", prefix(kCidr), 28, GatewayChoice{GatewayChoice::Kind::none, {}}, std::chrono::seconds(30),
                        {}};
    EXPECT_TRUE(reg.decided(plan_create_pool, spec));
    EXPECT_TRUE(reg.decided(plan_claim_affinity, kNode, prefix(kCidr), clock.now()));
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
    const auto done = reg.decided(plan_release_owner, {"net", "c1", "eth0"}, clock.now());
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

const char* const kBlock = "10.0.0.0/26";

RemovedNode removed(std::uint64_t number) { return {"node-a", {{kBlock, SequenceNumber(number)}}}; }

/// What there is, what is said, what is answered and how many records that writes.
TEST(NodeChanges, RemovedNodesAreNotedOnceAndForgottenAsSeen) {
  struct Row {
    const char* what;
    std::optional<RemovedNode> before;
    RemovedNode said;
    bool noted, forgotten;
  };
  const Row rows[] = {{"new", std::nullopt, removed(5), true, false},
                      {"the same", removed(5), removed(5), false, true},
                      {"more", removed(5), removed(7), true, false},
                      {"less", removed(7), removed(5), false, false}};
  for (const Row& row : rows) {
    TestRegister reg;
    if (row.before) reg.put(removed_node_key("node-a"), *row.before);
    const auto noted = reg.plan<bool>([&](const Snapshot& s) { return plan_note_removed(s, row.said); });
    ASSERT_TRUE(noted) << row.what;
    EXPECT_EQ(noted->answer, row.noted) << row.what;
    EXPECT_EQ(noted->writes.empty(), !row.noted) << row.what;
    const auto forgotten = reg.plan<bool>([&](const Snapshot& s) { return plan_forget_removed(s, row.said); });
    ASSERT_TRUE(forgotten) << row.what;
    EXPECT_EQ(forgotten->answer, row.forgotten) << row.what;
    EXPECT_EQ(forgotten->writes.empty(), !row.forgotten) << row.what;
  }
}

TEST(NodeChanges, LabelsAreSetAndTakenAway) {
  struct Row {
    const char* what;
    bool recorded;
    LabelChanges changes;
    std::optional<ErrorCode> error;
    std::map<std::string, std::string> labels;
  };
  const Row rows[] = {
      {"new node", false, {{"zone", "z1"}}, std::nullopt, {{"zone", "z1"}}},
      {"one more", true, {{"rack", "r1"}}, std::nullopt, {{"rack", "r1"}, {"zone", "z0"}}},
      {"another value", true, {{"zone", "z1"}}, std::nullopt, {{"zone", "z1"}}},
      {"taken away", true, {{"zone", std::nullopt}}, std::nullopt, {}},
      {"no record, nothing to set", false, {{"zone", std::nullopt}}, ErrorCode::not_found, {}},
      {"no label", true, {{"zone", "a b"}}, ErrorCode::invalid_argument, {}},
  };
  for (const Row& row : rows) {
    TestRegister reg;
    Node before;
    before.name = "node-a";
    before.labels = {{"zone", "z0"}};
    if (row.recorded) reg.put(node_key("node-a"), before);
    const auto done = reg.decided(plan_label_node, "node-a", row.changes);
    ASSERT_EQ(done.has_value(), !row.error) << row.what;
    if (done) {
      EXPECT_EQ(done->labels, row.labels) << row.what;
      EXPECT_EQ(*reg.get(node_key("node-a")), *done) << row.what;
    } else {
      EXPECT_EQ(done.error().code, *row.error) << row.what;
    }
  }
}

}  // namespace

}  // namespace croft::core
