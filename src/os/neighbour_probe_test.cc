#include "os/neighbour_probe.h"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <atomic>
#include <barrier>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "os/clock.h"
#include "os/neighbour_packet.h"
#include "os/network_fixture.h"

namespace croft::os {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using namespace net::literals;
using testing::HasSubstr;

using Answers = std::vector<std::optional<net::Mac>>;

net::Mac mac_of(char host) { return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host - 'a' + 10)}}; }

/// A second in all. Long enough for a kernel's answer on a machine that does other things.
ProbeTiming quick() {
  ProbeTiming timing;
  timing.probe_wait = milliseconds(50);
  timing.probe_min = milliseconds(200);
  timing.probe_max = milliseconds(250);
  timing.announce_wait = milliseconds(500);
  timing.announce_interval = milliseconds(50);
  return timing;
}

Result<Answers> probe(const std::vector<net::Address>& addresses, const ProbeTiming& timing = quick()) {
  SystemRandom random;
  return probe_neighbours("eth0", addresses, timing, kClock, random, Deadline::after(kClock.now(), seconds(60)));
}

/// The other end of the wire, in the hands of a test: hears every frame of a kind, and sends any.
class Tap {
 public:
  explicit Tap(std::uint16_t protocol) : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    sockaddr_ll where{};
    where.sll_family = AF_PACKET;
    where.sll_protocol = htons(protocol);
    where.sll_ifindex = static_cast<int>(::if_nametoindex("eth0"));
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    packet_mreq all{};
    all.mr_ifindex = where.sll_ifindex;
    all.mr_type = PACKET_MR_ALLMULTI;
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all), 0);
    const int bytes = 8 << 20;
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes), 0);
  }
  bool send(const std::string& frame) { return ::send(socket_.get(), frame.data(), frame.size(), 0) >= 0; }
  /// The next frame that says something; absent after so long without one.
  std::optional<NeighbourSign> next(milliseconds patience) {
    std::array<std::uint8_t, 2048> buffer{};
    pollfd wait{socket_.get(), POLLIN, 0};
    while (::poll(&wait, 1, static_cast<int>(patience.count())) == 1) {
      const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) break;
      if (auto sign = signs_in(std::span(buffer).first(static_cast<std::size_t>(size)))[0]) return sign;
    }
    return std::nullopt;
  }

 private:
  FileDescriptor socket_;
};

TEST(NeighbourProbe, WhatNobodyHasIsFreeAndWhatAnotherHostHasIsItsMac) {
  in_private_network([] {
    make_switch();
    // Their kernels answer.
    shell("ip -n b addr add 10.1.0.7/24 dev eth0 && ip -n b addr add fd00:1::7/64 dev eth0 nodad");
    shell("ip -n c addr add 10.1.0.8/24 dev eth0 && ip -n c addr add fd00:1::8/64 dev eth0 nodad");
    in_namespace("a", [] {
      const auto answers = probe(
          {"10.1.0.9"_ip, "fd00:1::8"_ip, "10.1.0.7"_ip, "fd00:1::9"_ip, "10.1.0.8"_ip, "fd00:1::7"_ip, "10.1.0.7"_ip});
      ASSERT_TRUE(answers) << answers.error().message;
      EXPECT_EQ(*answers,
                (Answers{std::nullopt, mac_of('c'), mac_of('b'), std::nullopt, mac_of('c'), mac_of('b'), mac_of('b')}));
      EXPECT_EQ(*probe({}), Answers{});
    });
  });
}

TEST(NeighbourProbe, AlsoWhereTheHostItselfHasIpv6SwitchedOff) {
  in_private_network([] {
    make_switch();
    shell("ip -n b addr add fd00:1::7/64 dev eth0 nodad");
    shell("ip netns exec a sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.eth0.disable_ipv6=1");
    in_namespace("a", [] {
      const auto answers = probe({"fd00:1::7"_ip, "fd00:1::9"_ip});
      ASSERT_TRUE(answers) << answers.error().message;
      EXPECT_EQ(*answers, (Answers{mac_of('b'), std::nullopt}));
    });
  });
}

TEST(NeighbourProbe, NobodysCacheChanges) {
  in_private_network([] {
    make_switch();
    shell("ip -n b addr add 10.1.0.7/24 dev eth0 && ip -n c addr add 10.1.0.8/24 dev eth0");
    shell("ip -n b neigh add 10.1.0.8 lladdr 02:00:00:00:00:0c dev eth0 nud stale");
    in_namespace("a", [] { EXPECT_EQ(*probe({"10.1.0.8"_ip}), Answers{mac_of('c')}); });
    shell("ip -n b neigh show 10.1.0.8 | grep -q 02:00:00:00:00:0c");
    // An announcement does change it: that is what it is for.
    in_namespace("a",
                 [] { EXPECT_TRUE(announce_neighbours("eth0", std::vector{"10.1.0.8"_ip}, quick(), kClock, {})); });
    shell("ip -n b neigh show 10.1.0.8 | grep -q 02:00:00:00:00:0a");
  });
}

TEST(NeighbourProbe, ManyAddressesTakeOneWindow) {
  in_private_network([] {
    make_switch();
    std::vector<net::Address> all;
    for (int i = 1; i <= 110; ++i) all.push_back(address(fmt::format("10.1.0.{}", i)));
    for (int i = 1; i <= 110; ++i) all.push_back(address(fmt::format("fd00:1::{:x}", i)));
    std::barrier ready(2);
    std::vector<net::Address> heard;
    std::thread listener = thread_in("b", [&] {
      Tap tap(ETH_P_ALL);
      ready.arrive_and_wait();
      while (heard.size() < all.size() * 3) {
        const auto sign = tap.next(seconds(30));
        if (!sign) break;
        // The kernels ask for link-local addresses of their own.
        if (std::ranges::count(all, sign->address) == 0) continue;
        EXPECT_EQ(sign->kind, NeighbourSign::Kind::asks);
        EXPECT_EQ(sign->mac, mac_of('a'));
        heard.push_back(sign->address);
      }
      // And nothing else.
      while (const auto sign = tap.next(milliseconds(300))) EXPECT_EQ(std::ranges::count(all, sign->address), 0);
    });
    in_namespace("a", [&] {
      ready.arrive_and_wait();
      const auto answers = probe(all);
      ASSERT_TRUE(answers) << answers.error().message;
      EXPECT_EQ(*answers, Answers(all.size()));
    });
    listener.join();
    ASSERT_EQ(heard.size(), all.size() * 3);
    // One window: each was asked for once before any was asked for the third time.
    std::map<net::Address, int> times;
    for (const net::Address& one : heard) {
      if (++times[one] == 3) {
        EXPECT_EQ(times.size(), all.size());
      }
    }
    for (const auto& [one, count] : times) EXPECT_EQ(count, 3);
  });
}

TEST(NeighbourProbe, AsManyAsThereMayBe) {
  in_private_network([] {
    make_switch();
    shell("ip -n b addr add 10.1.5.5/16 dev eth0 && ip -n b addr add fd00:1::505/64 dev eth0 nodad");
    std::vector<net::Address> all;
    for (int i = 0; i < 2048; ++i) all.push_back(address(fmt::format("10.1.{}.{}", i / 256, i % 256)));
    for (int i = 0; i < 2048; ++i) all.push_back(address(fmt::format("fd00:1::{:x}", i + 1)));
    ASSERT_EQ(all.size(), kProbedMax);
    in_namespace("a", [&] {
      const auto answers = probe(all);
      ASSERT_TRUE(answers) << answers.error().message;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const bool is_bs = all[i] == "10.1.5.5"_ip || all[i] == "fd00:1::505"_ip;
        EXPECT_EQ((*answers)[i], is_bs ? std::optional(mac_of('b')) : std::nullopt) << i;
      }
      all.push_back("10.2.0.1"_ip);
      EXPECT_EQ(probe(all).error().code, ErrorCode::invalid_argument);
    });
  });
}

TEST(NeighbourProbe, TwoWhoAskAtTheSameTimeHearOfEachOther) {
  in_private_network([] {
    make_switch();
    const std::vector<net::Address> wanted{"10.1.0.9"_ip, "fd00:1::9"_ip};
    std::barrier start(2);
    Answers of_a, of_b;
    const auto ask = [&](Answers& out) {
      start.arrive_and_wait();
      auto answers = probe(wanted);
      EXPECT_TRUE(answers);
      if (answers) out = *std::move(answers);
    };
    std::thread a = thread_in("a", [&] { ask(of_a); });
    std::thread b = thread_in("b", [&] { ask(of_b); });
    a.join();
    b.join();
    EXPECT_EQ(of_a, (Answers{mac_of('b'), mac_of('b')}));
    EXPECT_EQ(of_b, (Answers{mac_of('a'), mac_of('a')}));
  });
}

TEST(NeighbourProbe, AnAnswerAfterTheLastProbeCounts) {
  in_private_network([] {
    make_switch();
    auto timing = quick();
    timing.announce_wait = seconds(20);  // which it does not take: the answer ends it
    for (const net::Address& late : {"10.1.0.9"_ip, "fd00:1::9"_ip}) {
      std::barrier ready(2);
      std::thread slow = thread_in("b", [&] {
        Tap tap(ETH_P_ALL);
        ready.arrive_and_wait();
        for (int asked = 0; asked < timing.probe_num;) {
          const auto sign = tap.next(seconds(30));
          ASSERT_TRUE(sign);
          asked += sign->address == late ? 1 : 0;
        }
        EXPECT_TRUE(tap.send(announcement_frame(late, mac_of('b'))));
      });
      in_namespace("a", [&] {
        ready.arrive_and_wait();
        const auto answers = probe({late}, timing);
        ASSERT_TRUE(answers) << answers.error().message;
        EXPECT_EQ(*answers, Answers{mac_of('b')});
      });
      slow.join();
    }
  });
}

TEST(NeighbourProbe, ItsOwnPacketsComingBackAndOtherVlansAreNoAnswer) {
  in_private_network([] {
    make_switch();
    std::atomic<bool> stop = false;
    const net::Address v4 = "10.1.0.9"_ip, v6 = "fd00:1::9"_ip;
    std::barrier ready(2);
    std::thread mirror = thread_in("b", [&] {
      Tap tap(ETH_P_ALL);
      ready.arrive_and_wait();
      const ProbeNonce nonce{1, 2, 3, 4, 5, 6};
      while (!stop) {
        for (const net::Address& one : {v4, v6}) {
          // Spoken with a's own MAC, as a loop in the network does, and in VLAN 42 by somebody else.
          EXPECT_TRUE(tap.send(probe_frame(one, mac_of('a'), nonce)));
          EXPECT_TRUE(tap.send(announcement_frame(one, mac_of('a'))));
          std::string tagged = announcement_frame(one, mac_of('c'));
          tagged.insert(12, std::string("\x81\x00\x00\x2a", 4));
          EXPECT_TRUE(tap.send(tagged));
          EXPECT_TRUE(tap.send(tagged.substr(0, 30)));
        }
        ::usleep(20'000);
      }
    });
    in_namespace("a", [&] {
      ready.arrive_and_wait();
      const auto answers = probe({v4, v6});
      EXPECT_TRUE(answers && *answers == Answers(2)) << (answers ? "an answer" : answers.error().message);
    });
    stop = true;
    mirror.join();
  });
}

TEST(NeighbourProbe, AFloodNeitherHidesAnAnswerNorMakesTheWindowLonger) {
  in_private_network([] {
    make_switch();
    shell("ip -n b addr add 10.1.0.7/24 dev eth0 && ip -n b addr add fd00:1::7/64 dev eth0 nodad");
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> sent = 0;
    std::barrier ready(2);
    std::thread flood = thread_in("c", [&] {
      Tap tap(0);
      ready.arrive_and_wait();
      for (std::uint32_t i = 0; !stop; ++i) {
        const net::Address v4 = net::Address::v4(0x0a020000 | (i & 0xffff));
        const net::Address v6 = net::Address::v6({0xfd00'0002'0000'0000, i & 0xffff});
        for (const net::Address& one : {v4, v6}) sent += tap.send(announcement_frame(one, mac_of('c'))) ? 1 : 0;
      }
    });
    in_namespace("a", [&] {
      ready.arrive_and_wait();
      const auto timing = quick();
      SystemRandom random;
      // The deadline is the window's own length and what a busy machine may add.
      const auto answers =
          probe_neighbours("eth0", std::vector{"10.1.0.9"_ip, "10.1.0.7"_ip, "fd00:1::9"_ip, "fd00:1::7"_ip}, timing,
                           kClock, random, Deadline::after(kClock.now(), seconds(22)));
      ASSERT_TRUE(answers) << answers.error().message;
      EXPECT_EQ(*answers, (Answers{std::nullopt, mac_of('b'), std::nullopt, mac_of('b')}));
    });
    stop = true;
    flood.join();
    EXPECT_GT(sent, 1000U);
  });
}

TEST(NeighbourProbe, AnInterfaceThatHearsNothingIsAnErrorAndNoSilence) {
  in_private_network([] {
    make_switch();
    shell(
        "ip -n a link add part type veth peer name other && ip -n a link add br0 type bridge && "
        "ip -n a link set part master br0 && ip -n a link set part up");
    in_namespace("a", [] {
      const std::vector<net::Address> wanted{"10.1.0.9"_ip};
      SystemRandom random;
      const auto ask = [&](const std::string& interface) {
        return probe_neighbours(interface, wanted, quick(), kClock, random, Deadline::after(kClock.now(), seconds(60)));
      };
      EXPECT_EQ(ask("eth9").error().code, ErrorCode::not_found);
      EXPECT_EQ(ask("lo").error().code, ErrorCode::invalid_argument);
      EXPECT_THAT(ask("part").error().message, HasSubstr("bridge"));
      shell("ip link set eth0 down");
      EXPECT_EQ(ask("eth0").error().code, ErrorCode::unavailable);
      EXPECT_THAT(ask("eth0").error().message, HasSubstr("down"));
      shell("ip link set eth0 up");
      const auto late =
          probe_neighbours("eth0", wanted, quick(), kClock, random, Deadline::after(kClock.now(), milliseconds(100)));
      EXPECT_EQ(late.error().code, ErrorCode::deadline_exceeded);
    });
    shell("ip link set to_a down");
    in_namespace("a", [] { EXPECT_THAT(probe({"10.1.0.9"_ip}).error().message, HasSubstr("carrier")); });
  });
}

TEST(NeighbourProbe, AnInterfaceThatGoesDownOrAwayMeanwhile) {
  for (const char* accident : {"ip -n a link set eth0 down", "ip -n a link set eth0 down; ip -n a link set eth0 up",
                               "ip link del to_a", "ip link set to_a down"}) {
    in_private_network([&] {
      make_switch();
      auto timing = quick();
      timing.announce_wait = seconds(2);
      std::barrier ready(2);
      std::thread meddler = thread_in("b", [&] {
        Tap tap(ETH_P_ALL);
        ready.arrive_and_wait();
        while (true) {
          const auto sign = tap.next(seconds(30));
          ASSERT_TRUE(sign);
          if (sign->address == "10.1.0.9"_ip) break;
        }
      });
      std::thread prober = thread_in("a", [&] {
        ready.arrive_and_wait();
        const auto answers = probe({"10.1.0.9"_ip, "fd00:1::9"_ip}, timing);
        ASSERT_FALSE(answers) << accident;
        EXPECT_EQ(answers.error().code == ErrorCode::not_found ? ErrorCode::unavailable : answers.error().code,
                  ErrorCode::unavailable)
            << answers.error().message;
      });
      meddler.join();
      shell(accident);
      prober.join();
    });
  }
}

TEST(NeighbourProbe, WithoutTheCapabilityTheRemedyIsNamed) {
  in_private_network([] {
    make_switch();
    in_namespace("a", [] {
      __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
      __user_cap_data_struct none[2]{};
      ASSERT_EQ(::syscall(SYS_capset, &header, none), 0);
      const auto answers = probe({"10.1.0.9"_ip});
      ASSERT_FALSE(answers);
      EXPECT_EQ(answers.error().code, ErrorCode::permission_denied);
      EXPECT_THAT(answers.error().message, HasSubstr("CAP_NET_RAW"));
    });
  });
}

TEST(NeighbourProbe, AnnouncesAsOftenAsItSays) {
  in_private_network([] {
    make_switch();
    const std::vector<net::Address> ours{"10.1.0.9"_ip, "fd00:1::9"_ip};
    std::barrier ready(2);
    std::map<net::Address, int> heard;
    std::thread listener = thread_in("b", [&] {
      Tap tap(ETH_P_ALL);
      ready.arrive_and_wait();
      while (heard[ours[0]] < 2 || heard[ours[1]] < 2) {
        const auto sign = tap.next(seconds(30));
        ASSERT_TRUE(sign);
        if (sign->kind == NeighbourSign::Kind::has && sign->mac == mac_of('a')) ++heard[sign->address];
      }
      while (const auto sign = tap.next(milliseconds(200))) ++heard[sign->address];
    });
    in_namespace("a", [&] {
      ready.arrive_and_wait();
      EXPECT_TRUE(announce_neighbours("eth0", ours, quick(), kClock, Deadline::after(kClock.now(), seconds(60))));
    });
    listener.join();
    EXPECT_EQ(heard[ours[0]], 2);
    EXPECT_EQ(heard[ours[1]], 2);
  });
}

TEST(NeighbourProbe, WhatCanBeNoQuestionIsRefused) {
  for (const char* nobodys : {"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::", "ff02::1"}) {
    EXPECT_EQ(probe({address(nobodys)}).error().code, ErrorCode::invalid_argument) << nobodys;
  }
}

}  // namespace
}  // namespace croft::os
