// What vpc/provider.h promises, of UCloud's client on a cloud that loses answers, throttles and runs out.

#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "os/clock.h"
#include "os/scratch_directory.h"
#include "vpc/ucloud/ucloud.h"

namespace croft::cloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Family {
  const char* range;
  const char* gateway;
};

class OnSimulator : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    std::ofstream(scratch.file("cloud.json"))
        << std::string(R"({"tokenLifeSeconds":600,"subnets":[{"id":"subnet-1","range":")") + GetParam().range +
               R"(","gateway":")" + GetParam().gateway +
               R"("},{"id":"subnet-2","range":"10.8.0.0/28","gateway":"10.8.0.1"}],
        "nodes":[{"name":"node-a","mac":"52:54:00:00:00:0a","subnet":"subnet-1"},
                 {"name":"node-b","mac":"52:54:00:00:00:0B","subnet":"subnet-1"},
                 {"name":"node-c","mac":"52:54:00:00:00:0c","subnet":"subnet-2","address":"10.8.0.2"}]})";
    // The shell says its number, and becomes the cloud, which says where it listens.
    const std::string command = "echo $$; exec " CROFT_VPC_SIM " --config " + scratch.file("cloud.json");
    output = ::popen(command.c_str(), "r");
    ASSERT_NE(output, nullptr);
    char host[64] = {};
    ASSERT_EQ(std::fscanf(output, "%d listening on %63s", &process, host), 2);
    where = host;
    a = provider("node-a");
    b = provider("node-b");
  }
  void TearDown() override {
    EXPECT_EQ(sim("/sim/check"), "[]");
    ::kill(process, SIGTERM);
    ::pclose(output);
  }

  std::unique_ptr<Provider> provider(const std::string& node) {
    ucloud::Place place;
    place.api = "http://" + where;
    place.metadata = place.api + "/" + node;
    return ucloud::open_ucloud(place, {}, {}, clock).value();
  }
  std::string sim(const std::string& target, const std::string& form = {}) {
    os::Http1Client client(wire::Url::parse("http://" + where).value(), {}, clock);
    const auto response = client.call({"POST", target, {}, form}, soon());
    EXPECT_TRUE(response && response->status == 200) << target << (response ? response->body : "");
    return response ? response->body : "";
  }
  Deadline soon() { return Deadline::after(clock.now(), seconds(20)); }
  std::set<net::Address> of(Provider& one) {
    std::set<net::Address> all;
    const auto found = one.describe(one.interface(soon()).value(), "subnet-1", soon()).value();
    for (const auto& address : found) {
      all.insert(address.address);
    }
    return all;
  }
  Result<std::vector<CloudAddress>> take(Provider& one, std::uint32_t count) {
    return one.allocate(one.interface(soon()).value(), "subnet-1", count, soon());
  }

  os::SystemClock clock;
  os::ScratchDirectory scratch;
  std::FILE* output = nullptr;
  pid_t process = 0;
  std::string where;
  std::unique_ptr<Provider> a, b;
};

TEST_P(OnSimulator, GivesAndTakesBack) {
  const auto given = take(*a, 3).value();
  ASSERT_EQ(given.size(), 3U);
  const auto range = net::Prefix::parse(GetParam().range).value();
  for (const CloudAddress& one : given) {
    EXPECT_TRUE(range.contains(one.address));
    EXPECT_EQ(one.prefix_length, static_cast<std::uint32_t>(range.length()));
    EXPECT_EQ(one.gateway->to_string(), GetParam().gateway);
    EXPECT_EQ(one.mac, a->interface(soon())->mac);
  }
  EXPECT_EQ(of(*a).size(), 3U);
  EXPECT_TRUE(of(*b).empty());
  const auto subnet = a->subnet("uvnet-sim", "subnet-1", soon());
  ASSERT_TRUE(subnet) << subnet.error().message;
  EXPECT_EQ(subnet->available, 13U - 3U);
  EXPECT_EQ(subnet->range, range) << "what is given is compared with it";
  ASSERT_TRUE(subnet->gateway);
  EXPECT_EQ(subnet->gateway->to_string(), GetParam().gateway);
  EXPECT_TRUE(a->release(given[1], soon()));
  EXPECT_TRUE(a->release(given[1], soon()));
  EXPECT_EQ(of(*a), (std::set{given[0].address, given[2].address}));
  const auto to = b->interface(soon()).value();
  EXPECT_EQ(b->allocate_address(to, "subnet-1", given[0].address, soon()).error().code, ErrorCode::already_exists);
  EXPECT_EQ(b->allocate_address(to, "subnet-1", given[1].address, soon())->address, given[1].address);
  EXPECT_EQ(a->describe_address("uvnet-sim", "subnet-1", given[1].address, soon()).value()->mac, to.mac);
}

TEST_P(OnSimulator, GivesNobodyANodesOwnAddress) {
  const auto c = provider("node-c");
  const auto given = c->allocate(c->interface(soon()).value(), "subnet-2", 12, soon());
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->size(), 12U) << "of 14, one is the gateway's and one the node's";
  for (const CloudAddress& one : *given) EXPECT_NE(one.address.to_string(), "10.8.0.2");
  EXPECT_FALSE(c->allocate(c->interface(soon()).value(), "subnet-2", 1, soon()));
}

TEST_P(OnSimulator, MovesInsideASubnetOnly) {
  const auto given = take(*a, 1).value();
  const auto mac_b = b->interface(soon())->mac;
  EXPECT_EQ(a->move(given[0], net::Mac::parse("52:54:00:00:00:0c").value(), soon()).error().code,
            ErrorCode::refused_by_configuration);
  EXPECT_TRUE(a->move(given[0], mac_b, soon()));
  EXPECT_TRUE(of(*a).empty());
  EXPECT_EQ(of(*b).size(), 1U);
  EXPECT_EQ(a->move(given[0], net::Mac::parse("52:54:00:00:00:0a").value(), soon()).error().code, ErrorCode::not_found);
}

TEST_P(OnSimulator, RunsOut) {
  EXPECT_EQ(take(*a, 40)->size(), 13U);  // 16 without the first, the last and the gateway
  EXPECT_EQ(take(*a, 1).error().code, ErrorCode::exhausted);
  EXPECT_EQ(take(*b, 2).error().code, ErrorCode::exhausted);
  sim("/sim/delete-node", "node=node-a");
  EXPECT_EQ(take(*b, 2)->size(), 2U);
}

TEST_P(OnSimulator, SaysWhenNobodyKnows) {
  sim("/sim/fault", "action=AllocateSecondaryIp&kind=lose&committed=true");
  EXPECT_EQ(take(*a, 1).error().code, ErrorCode::unknown_outcome);
  EXPECT_EQ(of(*a).size(), 1U);
  sim("/sim/fault", "action=AllocateBatchSecondaryIp&kind=ret_code&value=150&committed=false");
  EXPECT_EQ(take(*a, 2).error().code, ErrorCode::unknown_outcome);
  EXPECT_EQ(of(*a).size(), 1U);
  sim("/sim/fault", "action=AllocateBatchSecondaryIp&kind=http&value=504&committed=true");
  EXPECT_EQ(take(*a, 2).error().code, ErrorCode::unknown_outcome);
  EXPECT_EQ(of(*a).size(), 3U);
  sim("/sim/fault", "action=AllocateSecondaryIp&kind=hang");
  EXPECT_EQ(
      a->allocate(*a->interface(soon()), "subnet-1", 1, Deadline::after(clock.now(), milliseconds(200))).error().code,
      ErrorCode::unknown_outcome);
  EXPECT_EQ(of(*a).size(), 3U);
  sim("/sim/fail-items", "count=1");
  EXPECT_EQ(take(*a, 3)->size(), 2U);
  sim("/sim/outage", "mode=refuse");
  EXPECT_EQ(a->describe(*a->interface(soon()), "subnet-1", soon()).error().code, ErrorCode::unavailable);
  sim("/sim/heal");
  EXPECT_EQ(of(*a).size(), 5U);
}

TEST_P(OnSimulator, IsThrottledAndRenewsTokens) {
  static_cast<void>(of(*a));
  sim("/sim/expire-tokens");
  EXPECT_EQ(take(*a, 1)->size(), 1U);
  sim("/sim/rate", "action=AllocateSecondaryIp&per_minute=1&burst=1");
  EXPECT_TRUE(take(*a, 1));
  EXPECT_EQ(take(*a, 1).error().code, ErrorCode::unavailable);
  EXPECT_EQ(of(*a).size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Families, OnSimulator,
                         testing::Values(Family{"10.9.1.0/28", "10.9.1.1"}, Family{"fd00:9::/124", "fd00:9::1"}),
                         [](const auto& which) { return which.index == 0 ? "v4" : "v6"; });

}  // namespace
}  // namespace croft::cloud
