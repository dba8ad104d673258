#include "os/host_route.h"

#include <linux/rtnetlink.h>

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "os/network_fixture.h"

namespace croft::os {
namespace {

/// As the kernel tells it of a pod's route: `10.1.0.3 dev 7`.
Route of_a_pod() { return {Route::Type::unicast, ip("10.1.0.3"), 32, false, false, false, 7, RTPROT_BOOT}; }

TEST(ShowsLife, ARouteToThisVeryAddressOverADevice) {
  EXPECT_TRUE(shows_life(of_a_pod(), ip("10.1.0.3")));
  EXPECT_TRUE(
      shows_life({Route::Type::unicast, ip("fd00::3"), 128, false, false, false, 7, RTPROT_BOOT}, ip("fd00::3")));
  Route of_calico = of_a_pod();
  of_calico.protocol = 80;
  EXPECT_TRUE(shows_life(of_calico, ip("10.1.0.3")));
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
      {"another address", with([](Route& r) { r.to = ip("10.1.0.4"); })},
      {"a prefix that begins with it", with([](Route& r) { r.length = 31; })},
      {"everything", with([](Route& r) { r.to = ip("0.0.0.0"), r.length = 0; })},
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
      {"the other family", {Route::Type::unicast, ip("a01:3::"), 128, false, false, false, 7, RTPROT_BOOT}},
  };
  for (const Row& row : rows) EXPECT_FALSE(shows_life(row.route, ip("10.1.0.3"))) << row.what;
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
      const auto found = device_of_living(ip(text), kClock, Deadline::after(kClock.now(), std::chrono::seconds(5)));
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
