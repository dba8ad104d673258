#include "os/host_addresses.h"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "os/interfaces.h"
#include "os/network_fixture.h"

namespace croft::os {
namespace {

using testing::HasSubstr;

Deadline soon() { return Deadline::after(kClock.now(), std::chrono::seconds(30)); }
bool has(const std::vector<IpBytes>& all, const std::string& text) { return std::ranges::binary_search(all, ip(text)); }

TEST(HostAddresses, OfInterfacesNamespacesAndRoutes) {
  in_private_network([] {
    make_switch();
    shell("ip link set lo up && ip addr add 10.1.0.1/24 dev sw && ip addr add fd00:1::1/64 dev sw nodad");
    shell("ip -n a addr add 10.1.0.7/32 dev eth0 && ip -n b addr add fd00:1::7/128 dev eth0 nodad");
    shell("ip addr add 10.8.0.1 peer 10.8.0.2/32 dev sw");
    shell("ip route add 10.1.0.9/32 dev sw && ip route add fd00:1::9/128 dev sw && ip route add 10.7.0.0/24 dev sw");
    shell("ip route add 10.1.0.10/32 dev sw table 1234 && ip route add unreachable 10.1.0.11/32");
    shell("ip -n c route add 10.1.0.12/32 dev eth0");
    const auto all = host_addresses("/run/netns", kClock, soon());
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_TRUE(std::ranges::is_sorted(*all));
    EXPECT_EQ(std::ranges::adjacent_find(*all), all->end());
    for (const char* there : {"10.1.0.1", "fd00:1::1", "10.1.0.7", "fd00:1::7", "10.1.0.9", "fd00:1::9", "10.1.0.10",
                              "10.1.0.11", "127.0.0.1", "::1", "10.8.0.1", "10.8.0.2"}) {
      EXPECT_TRUE(has(*all, there)) << there;
    }
    // A subnet's route, broadcast addresses, a route of another namespace.
    for (const char* not_there : {"10.7.0.0", "10.1.0.255", "10.1.0.12", "10.1.0.8"}) {
      EXPECT_FALSE(has(*all, not_there)) << not_there;
    }
    const auto apart = host_use("/run/netns", kClock, soon());
    ASSERT_TRUE(apart) << apart.error().message;
    EXPECT_TRUE(has(apart->own, "10.1.0.1") && has(apart->own, "10.1.0.9"));
    EXPECT_FALSE(has(apart->own, "10.1.0.7"));
    EXPECT_TRUE(std::ranges::any_of(apart->namespaces, [](const auto& one) { return has(one, "10.1.0.7"); }));
    // The caller's thread has stayed.
    EXPECT_TRUE(find_interface("sw", kClock, soon()));
  });
}

TEST(HostAddresses, WhatCannotBeEnteredIsNamedAndWhatIsNotThereIsNot) {
  in_private_network([] {
    EXPECT_TRUE(host_addresses("/run/none", kClock, soon()));
    shell("ip netns add good");
    std::ofstream("/run/netns/left-over").close();
    const auto left_over = host_addresses("/run/netns", kClock, soon());
    ASSERT_FALSE(left_over);
    EXPECT_EQ(left_over.error().code, ErrorCode::unavailable);
    EXPECT_THAT(left_over.error().message, HasSubstr("/run/netns/left-over"));
    shell("rm /run/netns/left-over && touch /run/netns/uts && mount --bind /proc/self/ns/uts /run/netns/uts");
    const auto other = host_addresses("/run/netns", kClock, soon());
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().message, HasSubstr("/run/netns/uts"));
    shell("umount /run/netns/uts && rm /run/netns/uts");
    EXPECT_TRUE(host_addresses("/run/netns", kClock, soon()));
    const auto late = host_addresses("/run/netns", kClock, Deadline{std::chrono::nanoseconds(0)});
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, ErrorCode::deadline_exceeded);
  });
}

TEST(HostAddresses, NamespacesThatComeAndGoMeanwhile) {
  in_private_network([] {
    shell("ip link add sw type bridge && ip addr add 10.1.0.1/24 dev sw");
    std::thread churn([] { shell("for i in $(seq 40); do ip netns add n$i; ip netns del n$i; done"); });
    for (int i = 0; i < 20; ++i) {
      const auto all = host_addresses("/run/netns", kClock, soon());
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
    const auto many = host_addresses("/run/netns", kClock, soon());
    ASSERT_TRUE(many) << many.error().message;
    EXPECT_TRUE(has(*many, "10.9.0.1") && has(*many, "10.9.7.250"));
    EXPECT_GE(many->size(), 2000U);
    // Routes are cheaper than addresses.
    shell(
        "for i in $(seq 0 258); do for j in $(seq 0 255); do echo route add 10.$((100 + i / 256)).$((i % 256)).$j/32 "
        "dev sw; done; done | ip -batch -");
    const auto too_many = host_addresses("/run/netns", kClock, soon());
    ASSERT_FALSE(too_many);
    EXPECT_THAT(too_many.error().message, HasSubstr("65536"));
  });
}

TEST(Interfaces, ByNameAndByMac) {
  in_private_network([] {
    shell(
        "ip link add eth0 address 02:00:00:00:00:01 type veth peer name other && ip link set eth0 up && ip link set "
        "other up");
    shell("ip link add br0 address 02:00:00:00:00:01 type bridge && ip link set br0 up");
    const auto found = find_interface("eth0", kClock, soon());
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_TRUE(found->is_up && found->has_carrier && !found->is_part && !found->is_upon_another);
    EXPECT_EQ(found->mac, (MacBytes{2, 0, 0, 0, 0, 1}));
    EXPECT_FALSE(find_interface("lo", kClock, soon())->mac);
    const auto twins = find_interface(MacBytes{2, 0, 0, 0, 0, 1}, kClock, soon());
    EXPECT_EQ(twins.error().code, ErrorCode::refused_by_configuration);
    EXPECT_THAT(twins.error().message, HasSubstr("br0"));
    // A bridge has the MAC of one of its ports, as a bond does, and is the one that counts.
    shell("ip link set eth0 master br0");
    EXPECT_TRUE(find_interface("eth0", kClock, soon())->is_part);
    const auto by_mac = find_interface(MacBytes{2, 0, 0, 0, 0, 1}, kClock, soon());
    ASSERT_TRUE(by_mac) << by_mac.error().message;
    EXPECT_EQ(by_mac->name, "br0");
    const auto none = find_interface("eth9", kClock, soon());
    EXPECT_EQ(none.error().code, ErrorCode::not_found);
    EXPECT_THAT(none.error().message, HasSubstr("eth0"));
    EXPECT_EQ(find_interface(MacBytes{2, 0, 0, 0, 0, 2}, kClock, soon()).error().code, ErrorCode::not_found);
  });
}

}  // namespace
}  // namespace croft::os
