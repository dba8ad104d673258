#include "ipam/decide/node_changes.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ipam/decide/heed_wishes.h"
#include "ipam/decide/pool_changes.h"
#include "register/test_register.h"

namespace croft::core {

namespace {

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
    const auto done = reg.decide<Node>([&](const Snapshot& s) { return plan_label_node(s, "node-a", row.changes); });
    ASSERT_EQ(done.has_value(), !row.error) << row.what;
    if (done) {
      EXPECT_EQ(done->labels, row.labels) << row.what;
      EXPECT_EQ(*reg.get(node_key("node-a")), *done) << row.what;
    } else {
      EXPECT_EQ(done.error().code, *row.error) << row.what;
    }
  }
}

TEST(NodeChanges, ADeletedNodeIsGone) {
  TestRegister reg;
  Node node;
  node.name = "node-a";
  reg.put(node_key("node-a"), node);
  for (const bool there : {true, false}) {
    const auto done = reg.decide<bool>([&](const Snapshot& s) { return plan_delete_node(s, "node-a"); });
    ASSERT_TRUE(done);
    EXPECT_EQ(*done, there);
    EXPECT_TRUE(reg.records().empty());
  }
}

TEST(ConfigChanges, AreCheckedAsAWhole) {
  struct Row {
    const char* what;
    ConfigChange change;
    std::optional<ErrorCode> error;
  };
  const auto change = [](std::optional<bool> strict, std::optional<std::uint32_t> blocks,
                         std::optional<std::uint32_t> cooldown) {
    ConfigChange c;
    c.strict_affinity = strict;
    c.max_blocks_per_host = blocks;
    c.ip_cooldown_seconds = cooldown;
    return c;
  };
  const Row rows[] = {
      {"nothing", {}, std::nullopt},
      {"strict with a limit", change(true, 3, {}), std::nullopt},
      {"a limit alone", change({}, 3, {}), ErrorCode::refused_by_configuration},
      {"most blocks", change(true, kMaxBlocksPerHostMax, {}), std::nullopt},
      {"more blocks", change(true, kMaxBlocksPerHostMax + 1, {}), ErrorCode::invalid_argument},
      {"longest cooldown", change({}, {}, kIpCooldownSecondsMax), std::nullopt},
      {"longer cooldown", change({}, {}, kIpCooldownSecondsMax + 1), ErrorCode::invalid_argument},
  };
  for (const Row& row : rows) {
    TestRegister reg;
    const auto done = reg.decide<IpamConfig>([&](const Snapshot& s) { return plan_set_config(s, row.change); });
    ASSERT_EQ(done.has_value(), !row.error) << row.what;
    if (!done) {
      EXPECT_EQ(done.error().code, *row.error) << row.what;
    }
  }
}

using testing::ElementsAre;

net::Address ip(const char* text) { return net::Address::parse(text).value(); }

/// As a configuration asks: pool a of IPv4, an address.
AssignRequest configured() {
  AssignRequest request;
  request.count = {1, 0};
  request.pools.v4 = {asked_pool("a")};
  request.addresses = {ip("10.0.0.9")};
  return request;
}

TEST(HeedWishes, NothingSaidChangesNothing) {
  AssignRequest request = configured();
  ASSERT_TRUE(heed_wishes({}, {}, request));
  EXPECT_EQ(request.pools.v4, configured().pools.v4);
  EXPECT_EQ(request.count.v4, 1U);
  EXPECT_EQ(request.count.v6, 0U);
  EXPECT_EQ(request.addresses, configured().addresses);
}

TEST(HeedWishes, ThePodCountsBeforeItsNamespaceAndThatBeforeTheConfiguration) {
  AnnotatedWishes said;
  said.name_space.pools = {{{asked_pool("of-namespace")}}, {{asked_pool("six-of-namespace")}}};
  said.name_space.families = net::PerFamily<bool>{true, true};
  AssignRequest request = configured();
  ASSERT_TRUE(heed_wishes(said, {}, request));
  EXPECT_THAT(request.pools.v4, ElementsAre(asked_pool("of-namespace")));
  EXPECT_THAT(request.pools.v6, ElementsAre(asked_pool("six-of-namespace")));
  EXPECT_EQ(request.count.v6, 1U);
  said.pod.pools.v4 = {asked_pool("of-pod")};
  said.pod.families = net::PerFamily<bool>{false, true};
  said.pod.addresses = {ip("fd00::9"), ip("10.0.0.9")};
  request = configured();
  ASSERT_TRUE(heed_wishes(said, {}, request));
  EXPECT_THAT(request.pools.v4, ElementsAre(asked_pool("of-pod")));
  EXPECT_THAT(request.pools.v6, ElementsAre(asked_pool("six-of-namespace")));
  EXPECT_EQ(request.count.v4, 0U);
  EXPECT_EQ(request.count.v6, 1U);
  EXPECT_THAT(request.addresses, ElementsAre(ip("10.0.0.9"), ip("fd00::9")));
}

TEST(HeedWishes, WhatTheRuntimeHandedOverStays) {
  AnnotatedWishes said;
  said.pod.pools = {{{asked_pool("x")}}, {{asked_pool("y")}}};
  said.name_space = said.pod;
  said.pod.addresses = {ip("10.0.0.10")};
  said.pod.families = net::PerFamily<bool>{false, true};
  AssignRequest request = configured();
  ASSERT_TRUE(heed_wishes(said, {{false, true}, false, false}, request));
  EXPECT_THAT(request.pools.v4, ElementsAre(asked_pool("a")));
  EXPECT_THAT(request.pools.v6, ElementsAre(asked_pool("y")));
  EXPECT_EQ(request.count.v4, 1U);
  EXPECT_THAT(request.addresses, ElementsAre(ip("10.0.0.9")));
}

TEST(HeedWishes, AddressesAreBounded) {
  AnnotatedWishes said;
  for (std::uint8_t i = 0; i < kWishedAddressesMax; ++i) {
    said.pod.addresses.push_back(ip(("10.0.1." + std::to_string(i)).c_str()));
  }
  AssignRequest request = configured();
  const auto heeded = heed_wishes(said, {}, request);
  ASSERT_FALSE(heeded);
  EXPECT_EQ(heeded.error().code, ErrorCode::invalid_argument);
}

TEST(HeedWishes, SomethingHasToBeAsked) {
  AssignRequest request;
  request.count = {0, 0};
  EXPECT_FALSE(check_something_is_asked(request));
  request.addresses = {ip("10.0.0.9")};
  EXPECT_TRUE(check_something_is_asked(request));
}

}  // namespace

}  // namespace croft::core
