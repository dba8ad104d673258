// Nodes, pods, a cloud and accidents, all together, by seeds.

#include <map>
#include <memory>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "vpc/decide/assign.h"
#include "vpc/use/test_stock_node.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::StockAddressState;
namespace warm = core::warm;

constexpr std::int64_t kForEver = std::int64_t{1} << 60;  ///< calls that an agent lives for

/// For people: records of what the cloud has elsewhere.
std::string told(const StockView& view, const std::set<net::Address>& in_cloud) {
  std::string text;
  for (const auto& one : view.addresses) {
    if (in_cloud.contains(one.address)) continue;
    text += "; " + one.address.to_string() + " state " + std::to_string(static_cast<int>(one.state)) + " of " +
            one.owner.container_id + " " + one.why;
  }
  return text;
}

/// Three nodes, pods that come and go, pods that keep their address, claims that lie and ADDs that come late, a cloud
/// that loses, throttles and is away, addresses that somebody deletes, agents that die anywhere, wall clocks that jump,
/// records that are lost, older copies of them put back before an agent begins and under one that runs.
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
    // As on any node: from a list without pods nothing follows.
    nodes.back()->pods.all.push_back({{"daemon", "kube-system", "uid-d"}, {}, false});
    nodes.back()->random = SeededRandom(seed * 3 + static_cast<std::uint64_t>(i));
  }
  const auto begin = [&](Node& node, std::int64_t calls) {
    node.begin(calls);
    for (auto& other : nodes) {
      other->peers.keepers.clear();
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i] == other || !nodes[i]->keeper || nodes[i]->life->is_over) continue;
        other->peers.keepers["node-" + std::to_string(i + 1)] = nodes[i]->keeper.get();
      }
    }
  };
  const auto begin_mortal = [&](Node& node) {
    begin(node, below(3) == 0 ? static_cast<std::int64_t>(below(30)) : kForEver);
  };
  for (auto& node : nodes) begin_mortal(*node);
  std::map<std::string, std::pair<std::size_t, net::Address>> holders;
  std::map<net::Address, std::chrono::nanoseconds> rests_until;
  std::set<net::Address> stolen;
  std::set<std::string> unrecorded;  ///< containers of before their node's records were lost, or that older ones name
  std::map<std::size_t, StockView> copies;
  std::map<std::string, FixedAddresses::Promise> promises;  ///< by pod: what its claim says
  std::map<std::string, std::string> fixed;                 ///< by pod: the container that lives
  std::set<std::string> restless;  ///< containers of which an older copy may know nothing: no record cools after them
  int lies = 0;
  const auto all_addresses = cloud.unowned();
  // Until an agent was there long enough for a look, before anything is given.
  const auto look = [&](Node& node) {
    cloud.fate = [] { return CallFate::done; };
    cloud.catch_up();
    node.keeper->look_before_serving();
    if (!node.life->is_over) return;
    begin(node, kForEver);
    node.keeper->look_before_serving();
  };
  // What containers an older copy of a node's records, or none at all, does not tell the truth about.
  const auto distrust = [&](std::size_t which, const StockView& copy) {
    for (const auto& [who, what] : holders) {
      if (what.first == which) unrecorded.insert(who);
    }
    for (const auto& one : copy.addresses) {
      const std::string& who = one.owner.container_id.empty() ? one.pod.name : one.owner.container_id;
      if (!who.empty()) unrecorded.insert(who);  // a look records no container; its pod is called as it is
    }
    rests_until.clear();  // nor does it know of a rest since
    for (const auto& [who, what] : holders) {
      if (what.first == which) restless.insert(who);
    }
  };
  for (int step = 0; step < 150; ++step) {
    const std::size_t which = below(nodes.size());
    Node& node = *nodes[which];
    const std::string container = std::to_string(which) + "-" + std::to_string(below(5));
    const std::uint64_t trouble = below(10);
    cloud.fate = [&, trouble] {
      if (trouble > 4) return CallFate::done;
      return static_cast<CallFate>(below(8) < 5 ? 0 : below(6));
    };
    switch (below(9)) {
      case 8: {
        // A pod that keeps its address: its claim may lie, and the pod of before may still live, here or elsewhere.
        const std::string pod = "s-" + std::to_string(below(2));
        if (lies < 2 && below(10) == 0) {
          ++lies;
          FixedAddresses::Promise& lie = promises[pod];
          lie.address = all_addresses[below(all_addresses.size())];
          if (below(2) == 0) lie.mac = nodes[below(nodes.size())]->mac();
        }
        const auto lives = fixed.find(pod);
        if (lives != fixed.end() && below(3) > 0) {
          const auto [where, address] = holders.at(lives->second);
          warm::Release release;
          release.owner = {"net", lives->second, "eth0"};
          ASSERT_TRUE(release_to_stock(nodes[where]->context(), release));
          nodes[where]->host.used.erase(address);
          std::erase_if(nodes[where]->pods.all, [&](const auto& one) { return one.pod.uid == lives->second; });
          unrecorded.erase(lives->second);
          holders.erase(lives->second);
          fixed.erase(lives);
          break;
        }
        warm::Request request;
        request.owner = {"net", pod + "-" + std::to_string(step), "eth0"};
        request.pod = {pod, "shop", request.owner.container_id};
        request.cooldown = node.options.reconcile.cooldown;
        std::optional<net::Address> got;
        if (promises.contains(pod)) {
          // As with UK8S, the pod that has the name by now takes it from the interface that the claim names, also from
          // one that still lives there, or where the records of another time have it for anybody.
          const net::Address address = promises[pod].address;
          const bool is_taken = std::ranges::any_of(nodes, [&](const auto& other) {
            if (other.get() == &node || cloud.owner_of(address) != other->mac()) return false;
            const auto record = other->find(address);
            return !record || !warm::is_waiting_for(*record, request.pod);
          });
          const auto given = node.keeper->give_promised(promises[pod], request, Deadline::after(clock.now(), 60s));
          if (given) got = given->address.address;
          const bool is_refused = !given && (given.error().code == ErrorCode::refused_for_safety ||
                                             given.error().code == ErrorCode::conflict);
          if (is_taken && !is_refused) stolen.insert(address);
        } else if (lives == fixed.end()) {
          request.extra[warm::kPromisedKey] = warm::promised_pod_name(request.pod);
          const auto answer = assign_from_stock(node.context(), request, node.writer());
          ASSERT_TRUE(answer);
          const auto* assigned = std::get_if<warm::Assigned>(&*answer);
          if (assigned != nullptr) got = assigned->address.address;
        }
        if (!got) break;
        for (const auto& [who, what] : holders) {
          ASSERT_TRUE(what.second != *got || stolen.contains(*got)) << "two holders, step " << step << ", " << who;
        }
        if (!stolen.contains(*got)) {
          ASSERT_EQ(cloud.owner_of(*got), node.mac()) << "step " << step;
        }
        promises[pod] = {*got, "", node.mac()};
        for (auto& each : nodes) {
          each->claims.all.clear();
          for (const auto& [who, promise] : promises) each->claims.all.push_back(promise.address);
        }
        // One that still lives lives by what was stolen, and keeps its record.
        fixed[pod] = request.owner.container_id;
        holders[request.owner.container_id] = {which, *got};
        node.host.used.insert(*got);
        node.pods.all.push_back({request.pod, {*got}, false});
        break;
      }
      case 0:
      case 1: {
        if (unrecorded.contains(container)) break;  // no runtime adds one twice
        const std::string got = node.add(container);
        if (got.empty()) {
          node.wait(1);
          break;
        }
        node.wait(0);
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
          const bool rests = restless.erase(container) == 0;
          if (rests) rests_until[held->second.second] = clock.now().since_boot + node.options.reconcile.cooldown;
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
        if (node.life->is_over) begin_mortal(node);
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
          distrust(which, {});
          begin_mortal(node);
        } else if (copies.contains(which) && below(8) == 0) {
          // Somebody puts an older copy back; the agent begins on it.
          node.keeper.reset();
          node.put_back(copies[which]);
          distrust(which, copies[which]);
          begin_mortal(node);
          look(node);
        } else if (copies.contains(which) && below(8) == 0) {
          // The same under the agent that runs: nothing is given before it has looked.
          node.replace_files(copies[which]);
          distrust(which, copies[which]);
          ASSERT_EQ(node.add("at-once"), "") << "step " << step;
          look(node);
        } else if (below(6) == 0) {
          copies[which] = node.view();
        } else if (below(10) == 0) {
          // Somebody takes a free one away in the cloud's own console.
          const auto free = node.view().addresses;
          for (const auto& one : free) {
            if (one.state != StockAddressState::free || cloud.owner_of(one.address) != node.mac()) continue;
            cloud.set_owner(one.address, std::nullopt);
            stolen.insert(one.address);
            break;
          }
        } else {
          begin_mortal(node);
        }
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
  cloud.fate = [] { return CallFate::done; };
  cloud.catch_up();
  for (auto& node : nodes) node->claims.all.clear();
  clock.jump_wall(30min * (static_cast<std::int64_t>(below(5)) - 2));  // and nothing waits until it has caught up
  for (int round = 0; round < 40; ++round) {
    for (auto& node : nodes) {
      if (round == 0) begin(*node, kForEver);
      node->wait(0);
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
    EXPECT_EQ(recorded, in_cloud) << node->options.node << told(node->view(), in_cloud);
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
