#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ipam/decide/test_overlap_world.h"

// Another program changes the length of a pool's blocks, makes blocks and deletes those that are empty to it.

namespace croft::core {
namespace {

using namespace std::chrono_literals;
using net::Address;
using net::Prefix;

/// A block of the pool's new length, made by a program that does not look, over one with holders.
TEST(ForeignLengths, NothingIsTakenFromANewBlockOverOldHolders) {
  for (const auto& [before, after, keys_at_hand, on] :
       {std::tuple(27, 28, false, "node-a"), std::tuple(27, 28, true, "node-a"), std::tuple(28, 27, false, "node-a"),
        std::tuple(28, 26, true, "node-a"), std::tuple(27, 28, false, "node-c"), std::tuple(27, 28, true, "node-c"),
        std::tuple(28, 27, true, "node-c")}) {
    SCOPED_TRACE(std::to_string(before) + " " + std::to_string(after) + " " + on);
    OverlapWorld world("10.79.0.0/26", before, keys_at_hand);
    std::set<Address> live;
    for (int i = 0; i < 4; ++i) live.insert(world.add("c" + std::to_string(i), "node-b").value());
    world.set_length(after);
    world.make_as_another(Prefix::containing(*live.begin(), after), "node-a");
    world.clock.advance(2min);
    for (int i = 0; i < 64; ++i) {
      const auto address = world.add("d" + std::to_string(i), on);
      if (!address) break;
      EXPECT_FALSE(live.contains(*address)) << address->to_string();
    }
    if (on != std::string("node-a")) continue;
    auto exact = world.request("x", "node-a");
    exact.addresses = {*live.begin()};
    EXPECT_TRUE(std::holds_alternative<Refusal>(world.decide(exact).value()));
  }
}

/// A block over one that a cache has as settled, and the length goes back.
TEST(ForeignLengths, WhatIsSettledIsLookedAtAgainUnderANewClaim) {
  OverlapWorld world("10.79.0.0/26", 26, true);
  ASSERT_TRUE(world.add("a", "node-a"));
  world.set_length(28);
  world.make_as_another(prefix("10.79.0.16/28"), "node-b");
  const auto held = world.add("b", "node-b");
  world.set_length(26);
  for (int i = 0; i < 64; ++i) {
    const auto address = world.add("d" + std::to_string(i), "node-a");
    if (!address) break;
    EXPECT_NE(address, held);
  }
}

/// Counted by the boot that sees it, once, in whatever block it rests and however often the block is read anew.
TEST(ForeignLengths, WhatAnotherBootReleasedEnds) {
  for (const auto& [after, keys_at_hand, is_foreign] :
       {std::tuple(28, false, false), std::tuple(28, true, false), std::tuple(28, false, true),
        std::tuple(28, true, true), std::tuple(26, false, true), std::tuple(26, true, false),
        std::tuple(29, false, true)}) {
    SCOPED_TRACE(std::to_string(after) + (keys_at_hand ? " at hand" : "") + (is_foreign ? " foreign" : ""));
    OverlapWorld world("10.79.0.0/27", 27, keys_at_hand);
    world.set_cooldown(4s);
    for (int i = 0; i < 32; ++i) ASSERT_TRUE(world.add("c" + std::to_string(i), "node-a"));
    for (int i = 0; i < 32; ++i) world.del("c" + std::to_string(i));
    world.lose_blocks();
    world.set_length(after);
    world.clock.reboot(0s);
    world.clock.advance(1s);
    if (after < 27)
      world.reg.put(pool_key("a"), [&] {
        Pool pool = *world.reg.get(pool_key("a"));
        pool.cidr = prefix("10.79.0.0/26");
        return pool;
      }());
    if (is_foreign) {
      world.make_as_another(Prefix::containing(address("10.79.0.0"), after), "node-a");
    }
    // Every second somebody asks, in a process that knows nothing of the one before.
    std::set<Address> given;
    int asked = 0;
    for (; asked < 60 && given.size() < 8; ++asked) {
      const auto address = world.add("d" + std::to_string(asked), "node-a");
      if (address) given.insert(*address);
      if (!keys_at_hand) {
        for (const Prefix& block : world.blocks()) world.touch_as_another(block);
      }
      world.clock.advance(1s);
    }
    EXPECT_GE(given.size(), 8U);
    EXPECT_LT(asked, 30);
  }
}

/// However many it is: a node was drained, its large block is empty to Calico, and another boot sees what rests there.
TEST(ForeignLengths, WhatAnotherBootReleasedInALargeBlockEnds) {
  for (const bool is_foreign : {false, true}) {
    SCOPED_TRACE(is_foreign);
    OverlapWorld world("10.79.0.0/22", 22, false);
    world.set_cooldown(4s);
    constexpr int kHeld = 700;
    for (int i = 0; i < kHeld; ++i) ASSERT_TRUE(world.add("c" + std::to_string(i), "node-a"));
    for (int i = 0; i < kHeld; ++i) world.del("c" + std::to_string(i));
    world.lose_blocks();
    world.set_length(26);
    world.reg.put(pool_key("a"), [&] {
      Pool pool = *world.reg.get(pool_key("a"));
      pool.cidr = prefix("10.79.0.0/25");
      return pool;
    }());
    world.clock.reboot(0s);
    world.clock.advance(1s);
    if (is_foreign) world.make_as_another(prefix("10.79.0.0/26"), "node-a");
    int asked = 0;
    while (asked < 60 && !world.add("d" + std::to_string(asked), "node-a")) {
      ++asked;
      world.clock.advance(1s);
    }
    EXPECT_LT(asked, 30);
  }
}

/// Whatever others do to lengths and blocks: what this program gives out is held by nobody and does not cool, and what
/// has cooled comes back.
RC_GTEST_PROP(ForeignLengths, NothingHasTwoHoldersAndWhatCoolsEnds, (bool keys_at_hand)) {
  constexpr auto kCooldown = 60s;
  OverlapWorld world("10.79.0.0/26", *rc::gen::inRange(26, 30), keys_at_hand);
  world.set_cooldown(kCooldown);
  std::map<std::string, Address> live;
  std::map<Address, WallTime> released;
  int next = 0;
  const auto a_node = [] { return "node-" + std::string(1, static_cast<char>('a' + *rc::gen::inRange(0, 3))); };
  const auto is_live = [&](const Address& address) {
    return std::any_of(live.begin(), live.end(), [&](const auto& one) { return one.second == address; });
  };
  const auto log = [](const auto& text) { RC_LOG() << text << "\n"; };
  const auto add = [&] {
    const std::string container = "c" + std::to_string(next++);
    const auto address = world.add(container, a_node());
    log(container + " " + (address ? address->to_string() : "refused"));
    if (!address) return false;
    RC_ASSERT(!is_live(*address));
    const auto before = released.find(*address);
    const bool has_rested = before == released.end() || world.clock.now().wall - before->second >= kCooldown;
    RC_ASSERT(has_rested);
    live[container] = *address;
    return true;
  };
  for (int step = 0; step < 40; ++step) {
    switch (*rc::gen::weightedElement<int>({{8, 0}, {5, 1}, {2, 2}, {2, 3}, {2, 4}, {1, 5}, {2, 6}, {3, 7}})) {
      case 0:
        static_cast<void>(add());
        break;
      case 1: {
        if (live.empty()) break;
        const auto one = std::next(live.begin(), *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(live)));
        log("del " + one->first);
        world.del(one->first);
        released[one->second] = world.clock.now().wall;
        live.erase(one);
        break;
      }
      case 2:
        world.set_length(*rc::gen::inRange(26, 30));
        log("length " + std::to_string(world.reg.get(pool_key("a"))->block_length));
        break;
      case 3: {  // without a look at those of other lengths
        const int length = world.reg.get(pool_key("a"))->block_length;
        const Prefix cidr =
            prefix("10.79.0.0/26")
                .subprefix(*rc::gen::inRange(std::uint64_t{0}, std::uint64_t{1} << (length - 26)), length);
        log("make " + cidr.to_string());
        if (world.reg.get(block_key(cidr)) == nullptr) world.make_as_another(cidr, a_node());
        break;
      }
      case 4:
        log("lose");
        world.lose_empty_block();
        break;
      case 5:
        log("reboot");
        world.clock.reboot(std::chrono::seconds{*rc::gen::inRange(0, 90)});
        break;
      case 6:
        log("touch");
        for (const Prefix& block : world.blocks()) world.touch_as_another(block);
        break;
      default:
        log("advance");
        world.clock.advance(std::chrono::seconds{*rc::gen::inRange(1, 40)});
    }
  }
  // All is given up, and the other program deletes the blocks. One look later, and one cooldown, it can be had.
  for (const auto& [container, address] : live) world.del(container);
  world.lose_blocks();
  world.set_length(26);
  static_cast<void>(world.add("look", "node-a"));
  world.del("look");
  world.clock.advance(kCooldown + 1s);
  for (const Prefix& block : world.blocks()) world.touch_as_another(block);
  for (int i = 0; i < 32; ++i) RC_ASSERT(world.add("last" + std::to_string(i), "node-a").has_value());
}

}  // namespace
}  // namespace croft::core
