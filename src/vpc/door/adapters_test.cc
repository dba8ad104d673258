#include "vpc/door/adapters.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "os/network_fixture.h"

namespace croft::edge {
namespace {

using namespace net::literals;
using std::chrono::milliseconds;

TEST(Vpc, TheWireAndTheHostThroughTheirPorts) {
  os::in_private_network([] {
    os::make_switch();
    os::shell("ip -n b addr add 10.1.0.7/24 dev eth0 && ip -n b addr add fd00:1::7/64 dev eth0 nodad");
    os::shell("ip -n b neigh add 10.1.0.9 lladdr 02:00:00:00:00:0c dev eth0 nud stale");
    const auto deadline = [] { return Deadline::after(os::kClock.now(), std::chrono::seconds(60)); };
    os::in_namespace("a", [&] {
      os::SystemRandom random;
      WireProbe wire({.interface = "eth0", .unit = milliseconds(100)}, os::kClock, random);
      engine::AddressProbe& probe = wire;
      const auto answers = probe.probe({"fd00:1::7"_ip, "10.1.0.9"_ip, "10.1.0.7"_ip}, deadline());
      ASSERT_TRUE(answers) << answers.error().message;
      ASSERT_EQ(answers->size(), 3U);
      const net::Mac of_b{{2, 0, 0, 0, 0, 0xb}};
      EXPECT_EQ((*answers)[0].address, "fd00:1::7"_ip);
      EXPECT_EQ((*answers)[0].other, of_b);
      EXPECT_EQ((*answers)[1].address, "10.1.0.9"_ip);
      EXPECT_EQ((*answers)[1].other, std::nullopt);
      EXPECT_EQ((*answers)[2].other, of_b);
      EXPECT_EQ(probe.probe({net::Address()}, deadline()).error().code, ErrorCode::invalid_argument);
      probe.announce({"10.1.0.9"_ip});
    });
    os::shell("ip -n b neigh show 10.1.0.9 | grep -q 02:00:00:00:00:0a");
    const auto use = host_use(os::kClock, deadline());
    ASSERT_TRUE(use) << use.error().message;
    std::vector<net::Address> all = use->own;
    for (const auto& one : use->namespaces) all.insert(all.end(), one.begin(), one.end());
    for (const net::Address& one : {"10.1.0.7"_ip, "fd00:1::7"_ip}) {
      EXPECT_EQ(std::ranges::count(all, one), 1) << one.to_string();
    }
    EXPECT_EQ(std::ranges::count(all, "10.1.0.9"_ip), 0);
    EXPECT_EQ(host_use(os::kClock, Deadline{std::chrono::nanoseconds(0)}).error().code, ErrorCode::deadline_exceeded);
  });
}

TEST(Vpc, PodsAsAListTellsOfThem) {
  core::collect::PodFact fact;
  fact.name = "web-0";
  fact.namespace_name = "shop";
  fact.uid = "u1";
  fact.addresses = {"10.1.0.7"_ip, "fd00:1::7"_ip};
  const ListPods list = [&](const std::function<void()>& begin, const auto& take) -> Result<void> {
    begin();
    core::collect::PodFact torn;
    torn.name = "torn";
    take(torn);
    begin();  // the list had to be read anew
    take(fact);
    return {};
  };
  const auto all = live_pods(list);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front().pod, (core::PodIdentity{"web-0", "shop", "u1"}));
  EXPECT_EQ(all->front().addresses, fact.addresses);
  fact.is_mirror = true;
  EXPECT_EQ(live_pods(list)->front().pod.uid, "") << "the runtime knows a static pod by another";
  fact.is_mirror = false;
  EXPECT_FALSE(all->front().ended);
  for (const char* phase : {"Succeeded", "Failed"}) {
    fact.phase = phase;
    EXPECT_TRUE(live_pods(list)->front().ended);
  }
  fact.phase = "Running";
  fact.is_in_node_network = true;
  EXPECT_TRUE(live_pods(list)->empty());
  fact.is_in_node_network = false;
  const auto away = live_pods([](const auto&, const auto&) { return fail(ErrorCode::unavailable, "away"); });
  EXPECT_EQ(away.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace croft::edge
