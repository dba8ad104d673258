#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "os/clock.h"
#include "os/host_route.h"
#include "os/interfaces.h"
#include "os/network_fixture.h"

namespace croft::os {

namespace {

using namespace net::literals;
using testing::HasSubstr;

Deadline soon() { return Deadline::after(kClock.now(), std::chrono::seconds(30)); }
std::optional<NetworkInterface> named(const std::string& name) {
  const auto all = list_interfaces(kClock, soon());
  EXPECT_TRUE(all) << all.error().message;
  const auto found = std::ranges::find(*all, name, &NetworkInterface::name);
  return found == all->end() ? std::nullopt : std::optional(*found);
}
bool has(const std::vector<net::Address>& all, const std::string& text) {
  return std::ranges::binary_search(all, address(text));
}
bool has(const HostUse& use, const std::string& text) {
  return has(use.own, text) || std::ranges::any_of(use.namespaces, [&](const auto& one) { return has(one, text); });
}

TEST(HostAddresses, OfInterfacesNamespacesAndRoutes) {
  in_private_network([] {
    make_switch();
    shell("ip link set lo up && ip addr add 10.1.0.1/24 dev sw && ip addr add fd00:1::1/64 dev sw nodad");
    shell("ip -n a addr add 10.1.0.7/32 dev eth0 && ip -n b addr add fd00:1::7/128 dev eth0 nodad");
    shell("ip addr add 10.8.0.1 peer 10.8.0.2/32 dev sw");
    shell("ip route add 10.1.0.9/32 dev sw && ip route add fd00:1::9/128 dev sw && ip route add 10.7.0.0/24 dev sw");
    shell("ip route add 10.1.0.10/32 dev sw table 1234 && ip route add unreachable 10.1.0.11/32");
    shell("ip -n c route add 10.1.0.12/32 dev eth0");
    const auto all = host_use("/run/netns", kClock, soon());
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_TRUE(std::ranges::is_sorted(all->own));
    EXPECT_EQ(std::ranges::adjacent_find(all->own), all->own.end());
    for (const char* there : {"10.1.0.1", "fd00:1::1", "10.1.0.7", "fd00:1::7", "10.1.0.9", "fd00:1::9", "10.1.0.10",
                              "10.1.0.11", "127.0.0.1", "::1", "10.8.0.1", "10.8.0.2"}) {
      EXPECT_TRUE(has(*all, there)) << there;
    }
    // A subnet's route, broadcast addresses, a route of another namespace.
    for (const char* not_there : {"10.7.0.0", "10.1.0.255", "10.1.0.12", "10.1.0.8"}) {
      EXPECT_FALSE(has(*all, not_there)) << not_there;
    }
    EXPECT_TRUE(has(all->own, "10.1.0.1") && has(all->own, "10.1.0.9"));
    EXPECT_FALSE(has(all->own, "10.1.0.7"));
    // The caller's thread has stayed.
    EXPECT_TRUE(named("sw"));
  });
}

TEST(HostAddresses, WhatCannotBeEnteredIsNamedAndWhatIsNotThereIsNot) {
  in_private_network([] {
    EXPECT_TRUE(host_use("/run/none", kClock, soon()));
    shell("ip netns add good");
    std::ofstream("/run/netns/left-over").close();
    const auto left_over = host_use("/run/netns", kClock, soon());
    ASSERT_FALSE(left_over);
    EXPECT_EQ(left_over.error().code, ErrorCode::unavailable);
    EXPECT_THAT(left_over.error().message, HasSubstr("/run/netns/left-over"));
    shell("rm /run/netns/left-over && touch /run/netns/uts && mount --bind /proc/self/ns/uts /run/netns/uts");
    const auto other = host_use("/run/netns", kClock, soon());
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().message, HasSubstr("/run/netns/uts"));
    shell("umount /run/netns/uts && rm /run/netns/uts");
    EXPECT_TRUE(host_use("/run/netns", kClock, soon()));
    const auto late = host_use("/run/netns", kClock, Deadline{std::chrono::nanoseconds(0)});
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, ErrorCode::deadline_exceeded);
  });
}

TEST(HostAddresses, NamespacesThatComeAndGoMeanwhile) {
  in_private_network([] {
    shell("ip link add sw type bridge && ip addr add 10.1.0.1/24 dev sw");
    std::thread churn([] { shell("for i in $(seq 40); do ip netns add n$i; ip netns del n$i; done"); });
    for (int i = 0; i < 20; ++i) {
      const auto all = host_use("/run/netns", kClock, soon());
      EXPECT_TRUE(all) << all.error().message;
      EXPECT_TRUE(all && has(*all, "10.1.0.1"));
    }
    churn.join();
  });
}

TEST(HostAddresses, ManyAddressesComeInPagesAndTooManyAreRefused) {
  in_private_network([] {
    shell("ip link add sw type bridge && ip link set sw up");
    shell(
        "for i in $(seq 0 7); do for j in $(seq 1 250); do echo addr add 10.9.$i.$j/32 dev sw; done; done | ip -batch "
        "-");
    const auto many = host_use("/run/netns", kClock, soon());
    ASSERT_TRUE(many) << many.error().message;
    EXPECT_TRUE(has(*many, "10.9.0.1") && has(*many, "10.9.7.250"));
    EXPECT_GE(many->own.size(), 2000U);
    // Routes are cheaper than addresses.
    shell(
        "for i in $(seq 0 258); do for j in $(seq 0 255); do echo route add 10.$((100 + i / 256)).$((i % 256)).$j/32 "
        "dev sw; done; done | ip -batch -");
    const auto too_many = host_use("/run/netns", kClock, soon());
    ASSERT_FALSE(too_many);
    EXPECT_THAT(too_many.error().message, HasSubstr("65536"));
  });
}

TEST(Interfaces, AreListedAndFoundByMac) {
  in_private_network([] {
    shell(
        "ip link add eth0 address 02:00:00:00:00:01 type veth peer name other && ip link set eth0 up && ip link set "
        "other up");
    shell("ip link add br0 address 02:00:00:00:00:01 type bridge && ip link set br0 up");
    const auto found = named("eth0");
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->is_up && found->has_carrier && !found->is_part && !found->is_upon_another);
    EXPECT_EQ(found->mac, (net::Mac{{2, 0, 0, 0, 0, 1}}));
    EXPECT_FALSE(named("lo")->mac);
    const auto twins = find_interface(net::Mac{{2, 0, 0, 0, 0, 1}}, kClock, soon());
    EXPECT_EQ(twins.error().code, ErrorCode::refused_by_configuration);
    EXPECT_THAT(twins.error().message, HasSubstr("br0"));
    // A bridge has the MAC of one of its ports, as a bond does, and is the one that counts.
    shell("ip link set eth0 master br0");
    EXPECT_TRUE(named("eth0")->is_part);
    const auto by_mac = find_interface(net::Mac{{2, 0, 0, 0, 0, 1}}, kClock, soon());
    ASSERT_TRUE(by_mac) << by_mac.error().message;
    EXPECT_EQ(by_mac->name, "br0");
    EXPECT_EQ(find_interface(net::Mac{{2, 0, 0, 0, 0, 2}}, kClock, soon()).error().code, ErrorCode::not_found);
  });
}

/// As the kernel tells it of a pod's route: `10.1.0.3 dev 7`.
Route of_a_pod() { return {Route::Type::unicast, "10.1.0.3"_ip, 32, false, false, false, 7, RTPROT_BOOT}; }

TEST(ShowsLife, ARouteToThisVeryAddressOverADevice) {
  EXPECT_TRUE(shows_life(of_a_pod(), "10.1.0.3"_ip));
  EXPECT_TRUE(shows_life({Route::Type::unicast, "fd00::3"_ip, 128, false, false, false, 7, RTPROT_BOOT}, "fd00::3"_ip));
  Route of_calico = of_a_pod();
  of_calico.protocol = 80;
  EXPECT_TRUE(shows_life(of_calico, "10.1.0.3"_ip));
}

TEST(ShowsLife, NothingElseDoes) {
  struct Row {
    const char* what;
    Route route;
  };
  const auto with = [](auto change) {
    Route route = of_a_pod();
    change(route);
    return route;
  };
  const Row rows[] = {
      {"another address", with([](Route& r) { r.to = "10.1.0.4"_ip; })},
      {"a prefix that begins with it", with([](Route& r) { r.length = 31; })},
      {"everything", with([](Route& r) { r.to = "0.0.0.0"_ip, r.length = 0; })},
      {"over a gateway", with([](Route& r) { r.has_gateway = true; })},
      {"over several ways", with([](Route& r) { r.has_several_ways = true; })},
      {"a blackhole, or the host's own address", with([](Route& r) { r.type = Route::Type::other; })},
      {"over lo", with([](Route& r) { r.device = 1; })},
      {"over nothing", with([](Route& r) { r.device = 0; })},
      {"a redirect's", with([](Route& r) { r.protocol = RTPROT_REDIRECT; })},
      {"the kernel's own, as of a prefix that a router told", with([](Route& r) { r.protocol = RTPROT_KERNEL; })},
      {"a router advertisement's", with([](Route& r) { r.protocol = RTPROT_RA; })},
      {"DHCP's", with([](Route& r) { r.protocol = 16; })},
      {"what the kernel remembers of a path", with([](Route& r) { r.is_of_a_path = true; })},
      {"the other family", {Route::Type::unicast, "a01:3::"_ip, 128, false, false, false, 7, RTPROT_BOOT}},
  };
  for (const Row& row : rows) EXPECT_FALSE(shows_life(row.route, "10.1.0.3"_ip)) << row.what;
}

TEST(ParseRoute, WhatIsCutOffIsNoneAndWhatDoesNotFitIsLeftOut) {
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = 32;
  header.rtm_type = RTN_UNICAST;
  std::vector<std::uint8_t> payload(sizeof header);
  std::memcpy(payload.data(), &header, sizeof header);
  ASSERT_TRUE(parse_route(payload));
  EXPECT_EQ(parse_route(payload)->length, 32);
  // An RTA_OIF of three bytes.
  const std::uint8_t short_one[] = {7, 0, RTA_OIF, 0, 5, 0, 0, 0};
  payload.insert(payload.end(), std::begin(short_one), std::end(short_one));
  EXPECT_EQ(parse_route(payload)->device, 0);
  payload.resize(sizeof header - 1);
  EXPECT_FALSE(parse_route(payload));
  EXPECT_FALSE(parse_route({}));
  header.rtm_family = AF_UNSPEC;
  payload.resize(sizeof header);
  std::memcpy(payload.data(), &header, sizeof header);
  EXPECT_FALSE(parse_route(payload));
}

TEST(DeviceOfLiving, AsTheKernelHasIt) {
  in_private_network([] {
    make_switch();
    shell("ip link set lo up && ip addr add 10.9.0.1/24 dev sw && ip addr add fd00:9::1/64 dev sw nodad");
    shell("ip route add 10.1.0.3/32 dev to_a && ip route add fd00:1::3/128 dev to_a");
    shell("ip route add 10.1.0.4/32 via 10.9.0.7 && ip route add fd00:1::4/128 via fd00:9::7");
    shell(
        "ip route add blackhole 10.1.0.5/32 && ip route add unreachable 10.1.0.6/32 && ip route add prohibit "
        "10.1.0.7/32");
    shell("ip route add blackhole fd00:1::5/128 && ip route add unreachable fd00:1::6/128");
    shell("ip route add 10.1.0.13/32 dev to_a proto kernel && ip route add fd00:1::d/128 dev to_a proto kernel");
    shell("ip route add 10.1.0.14/32 dev to_a proto dhcp && ip route add fd00:1::e/128 dev to_a proto ra");
    shell("ip route add 10.1.0.15/32 dev to_a proto 80");
    shell("ip route add 10.1.0.8/31 dev to_a && ip route add fd00:1::8/127 dev to_a");
    shell(
        "ip addr add 10.1.0.10/32 dev lo && ip addr add 10.1.0.11/32 dev to_b && ip addr add fd00:1::b/128 dev to_b "
        "nodad");
    shell("ip route add 10.1.0.12/32 dev to_c table 77 && ip rule add to 10.1.0.12/32 lookup 77");
    const auto device = [](const char* text) {
      const auto found =
          device_of_living(address(text), kClock, Deadline::after(kClock.now(), std::chrono::seconds(5)));
      EXPECT_TRUE(found) << text << ": " << found.error().message;
      return found ? found->value_or("") : "error";
    };
    for (const char* text : {"10.1.0.3", "fd00:1::3"}) EXPECT_EQ(device(text), "to_a") << text;
    EXPECT_EQ(device("10.1.0.12"), "to_c");
    EXPECT_EQ(device("10.1.0.15"), "to_a");
    for (const char* text : {"10.1.0.4",  "fd00:1::4", "10.1.0.5",  "10.1.0.6",  "10.1.0.7",  "fd00:1::5", "fd00:1::6",
                             "10.1.0.8",  "10.1.0.9",  "fd00:1::8", "10.1.0.10", "10.9.0.7",  "10.2.0.1",  "fd00:2::1",
                             "10.1.0.11", "fd00:1::b", "10.1.0.13", "fd00:1::d", "10.1.0.14", "fd00:1::e"}) {
      EXPECT_EQ(device(text), "") << text;
    }
  });
}

}  // namespace

}  // namespace croft::os
