#include "ipam/decide/release.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/pool_changes.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Attributes = std::map<std::string, std::string>;

const char* const kCidr = "10.0.0.0/28";

/// A pool of one block, in which a test writes holders past all rules.
class ReleaseOldHandle : public testing::Test {
 protected:
  ReleaseOldHandle() {
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
  std::vector<net::Address> release(const std::string& handle_id) {
    const auto done =
        reg.decide<Released>([&](const Snapshot& s) { return plan_release_old_handle(s, handle_id, clock.now()); });
    EXPECT_TRUE(done) << done.error().message;
    return done ? done->addresses : std::vector<net::Address>();
  }
  [[nodiscard]] AddressState state(const char* text) const {
    return state_of(*reg.get(block_key(prefix(kCidr))), *net::ordinal_of(prefix(kCidr), address(text)));
  }

  TestRegister reg;
  ManualClock clock;
};

TEST_F(ReleaseOldHandle, OnlyWhatIsOfTheOldFormGoes) {
  struct Row {
    const char* what;
    const char* handle;
    Attributes attributes;
    bool goes;
  };
  const Row rows[] = {
      {"a pod's", "ns.pod", {{kNamespaceKey, "ns"}, {kPodKey, "pod"}}, true},
      {"another pod's of today's form", "ns.pod", {{kNamespaceKey, "default"}, {kPodKey, "web"}}, false},
      {"a container's, of before there were attributes", "0f3c", {}, true},
      {"a tunnel's", "0f3c", {{kNodeKey, "node-a"}, {"type", "ipipTunnelAddress"}}, false},
      {"half a pod", "ns.pod", {{kPodKey, "pod"}}, false},
  };
  const TestRegister empty = reg;
  for (const Row& row : rows) {
    reg = empty;
    hold("10.0.0.3", row.handle, row.attributes);
    const auto released = release(row.handle);
    if (row.goes) {
      EXPECT_THAT(released, ElementsAre(address("10.0.0.3"))) << row.what;
    } else {
      EXPECT_THAT(released, IsEmpty()) << row.what;
    }
    EXPECT_EQ(state("10.0.0.3"), row.goes ? AddressState::cooling : AddressState::held) << row.what;
    EXPECT_EQ(reg.get(handle_key(row.handle)) == nullptr, row.goes) << row.what;
  }
}

TEST_F(ReleaseOldHandle, WhatElseIsUnderTheHandleStays) {
  hold("10.0.0.3", "ns.pod", {{kNamespaceKey, "ns"}, {kPodKey, "pod"}});
  hold("10.0.0.4", "ns.pod", {{kNamespaceKey, "default"}, {kPodKey, "web"}});
  EXPECT_THAT(release("ns.pod"), ElementsAre(address("10.0.0.3")));
  EXPECT_EQ(state("10.0.0.4"), AddressState::held);
  EXPECT_EQ(reg.get(handle_key("ns.pod"))->blocks.at(kCidr), 1U);
  EXPECT_THAT(release("ns.pod"), IsEmpty());
}

TEST_F(ReleaseOldHandle, NobodysHandleIsASuccess) { EXPECT_THAT(release("ns.pod"), IsEmpty()); }

TEST_F(ReleaseOldHandle, WithoutAHandleNothingElseIsRead) {
  Snapshot snapshot;
  snapshot.set(handle_key("net.c1"), std::nullopt);
  const auto step = plan_release_owner(snapshot, {"net", "c1", "eth0"}, clock.now());
  const auto* plan = std::get_if<Plan<Released>>(&step);
  ASSERT_NE(plan, nullptr) << "it asks for more";
  EXPECT_THAT(plan->writes, IsEmpty());
}

TEST_F(ReleaseOldHandle, WhatAHandleCountsTooManyGoesAndItsBlockIsWrittenAnew) {
  hold("10.0.0.2", "ns.pod", {{kNamespaceKey, "ns"}, {kPodKey, "pod"}});
  Handle handle = *reg.get(handle_key("ns.pod"));
  handle.blocks["10.0.1.0/28"] = 1;  // it does not exist
  handle.blocks[kCidr] = 2;
  reg.put(handle_key("ns.pod"), handle);
  EXPECT_THAT(release("ns.pod"), ElementsAre(address("10.0.0.2")));
  EXPECT_EQ(reg.get(handle_key("ns.pod")), nullptr);
  reg.put(handle_key("ns.pod"), handle);
  const SequenceNumber before = reg.get(block_key(prefix(kCidr)))->sequence_number;
  EXPECT_THAT(release("ns.pod"), IsEmpty());
  EXPECT_EQ(reg.get(handle_key("ns.pod")), nullptr);
  EXPECT_GT(reg.get(block_key(prefix(kCidr)))->sequence_number, before);
}

}  // namespace
}  // namespace croft::core
