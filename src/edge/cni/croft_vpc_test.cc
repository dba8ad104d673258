#include "edge/cni/croft_vpc.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/manual_clock.h"
#include "engine/test_cloud.h"
#include "engine/warm_stock.h"
#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"

namespace croft::edge {
namespace {

using testing::HasSubstr;

/// A provider that outlives its owner's deletion, as each call of the plugin opens its own.
class ForwardingProvider final : public cloud::Provider {
 public:
  explicit ForwardingProvider(cloud::Provider& to) : to_(to) {}
  std::string name() const override { return to_.name(); }
  Result<cloud::Interface> interface(Deadline d) override { return to_.interface(d); }
  Result<std::vector<cloud::CloudAddress>> allocate(const cloud::Interface& i, const std::string& s, std::uint32_t n,
                                                    Deadline d) override {
    return to_.allocate(i, s, n, d);
  }
  Result<cloud::CloudAddress> allocate_this(const cloud::Interface& i, const std::string& s, const net::Address& a,
                                            Deadline d) override {
    return to_.allocate_this(i, s, a, d);
  }
  Result<void> release(const cloud::CloudAddress& a, Deadline d) override { return to_.release(a, d); }
  Result<void> move(const cloud::CloudAddress& a, const net::Mac& m, Deadline d) override { return to_.move(a, m, d); }
  Result<std::vector<cloud::CloudAddress>> describe(const cloud::Interface& i, const std::string& s,
                                                    Deadline d) override {
    return to_.describe(i, s, d);
  }
  Result<std::optional<cloud::CloudAddress>> describe_this(const std::string& v, const std::string& s,
                                                           const net::Address& a, Deadline d) override {
    return to_.describe_this(v, s, a, d);
  }
  Result<cloud::SubnetState> subnet(const std::string& v, const std::string& s, Deadline d) override {
    return to_.subnet(v, s, d);
  }
  std::uint64_t throttled() const override { return to_.throttled(); }
  void on_call(std::function<void(const Call&)> tell) override { to_.on_call(std::move(tell)); }

 private:
  cloud::Provider& to_;
};

class CroftVpcTest : public testing::Test {
 protected:
  CniAnswer call(const std::string& command, const std::string& container, nlohmann::json ipam = {},
                 nlohmann::json more = {}) {
    nlohmann::json config = {{"cniVersion", "1.0.0"}, {"name", "vpc"}};
    config["ipam"] = {{"type", "croft-vpc"}};
    config["ipam"].update(ipam.is_null() ? nlohmann::json::object() : ipam);
    if (!more.is_null()) config.update(more);
    CniHost host;
    host.environment.command = command;
    host.environment.container_id = container;
    host.environment.netns = "/run/netns/" + container;
    host.environment.interface_name = "eth0";
    host.environment.path = "/opt/cni/bin";
    host.environment.args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=" + container;
    host.read_stdin = [text = config.dump()]() -> Result<std::string> { return text; };
    host.compare_netns = [](const std::string&) { return NetnsAnswer::different; };
    return run_cni(croft_vpc_plugin(world_), host);
  }
  std::string address_of(const CniAnswer& answer) {
    const auto json = nlohmann::json::parse(answer.out, nullptr, false);
    if (answer.exit_code != 0 || json.is_discarded()) return answer.out;
    return json["ips"][0]["address"];
  }
  static int code_of(const CniAnswer& answer) {
    const auto json = nlohmann::json::parse(answer.out, nullptr, false);
    return json.is_discarded() ? -1 : json.value("code", 0);
  }

  ManualClock clock_;
  SeededRandom random_{1};
  engine::Life life_;
  engine::TestCloud cloud_{5};
  engine::TestProvider provider_{cloud_, net::Mac::parse("52:54:00:00:00:01").value(), life_};
  store::MemoryStore store_;
  std::vector<std::string> log_;
  Result<core::WarmAddress> agents_answer_ = fail(ErrorCode::unavailable, "there is no agent");
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
        return VpcCloud{std::make_unique<ForwardingProvider>(provider_), nullptr};
      },
      nullptr,
      1,
      1,
      [](std::uint32_t, std::uint64_t) { return false; },
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

TEST_F(CroftVpcTest, TheAgentsAnswerIsTheAnswer) {
  core::WarmAddress given;
  given.address = net::Address::parse("10.9.0.99").value();
  given.prefix_length = 24;
  agents_answer_ = given;
  const CniAnswer answer = call("ADD", "c1", {{"gateway", "10.9.0.250"}});
  EXPECT_EQ(address_of(answer), "10.9.0.99/24");
  EXPECT_THAT(answer.out, HasSubstr("\"gateway\": \"10.9.0.250\""));
  EXPECT_THAT(answer.out, HasSubstr("\"dst\": \"0.0.0.0/0\""));
  EXPECT_TRUE(cloud_.of(net::Mac::parse("52:54:00:00:00:01").value()).empty());
  agents_answer_ = fail(ErrorCode::exhausted, "subnet-1 has no addresses left");
  const CniAnswer refused = call("ADD", "c2");
  EXPECT_EQ(code_of(refused), 100);
  EXPECT_THAT(refused.out, HasSubstr("subnet-1 has no addresses left"));
  EXPECT_TRUE(cloud_.of(net::Mac::parse("52:54:00:00:00:01").value()).empty()) << "the cloud is the agent's to ask";
}

TEST_F(CroftVpcTest, NoneMeansThatNoAgentIsAsked) {
  EXPECT_EQ(call("ADD", "c1", {{"agent", "none"}}).exit_code, 0);
  EXPECT_EQ(call("DEL", "c1", {{"agent", "none"}}).exit_code, 0);
  EXPECT_EQ(asked_, 0);
}

TEST_F(CroftVpcTest, AnExhaustedOrAbsentCloudIsToldAsSuch) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(call("ADD", "c" + std::to_string(i)).exit_code, 0);
  const CniAnswer full = call("ADD", "c9");
  EXPECT_EQ(code_of(full), 100);
  cloud_.fate = [] { return engine::CallFate::away; };
  EXPECT_EQ(code_of(call("ADD", "c10")), 11);
  EXPECT_NE(address_of(call("ADD", "c1")).find("10.9.0."), std::string::npos) << "what is held needs no cloud";
}

TEST_F(CroftVpcTest, CheckKnowsTheHolder) {
  const CniAnswer answer = call("ADD", "c1");
  const nlohmann::json previous = {{"prevResult", nlohmann::json::parse(answer.out)}};
  EXPECT_EQ(call("CHECK", "c1", {}, previous).exit_code, 0);
  EXPECT_NE(call("CHECK", "c2", {}, previous).exit_code, 0);
}

TEST_F(CroftVpcTest, FaultsOfTheConfigurationAreNamed) {
  for (const auto& [member, value] :
       std::vector<std::pair<std::string, nlohmann::json>>{{"agent", 5},
                                                           {"agent", "relative/path"},
                                                           {"gateway", "nonsense"},
                                                           {"cooldownSeconds", -1},
                                                           {"probeUnitMilliseconds", 1},
                                                           {"rotes", nlohmann::json::array()}}) {
    const CniAnswer answer = call("ADD", "c1", {{member, value}});
    EXPECT_EQ(answer.exit_code, 1) << member;
    EXPECT_THAT(answer.out, HasSubstr(member)) << member;
    EXPECT_EQ(call("DEL", "c1", {{member, value}}).exit_code, 0) << "a DEL needs none of it: " << member;
  }
}

}  // namespace
}  // namespace croft::edge
