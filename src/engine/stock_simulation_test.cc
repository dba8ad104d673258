// Nodes, pods, a cloud and accidents, all together, by seeds.

#include <map>
#include <memory>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "engine/test_stock_node.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::WarmState;
namespace warm = core::warm;

/// Three nodes, pods that come and go, a cloud that loses, throttles and is away, addresses that somebody deletes,
/// agents that die anywhere, wall clocks that jump, records that are lost.
void live(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom random(seed);
  const auto below = [&](std::uint64_t limit) { return random.next() % limit; };
  ManualClock clock;
  TestCloud cloud(12);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 1; i <= 3; ++i) {
    nodes.push_back(std::make_unique<Node>(cloud, clock, i));
    nodes.back()->options.marks = {.low = static_cast<std::uint32_t>(below(4)), .high = 4};
    nodes.back()->options.reconcile.missing_grace = 600s;
    nodes.back()->random = SeededRandom(seed * 3 + static_cast<std::uint64_t>(i));
  }
  const auto begin = [&](Node& node) {
    node.begin(below(3) == 0 ? static_cast<std::int64_t>(below(30)) : std::int64_t{1} << 60);
    for (auto& other : nodes) {
      other->peers.keepers.clear();
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i] == other || !nodes[i]->keeper || nodes[i]->life->is_over) continue;
        other->peers.keepers["node-" + std::to_string(i + 1)] = nodes[i]->keeper.get();
      }
    }
  };
  for (auto& node : nodes) begin(*node);
  std::map<std::string, std::pair<std::size_t, net::Address>> holders;
  std::map<net::Address, std::chrono::nanoseconds> rests_until;
  std::set<net::Address> stolen;
  std::set<std::string> unrecorded;  ///< containers of before their node's records were lost, or that older ones name
  std::map<std::size_t, StockView> copies;
  for (int step = 0; step < 150; ++step) {
    const std::size_t which = below(nodes.size());
    Node& node = *nodes[which];
    const std::string container = std::to_string(which) + "-" + std::to_string(below(5));
    const std::uint64_t trouble = below(10);
    cloud.fate = [&, trouble] {
      if (trouble > 4) return CallFate::done;
      return static_cast<CallFate>(below(8) < 5 ? 0 : below(6));
    };
    switch (below(8)) {
      case 0:
      case 1: {
        if (unrecorded.contains(container)) break;  // no runtime adds one twice
        const std::string got = node.add(container);
        if (got.empty()) {
          node.keeper->set_waiting(1);
          break;
        }
        node.keeper->set_waiting(0);
        const net::Address address = net::Address::parse(got).value();
        const auto before = holders.find(container);
        if (before != holders.end()) {
          ASSERT_EQ(before->second.second, address) << "step " << step;
          break;
        }
        // What somebody takes away in the cloud's console, and another node gets, is found out a look later only.
        if (!stolen.contains(address)) {
          for (const auto& [who, what] : holders) {
            ASSERT_NE(what.second, address) << "two holders, step " << step << ", " << who;
          }
          ASSERT_EQ(cloud.owner_of(address), node.mac()) << "step " << step;
        }
        const auto rest = rests_until.find(address);
        if (rest != rests_until.end() && !stolen.contains(address)) {
          ASSERT_LE(rest->second, clock.now().since_boot) << "reused too early, step " << step;
        }
        holders[container] = {which, address};
        break;
      }
      case 2: {
        const auto held = holders.find(container);
        const bool may_be_unrecorded = unrecorded.erase(container) > 0;
        const std::size_t let_go = node.del(container);
        // What an older copy has for a container may be another's by now, and the host uses it as before.
        for (const auto& [who, what] : holders) {
          if (what.first == which && who != container) node.host.used.insert(what.second);
        }
        if (may_be_unrecorded && held != holders.end()) node.host.used.erase(held->second.second);
        if (!may_be_unrecorded) {
          ASSERT_EQ(let_go, held == holders.end() ? 0U : 1U) << "step " << step;
        }
        if (held != holders.end()) {
          rests_until[held->second.second] = clock.now().since_boot + node.options.cooldown;
          holders.erase(held);
        }
        break;
      }
      case 3:
      case 4:
      case 5:
        for (std::size_t i = 0; i < nodes.size(); ++i) {
          for (auto& other : nodes) other->peers.said["node-" + std::to_string(i + 1)] = nodes[i]->counts().free;
        }
        static_cast<void>(node.keeper->step());
        if (node.life->is_over) begin(node);
        break;
      case 6:
        cloud.catch_up();  // no cloud is later than the doubt
        clock.advance(std::chrono::seconds{below(40)});
        if (below(4) == 0) clock.jump_wall(30min * (static_cast<std::int64_t>(below(5)) - 2));
        break;
      default:
        if (below(12) == 0) {
          node.keeper.reset();
          node.lose_records();
          for (const auto& [who, what] : holders) {
            if (what.first == which) unrecorded.insert(who);
          }
          begin(node);
        } else if (copies.contains(which) && below(8) == 0) {
          // Somebody puts an older copy back; the agent begins on it, and the cloud answers.
          node.keeper.reset();
          node.put_back(copies[which]);
          for (const auto& [who, what] : holders) {
            if (what.first == which) unrecorded.insert(who);
          }
          for (const auto& one : copies[which].addresses) {
            if (!one.owner.container_id.empty()) unrecorded.insert(one.owner.container_id);
          }
          rests_until.clear();  // an older copy knows of no rest since
          cloud.fate = [] { return CallFate::done; };
          cloud.catch_up();
          begin(node);
          node.keeper->look_before_serving(Deadline::after(clock.now(), 5s), 1s);
          if (!node.life->is_over) static_cast<void>(node.keeper->step());
          if (node.life->is_over) {
            node.begin();
            node.keeper->look_before_serving(Deadline::after(clock.now(), 5s), 1s);
            static_cast<void>(node.keeper->step());
          }
        } else if (below(6) == 0) {
          copies[which] = node.view();
        } else if (below(10) == 0) {
          // Somebody takes a free one away in the cloud's own console.
          const auto free = node.view().addresses;
          for (const auto& one : free) {
            if (one.state != WarmState::free || cloud.owner_of(one.address) != node.mac()) continue;
            cloud.set_owner(one.address, std::nullopt);
            stolen.insert(one.address);
            break;
          }
        } else {
          begin(node);
        }
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
  cloud.fate = [] { return CallFate::done; };
  cloud.catch_up();
  clock.jump_wall(30min * (static_cast<std::int64_t>(below(5)) - 2));  // and nothing waits until it has caught up
  for (int round = 0; round < 40; ++round) {
    for (auto& node : nodes) {
      if (round == 0) node->begin();
      node->keeper->set_waiting(0);
      static_cast<void>(node->keeper->step());
    }
    clock.advance(31s);
  }
  for (auto& node : nodes) {
    std::set<net::Address> in_cloud = cloud.of(node->mac());
    std::set<net::Address> recorded = node->recorded();
    // A pod that lives by one that was taken away keeps its record: that is told, and left to people.
    for (const auto& [who, what] : holders) {
      if (stolen.contains(what.second)) recorded.erase(what.second), in_cloud.erase(what.second);
    }
    EXPECT_EQ(recorded, in_cloud) << node->options.node;
    EXPECT_TRUE(node->view().intents.empty()) << node->options.node;
  }
}

TEST(StockSimulation, ManyLives) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    live(seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace croft::engine
