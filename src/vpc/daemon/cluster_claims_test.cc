#include "vpc/daemon/cluster_claims.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/fake_api_fixture.h"
#include "vpc/use/test_stock_node.h"

namespace croft::app {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

class ClusterClaimsTest : public testing::Test {
 protected:
  void make(const std::string& name_space, const std::string& name, const Json& spec) {
    // As the API lists them of all namespaces.
    cluster_->make("/apis/vpc.uk8s.ucloud.cn/v1beta1/vpcipclaims/" + name,
                   {{"metadata", {{"name", name}, {"namespace", name_space}}}, {"spec", spec}});
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), 10s); }

  os::SystemClock clock_;
  std::shared_ptr<store::kube::FakeCluster> cluster_ = std::make_shared<store::kube::FakeCluster>();
  store::kube::FakeApi api_{cluster_, clock_};
  ClusterClaims claims_{api_, "node-a"};
};

TEST_F(ClusterClaimsTest, WhatIsNoAddressPromisesNothing) {
  make("shop", "web-0", {{"ip", "10.9.0.7"}});
  make("shop", "web-1", {{"ip", ""}});
  make("tenant", "bad", {{"ip", "10.7.0.999"}});
  make("tenant", "worse", {{"ip", "\x1b[31m\n"}});
  const auto claimed = claims_.claimed(soon());
  ASSERT_TRUE(claimed) << claimed.error().message;
  EXPECT_THAT(*claimed, testing::ElementsAre(net::Address::parse("10.9.0.7").value()));
}

/// A tenant's claim, and a node whose records are lost: what its pods have is taken in, and nothing is put aside.
TEST_F(ClusterClaimsTest, ARebuildDoesNotStopForOneThatIsNonsense) {
  make("tenant", "bad", {{"ip", "10.7.0.999"}});
  ManualClock clock;
  store::kube::FakeApi api(cluster_, clock);
  ClusterClaims claims(api, "node-a");
  engine::TestCloud cloud(20);
  engine::Node node(cloud, clock, 1);
  node.options.marks = {.low = 6, .high = 20};
  node.other_claims = &claims;
  node.begin();
  static_cast<void>(node.keeper->step());
  const std::string address = node.add("p1");
  ASSERT_NE(address, "");
  const auto before = node.recorded();
  node.lose_records();
  node.begin();
  for (int i = 0; i < 60; ++i) {
    clock.advance(5s);
    static_cast<void>(node.keeper->step());
  }
  ASSERT_TRUE(node.find(net::Address::parse(address).value()));
  EXPECT_EQ(node.find(net::Address::parse(address).value())->state, core::WarmState::held);
  for (const net::Address& one : before) {
    const auto found = node.find(one);
    ASSERT_TRUE(found) << one.to_string();
    EXPECT_NE(found->state, core::WarmState::quarantined) << one.to_string() << ": " << found->why;
  }
  EXPECT_TRUE(node.view().intents.empty()) << "it has ended";
}

}  // namespace
}  // namespace croft::app
