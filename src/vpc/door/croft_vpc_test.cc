#include "vpc/door/croft_vpc.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "ipam/use/transact.h"
#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"
#include "vpc/decide/supply.h"
#include "vpc/use/stock_calls.h"
#include "vpc/use/test_stock_node.h"

namespace croft::edge {
namespace {

using testing::HasSubstr;

class CroftVpcTest : public testing::Test {
 protected:
  /// `ipam` and `more` are further members, each with a comma before it.
  CniAnswer call(const std::string& command, const std::string& container, const std::string& ipam = "",
                 const std::string& more = "") {
    CniHost host;
    host.environment.command = command;
    host.environment.container_id = container;
    host.environment.netns = "/run/netns/" + container;
    host.environment.interface_name = "eth0";
    host.environment.path = "/opt/cni/bin";
    host.environment.args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=" + container;
    const std::string version = command == "GC" ? "1.1.0" : "1.0.0";
    host.read_stdin = [text = R"({"cniVersion": ")" + version + R"(", "name": "vpc", "ipam": {"type": "croft-vpc")" +
                              ipam + "}" + more + "}"]() -> Result<std::string> { return text; };
    host.compare_netns = [](const std::string&) { return os::SameNamespace::no; };
    return run_cni(croft_vpc_plugin(world_), host);
  }
  /// What stands behind a name in an answer, up to the comma or quote behind it.
  static std::string member(const CniAnswer& answer, const std::string& name) {
    const std::size_t at = answer.out.find("\"" + name + "\": ");
    if (at == std::string::npos) return "";
    std::size_t begin = at + name.size() + 4;
    if (answer.out[begin] == '"') ++begin;
    return answer.out.substr(begin, answer.out.find_first_of("\",\n", begin) - begin);
  }
  /// As an agent has left it.
  void describe(const core::StockNode& node) {
    EXPECT_TRUE(engine::transact(
        {store_, clock_, random_}, engine::TurnTaking::before_writing,
        [&](const core::Snapshot& snapshot, const Instant&) { return core::warm::plan_describe(snapshot, node); }));
  }
  static std::string address_of(const CniAnswer& answer) { return member(answer, "address"); }
  static std::string code_of(const CniAnswer& answer) { return member(answer, "code"); }

  ManualClock clock_;
  SeededRandom random_{1};
  engine::Life life_;
  engine::TestCloud cloud_{5};
  const net::Mac mac_ = engine::mac_of(1);
  store::MemoryStore store_;
  std::vector<std::string> log_;
  Result<core::StockAddress> agents_answer_ = fail(ErrorCode::unavailable, "there is no agent");
  Result<void> agents_release_ = fail(ErrorCode::unavailable, "there is no agent");
  int asked_ = 0;
  CroftVpcWorld world_{
      [this](const std::string&, store::OpenMode) -> Result<std::unique_ptr<store::Store>> {
        return std::unique_ptr<store::Store>(std::make_unique<store::ForwardingStore>(store_));
      },
      clock_,
      random_,
      [this](const std::string&, const std::string& line) { log_.push_back(line); },
      [this](const std::string&, const core::warm::Request&) {
        ++asked_;
        return agents_answer_;
      },
      [this](const std::string&, const core::warm::Release&) {
        ++asked_;
        return agents_release_;
      },
      [this](const wire::cni::VpcConfig&) -> Result<VpcCloud> {
        return VpcCloud{std::make_unique<engine::TestProvider>(cloud_, mac_, life_), nullptr};
      },
      nullptr,
  };
};

TEST_F(CroftVpcTest, WithoutAgentItAsksTheCloudAndThenTheStock) {
  const std::string address = address_of(call("ADD", "c1"));
  EXPECT_EQ(address, "10.9.0.10/16") << "the subnet's length";
  EXPECT_THAT(log_.back(), HasSubstr("via=cloud"));
  EXPECT_EQ(address_of(call("ADD", "c1")), address);
  EXPECT_THAT(log_.back(), HasSubstr("via=store"));
  EXPECT_EQ(call("DEL", "c1").exit_code, 0);
  EXPECT_EQ(call("DEL", "c1").exit_code, 0) << "again";
  EXPECT_NE(address_of(call("ADD", "c2")), address) << "it rests";
  clock_.advance(std::chrono::seconds{30});
  EXPECT_EQ(address_of(call("ADD", "c3")), address);
}

TEST_F(CroftVpcTest, WithoutAgentTheNodeKeepsTheAgentsLimit) {
  core::StockNode node;
  node.node = "node-a";
  node.mac = mac_;
  node.cooldown_seconds = 30;
  node.node_max = 2;
  describe(node);
  const CniAnswer first = call("ADD", "c1");
  EXPECT_EQ(first.exit_code, 0) << first.out;
  // What another asks for at this moment counts too; afterwards it is nobody's.
  core::StockIntent other;
  other.id = std::string(32, 'a');
  other.count = 1;
  other.mac = mac_;
  other.subnet = "subnet-1";
  other.begun_at = {clock_.now().boot, clock_.now().since_boot};
  ASSERT_TRUE(engine::transact(
      {store_, clock_, random_}, engine::TurnTaking::before_writing,
      [&](const core::Snapshot& snapshot, const Instant&) { return core::warm::plan_begin(snapshot, other); }));
  const CniAnswer between = call("ADD", "c2");
  EXPECT_EQ(code_of(between), "100") << between.out;
  EXPECT_EQ(cloud_.of(mac_).size(), 1U);
  ASSERT_TRUE(engine::transact({store_, clock_, random_}, engine::TurnTaking::before_writing,
                               [&](const core::Snapshot& snapshot, const Instant& now) {
                                 return core::warm::plan_take(snapshot, other.id, {}, now);
                               }));
  EXPECT_EQ(call("ADD", "c2").exit_code, 0);
  const CniAnswer refused = call("ADD", "c3");
  EXPECT_EQ(code_of(refused), "100") << refused.out;
  EXPECT_THAT(refused.out, HasSubstr("the node may have 2 addresses (--max-addresses)"));
  EXPECT_EQ(cloud_.of(mac_).size(), 2U) << "the cloud was not asked";
  // What rests is the node's too; once it has rested a pod may have it.
  const std::string before = address_of(call("ADD", "c1"));
  EXPECT_EQ(call("DEL", "c1").exit_code, 0);
  EXPECT_EQ(code_of(call("ADD", "c3")), "100");
  clock_.advance(std::chrono::seconds{30});
  EXPECT_EQ(address_of(call("ADD", "c3")), before);
  EXPECT_EQ(cloud_.of(mac_).size(), 2U);
}

/// The agent knew another card: what is on that one is given to nobody, and what comes is of the card of now.
TEST_F(CroftVpcTest, WithoutAgentAReplacedCardIsFollowed) {
  core::StockNode node;
  node.node = "node-a";
  node.mac = net::Mac::parse("52:54:00:00:00:09").value();
  describe(node);
  const CniAnswer first = call("ADD", "c1");
  ASSERT_EQ(first.exit_code, 0) << first.out;
  EXPECT_EQ(cloud_.of(mac_).size(), 1U) << "one was asked for";
  EXPECT_EQ(engine::view_stock({store_, clock_, random_})->node->mac, mac_);
}

TEST_F(CroftVpcTest, TheAgentsAnswerIsTheAnswer) {
  core::StockAddress given;
  given.address = net::Address::parse("10.9.0.99").value();
  given.prefix_length = 24;
  agents_answer_ = given;
  const CniAnswer answer = call("ADD", "c1", R"(, "gateway": "10.9.0.250")");
  EXPECT_EQ(address_of(answer), "10.9.0.99/24");
  EXPECT_THAT(answer.out, HasSubstr("\"gateway\": \"10.9.0.250\""));
  EXPECT_THAT(answer.out, HasSubstr("\"dst\": \"0.0.0.0/0\""));
  EXPECT_TRUE(cloud_.of(mac_).empty());
  agents_answer_ = fail(ErrorCode::exhausted, "subnet-1 has no addresses left");
  const CniAnswer refused = call("ADD", "c2");
  EXPECT_EQ(code_of(refused), "100");
  EXPECT_THAT(refused.out, HasSubstr("subnet-1 has no addresses left"));
  EXPECT_TRUE(cloud_.of(mac_).empty()) << "the cloud is the agent's to ask";
}

TEST_F(CroftVpcTest, WhatTheHostUsesIsNotGivenThoughTheRecordsSayThatItIsFree) {
  const net::Address used = net::Address::parse("10.9.0.10").value();
  ASSERT_EQ(address_of(call("ADD", "c1")), "10.9.0.10/16");
  ASSERT_EQ(call("DEL", "c1").exit_code, 0);
  clock_.advance(std::chrono::seconds{30});
  world_.used_by_host = [&]() -> Result<std::set<net::Address>> { return std::set<net::Address>{used}; };
  EXPECT_EQ(address_of(call("ADD", "c2")), "10.9.0.11/16");
  world_.used_by_host = []() -> Result<std::set<net::Address>> {
    return fail(ErrorCode::unavailable, "netlink does not answer");
  };
  EXPECT_EQ(address_of(call("ADD", "c3")), "10.9.0.10/16") << "a pod starts all the same";
}

TEST_F(CroftVpcTest, InTheSiblingACallIsAsOldAsItIs) {
  world_.ask_to_assign = [this](const std::string&, const core::warm::Request&) {
    clock_.advance(std::chrono::seconds{2});
    return fail(ErrorCode::unavailable, "there is no agent");
  };
  std::optional<CallSoFar> handed;
  world_.hand_over = [&](const CallSoFar& so_far) {
    handed = so_far;
    return Error{ErrorCode::unavailable, "croft-ipam-cluster is not there", {}};
  };
  const Instant began = clock_.now();
  EXPECT_EQ(code_of(call("ADD", "c1")), "11");
  ASSERT_TRUE(handed);
  EXPECT_EQ(handed->began, began);
  world_.hand_over = {};
  world_.so_far = handed;
  EXPECT_EQ(call("ADD", "c1").exit_code, 0);
  EXPECT_THAT(log_.back(), HasSubstr(" us=2000000 "));
}

TEST_F(CroftVpcTest, NoneMeansThatNoAgentIsAsked) {
  EXPECT_EQ(call("ADD", "c1", R"(, "agent": "none")").exit_code, 0);
  EXPECT_EQ(call("DEL", "c1", R"(, "agent": "none")").exit_code, 0);
  EXPECT_EQ(asked_, 0);
}

TEST_F(CroftVpcTest, AnExhaustedOrAbsentCloudIsToldAsSuch) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(call("ADD", "c" + std::to_string(i)).exit_code, 0);
  const CniAnswer full = call("ADD", "c9");
  EXPECT_EQ(code_of(full), "100");
  cloud_.fate = [] { return engine::CallFate::away; };
  EXPECT_EQ(code_of(call("ADD", "c10")), "11");
  EXPECT_NE(address_of(call("ADD", "c1")).find("10.9.0."), std::string::npos) << "what is held needs no cloud";
}

TEST_F(CroftVpcTest, CheckKnowsTheHolder) {
  const CniAnswer answer = call("ADD", "c1");
  const std::string previous = ", \"prevResult\": " + answer.out;
  EXPECT_EQ(call("CHECK", "c1", "", previous).exit_code, 0);
  EXPECT_NE(call("CHECK", "c2", "", previous).exit_code, 0);
}

TEST_F(CroftVpcTest, GcReleasesWhatTheRuntimeDoesNotList) {
  const std::string listed = R"(, "cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}])";
  ASSERT_EQ(call("ADD", "c1").exit_code, 0);
  ASSERT_EQ(call("ADD", "c2").exit_code, 0);
  const auto held = [&] {
    const auto view = engine::view_stock({store_, clock_, random_}).value();
    return std::ranges::count(view.addresses, core::StockAddressState::held, &core::StockAddress::state);
  };
  EXPECT_EQ(call("GC", "", "", listed).exit_code, 0);
  EXPECT_EQ(held(), 2) << "its ADD may not have reached the list";
  clock_.advance(std::chrono::seconds{60});
  EXPECT_EQ(call("GC", "").exit_code, 0) << "without a list nothing is known";
  EXPECT_EQ(held(), 2);
  EXPECT_EQ(call("GC", "", "", listed).exit_code, 0);
  EXPECT_EQ(held(), 1);
  EXPECT_THAT(log_.back(), HasSubstr("released=10.9.0.11"));
}

TEST_F(CroftVpcTest, FaultsOfTheConfigurationAreNamed) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"agent", "5"},
                                                                                    {"agent", R"("relative/path")"},
                                                                                    {"gateway", R"("nonsense")"},
                                                                                    {"cooldownSeconds", "-1"},
                                                                                    {"probeUnitMilliseconds", "1"},
                                                                                    {"rotes", "[]"}}) {
    const std::string ipam = ", \"" + name + "\": " + value;
    const CniAnswer answer = call("ADD", "c1", ipam);
    EXPECT_EQ(answer.exit_code, 1) << name;
    EXPECT_THAT(answer.out, HasSubstr(name)) << name;
    EXPECT_EQ(call("DEL", "c1", ipam).exit_code, 0) << "a DEL needs none of it: " << name;
  }
}

}  // namespace
}  // namespace croft::edge
