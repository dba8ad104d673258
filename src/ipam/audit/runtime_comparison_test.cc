#include "ipam/audit/runtime_comparison.h"

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "base/time_text.h"
#include "register/test_register.h"

namespace croft::core::audit {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using Attributes = std::map<std::string, std::string>;

const char* const kCidr = "10.0.0.0/28";

Instant some_time() {
  Instant now = ManualClock().now();
  now.wall = WallTime(seconds(1'700'000'000));
  return now;
}

/// A block of node-a in which one address is held.
Block held_block(const std::string& handle_id, Attributes attributes, const char* text = "10.0.0.3") {
  Block block = new_block(prefix(kCidr), kNode, ManualClock().now(), {});
  return take_address(std::move(block), address(text), Attribute{handle_id, std::move(attributes), {}, {}})->block;
}

// ---------------------------------------------------------------- GC

TEST(Garbage, OnlyWhatIsCertainlyOfThisNetworkAndNodeAndNoLongerValidGoes) {
  const Instant now = some_time();
  const auto ago = [&](int age) { return go_utc_text(now.wall - seconds(age)); };
  const auto of = [&](const char* node, const char* interface_name, int age) {
    Attributes attributes{{kNodeKey, node}, {kTimestampKey, ago(age)}};
    if (*interface_name != '\0') attributes[kInterfaceKey] = interface_name;
    return attributes;
  };
  struct Row {
    const char* what;
    const char* handle;
    Attributes attributes;
    bool leaked;
    std::size_t young;
  };
  const Row rows[] = {
      {"not valid", "net.gone", of("node-a", "eth0", 60), true, 0},
      {"valid", "net.c", of("node-a", "eth0", 60), false, 0},
      {"another interface of a valid container", "net.c", of("node-a", "eth1", 60), true, 0},
      {"a valid container, interface not recorded", "net.c", of("node-a", "", 60), false, 0},
      {"another container, interface not recorded", "net.gone", of("node-a", "", 60), true, 0},
      {"another network", "other.gone", of("node-a", "eth0", 60), false, 0},
      {"another node", "net.gone", of("node-b", "eth0", 60), false, 0},
      {"node not recorded", "net.gone", {{kTimestampKey, ago(60)}, {kInterfaceKey, "eth0"}}, false, 0},
      {"an owner that may be of net or of net.x", "net.x.gone", of("node-a", "", 60), false, 0},
      {"no owner", "ipip-tunnel-addr-node-a", of("node-a", "", 60), false, 0},
      {"young", "net.gone", of("node-a", "eth0", 59), false, 1},
      {"of a time to come", "net.gone", of("node-a", "eth0", -1), false, 1},
      {"of unknown age", "net.gone", {{kNodeKey, "node-a"}, {kInterfaceKey, "eth0"}}, false, 1},
  };
  for (const Row& row : rows) {
    Garbage garbage;
    const Block block = held_block(row.handle, row.attributes);
    add_garbage(block, {"net", "node-a"}, {{"c", "eth0"}}, now, garbage);
    EXPECT_EQ(garbage.leaked.size(), row.leaked ? 1U : 0U) << row.what;
    EXPECT_EQ(garbage.kept_young, row.young) << row.what;
    if (garbage.leaked.empty()) continue;
    // A late release must not free a successor.
    EXPECT_EQ(garbage.leaked[0].address, address("10.0.0.3")) << row.what;
    EXPECT_EQ(garbage.leaked[0].handle_id, row.handle) << row.what;
    EXPECT_EQ(garbage.leaked[0].sequence_number, sequence_of(block, net::Ordinal(3))) << row.what;
  }
}

TEST(Garbage, WhatCoolsIsHeldByNobody) {
  const Instant now = some_time();
  Block block = held_block("net.gone", {{kNodeKey, "node-a"}, {kTimestampKey, go_utc_text(now.wall - seconds(60))}});
  const net::Ordinal ordinals[] = {net::Ordinal(3)};
  block = release(std::move(block), ordinals, Cooldowns(seconds(30), seconds(0)), now);
  Garbage garbage;
  add_garbage(block, {"net", "node-a"}, {}, now, garbage);
  EXPECT_TRUE(garbage.leaked.empty());
}

// ---------------------------------------------------------------- CHECK

TEST(CheckAttachment, BothSidesMustAgreeAboutWhatLiesInAPool) {
  using Addresses = std::vector<net::Address>;
  const net::Address one = address("10.0.0.3"), two = address("10.0.0.4"), outside = address("192.0.2.1");
  struct Row {
    const char* what;
    Addresses held, expected;
    const char* missing;  ///< part of the error; nullptr: it is well
  };
  const Row rows[] = {{"nothing held", {}, {}, "no address is recorded"},
                      {"nothing held of what is expected", {}, {one}, "no address is recorded"},
                      {"nothing expected", {one}, {}, nullptr},
                      {"the same", {one, two}, {two, one}, nullptr},
                      {"not held", {one}, {one, two}, "10.0.0.4 is in prevResult but not recorded"},
                      {"not expected", {one, two}, {one}, "10.0.0.4 is recorded"},
                      {"of another plugin", {one}, {one, outside}, nullptr}};
  Pool pool;
  pool.cidr = prefix("10.0.0.0/24");
  for (const Row& row : rows) {
    const auto done = check_attachment({"net", "c", "eth0"}, row.held, row.expected, {pool});
    EXPECT_EQ(done.has_value(), row.missing == nullptr) << row.what;
    if (done) continue;
    EXPECT_EQ(done.error().code, ErrorCode::not_found) << row.what;
    EXPECT_THAT(done.error().message, HasSubstr(row.missing == nullptr ? "" : row.missing)) << row.what;
  }
}

TEST(HeldAddresses, AreThoseOfTheBlocksThatTheHandleNames) {
  TestRegister reg;
  const Owner owner{"net", "c", "eth0"};
  const auto held = [&] { return reg.decided(held_addresses, owner); };
  EXPECT_TRUE(held()->empty());
  reg.put(block_key(prefix(kCidr)), held_block("net.c", {{kInterfaceKey, "eth0"}}));
  EXPECT_TRUE(held()->empty()) << "no handle names it";
  reg.put(handle_key("net.c"), Handle{"net.c", {{kCidr, 1}, {"10.9.0.0/28", 1}}, false, {}});
  EXPECT_THAT(*held(), ElementsAre(address("10.0.0.3"))) << "a block that is gone holds nothing";
}

// ---------------------------------------------------------------- STATUS

TEST(Status, WhatKeepsEveryNodeFromAddressesMakesNoneUnready) {
  struct Row {
    ErrorCode code;
    bool fail_when_full, ready;
  };
  const Row rows[] = {{ErrorCode::exhausted, false, true},
                      {ErrorCode::exhausted, true, false},
                      {ErrorCode::corrupt, false, true},
                      {ErrorCode::corrupt, true, false},
                      {ErrorCode::newer_version, false, true},
                      {ErrorCode::newer_version, true, false},
                      {ErrorCode::no_pool, false, false},
                      {ErrorCode::no_pool, true, false},
                      {ErrorCode::refused_by_configuration, false, false}};
  for (const Row& row : rows) {
    const auto why = why_not_ready(Refusal{row.code, "x", {}}, row.fail_when_full);
    EXPECT_EQ(!why, row.ready) << name_of(row.code) << row.fail_when_full;
    if (why) {
      EXPECT_EQ(why->code, row.code);
    }
  }
  EXPECT_FALSE(why_not_ready(Assigned{}, true));
}

}  // namespace
}  // namespace croft::core::audit
