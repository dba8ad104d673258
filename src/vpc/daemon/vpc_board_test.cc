#include "vpc/daemon/vpc_board.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/fake_api_fixture.h"

namespace croft::app {
namespace {

using store::kube::FakeApi;
using store::kube::FakeCluster;
using wire::kube::VpcIpClaimRecord;
using Json = nlohmann::json;
using namespace std::chrono_literals;

const std::string kStocks = "/apis/vpc.uk8s.ucloud.cn/v1beta1/namespaces/kube-system/ipamds";

class VpcBoardTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* node : {"node-a", "node-b"}) make_node(node);
  }
  void make_node(const std::string& name) { cluster_->make("/api/v1/nodes/" + name, {{"metadata", {{"name", name}}}}); }
  void make_stock(const std::string& node, const std::string& subnet, int current, const std::string& status) {
    cluster_->make(kStocks + "/" + node, {{"metadata", {{"name", node}, {"namespace", "kube-system"}}},
                                          {"spec", {{"node", node}, {"addr", "10.0.0.3:7312"}, {"subnet", subnet}}},
                                          {"status", {{"current", current}, {"status", status}}}});
  }
  [[nodiscard]] bool is_there(const std::string& node) const {
    return !cluster_->object(kStocks + "/" + node).is_null();
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), 10s); }

  os::SystemClock clock_;
  std::shared_ptr<FakeCluster> cluster_ = std::make_shared<FakeCluster>();
  FakeApi api_{cluster_, clock_};
  VpcBoard board_{api_, clock_, "node-a", "10.0.0.2:7312"};
  cloud::Interface interface_ = [] {
    cloud::Interface made;
    made.subnet = "subnet-1";
    return made;
  }();
};

TEST_F(VpcBoardTest, SaysHowTheStockIs) {
  ASSERT_TRUE(board_.publish(interface_, {4, 3, 50, "normal"}, soon()));
  Json object = cluster_->object(kStocks + "/node-a");
  EXPECT_EQ(object["spec"], (Json{{"node", "node-a"}, {"addr", "10.0.0.2:7312"}, {"subnet", "subnet-1"}}));
  EXPECT_EQ(object["status"], (Json{{"current", 4}, {"high", 50}, {"low", 3}, {"status", "normal"}}));
  // Unchanged: not written again. Changed by another: overwritten with what is so now, and what he added stays.
  ASSERT_TRUE(board_.publish(interface_, {4, 3, 50, "normal"}, soon()));
  EXPECT_EQ(cluster_->object(kStocks + "/node-a"), object);
  cluster_->edit(kStocks + "/node-a", [](Json& changed) {
    changed["spec"]["addr"] = "wrong";
    changed["more"] = 1;
  });
  ASSERT_TRUE(board_.publish(interface_, {1, 3, 50, "hungry"}, soon()));
  object = cluster_->object(kStocks + "/node-a");
  EXPECT_EQ(object["spec"]["addr"], "10.0.0.2:7312");
  EXPECT_EQ(object["status"]["status"], "hungry");
  EXPECT_EQ(object["more"], 1);
}

TEST_F(VpcBoardTest, FindsPeersOfTheSubnetTheRichestFirst) {
  ASSERT_TRUE(board_.publish(interface_, {40, 3, 50, "normal"}, soon()));
  make_stock("node-b", "subnet-1", 4, "normal");
  make_stock("node-c", "subnet-1", 9, "normal");
  make_stock("node-d", "subnet-2", 20, "normal");
  make_stock("node-e", "subnet-1", 0, "dry");
  cluster_->make(kStocks + "/nonsense",
                 {{"metadata", {{"name", "nonsense"}, {"namespace", "kube-system"}}}, {"spec", 7}});
  const auto peers = board_.peers("subnet-1", soon());
  ASSERT_TRUE(peers) << peers.error().message;
  ASSERT_EQ(peers->size(), 3U);
  EXPECT_EQ((*peers)[2].node, "node-e") << "it has none free, and may keep one for a pod";
  EXPECT_EQ((*peers)[2].free, 0U);
  EXPECT_EQ((*peers)[0].node, "node-c");
  EXPECT_EQ((*peers)[0].free, 9U);
  EXPECT_EQ((*peers)[1].node, "node-b");
  EXPECT_EQ((*peers)[1].address, "10.0.0.3:7312");
}

TEST_F(VpcBoardTest, AnAddressThatIsNotNumericLeadsNowhereAndIsToldOnce) {
  std::vector<std::string> lines;
  const auto tell = [&](const std::string& line) { lines.push_back(line); };
  const std::string path = kStocks + "/node-b";
  make_stock("node-b", "subnet-1", 4, "normal");
  make_stock("node-c", "subnet-1", 9, "normal");
  const auto with = [&](const std::string& address) {
    cluster_->edit(path, [&](Json& changed) { changed["spec"]["addr"] = address; });
    std::vector<std::string> nodes;
    const auto peers = board_.peers("subnet-1", soon(), tell).value();
    for (const auto& peer : peers) nodes.push_back(peer.node);
    return nodes;
  };
  const std::vector<std::string> both{"node-c", "node-b"}, other{"node-c"};
  for (const char* address : {"unix:/run/other.sock", "unix:///run/other.sock", "http://10.0.0.3:7312",
                              "https://10.0.0.3:7312", "peer.example:7312", "localhost:7312", "10.0.0.3", "10.0.0.3:0",
                              "10.0.0.3:7312/", "10.0.0.3:7312/path", "fd00::3:7312", "evil\n:1"}) {
    lines.clear();
    EXPECT_EQ(with(address), other) << address;
    EXPECT_EQ(with(address), other) << address;
    ASSERT_EQ(lines.size(), 1U) << address;
    EXPECT_NE(lines.front().find("\"node-b\""), std::string::npos) << lines.front();
  }
  lines.clear();
  EXPECT_EQ(with("10.0.0.3:7312"), both);
  EXPECT_EQ(with("[fd00::3]:7312"), both);
  EXPECT_TRUE(lines.empty());
}

TEST_F(VpcBoardTest, CleansUpAtTheSecondLook) {
  make_stock("node-b", "subnet-1", 4, "normal");
  make_stock("gone", "subnet-1", 4, "normal");
  make_stock("back", "subnet-1", 4, "normal");
  ASSERT_TRUE(board_.clean_up(soon()));
  EXPECT_TRUE(is_there("gone")) << "one look is not enough";
  make_node("back");
  make_stock("late", "subnet-1", 4, "normal");
  ASSERT_TRUE(board_.clean_up(soon()));
  EXPECT_FALSE(is_there("gone"));
  EXPECT_TRUE(is_there("late"));
  EXPECT_TRUE(is_there("back"));
  EXPECT_TRUE(is_there("node-b"));
  ASSERT_TRUE(board_.clean_up(soon()));
  EXPECT_FALSE(is_there("late"));
}

TEST_F(VpcBoardTest, DoesNotBelieveAListOfNodesWithoutItself) {
  VpcBoard stranger(api_, clock_, "stranger", "10.0.0.9:7312");
  make_stock("gone", "subnet-1", 4, "normal");
  ASSERT_TRUE(stranger.clean_up(soon()));
  ASSERT_TRUE(stranger.clean_up(soon()));
  EXPECT_TRUE(is_there("gone"));
}

TEST_F(VpcBoardTest, AMissingKindIsNamed) {
  cluster_->do_not_serve(kStocks);
  const auto published = board_.publish(interface_, {4, 3, 50, "normal"}, soon());
  ASSERT_FALSE(published);
  EXPECT_NE(published.error().message.find("ipamds.vpc.uk8s.ucloud.cn"), std::string::npos)
      << published.error().message;
  EXPECT_NE(published.error().message.find("crds-vpc.yaml"), std::string::npos) << published.error().message;
}

/// A proxy sends what it is sent twice, and gives the second answer.
TEST_F(VpcBoardTest, WhatIsRepeatedOnItsWayIsDone) {
  api_.repeats = true;
  ASSERT_TRUE(board_.publish(interface_, {4, 3, 50, "normal"}, soon()));
  EXPECT_EQ(cluster_->object(kStocks + "/node-a")["status"]["current"], 4);
  ASSERT_TRUE(board_.publish(interface_, {3, 3, 50, "normal"}, soon()));
  EXPECT_EQ(cluster_->object(kStocks + "/node-a")["status"]["current"], 3);
}

TEST_F(VpcBoardTest, WhatAnotherWroteMeanwhileIsAConflict) {
  store::kube::VpcObjects<VpcIpClaimRecord> objects(api_);
  VpcIpClaimRecord record;
  record.ip = "10.0.0.9";
  const auto claim = objects.write({}, "shop", "web-0", record, soon());
  ASSERT_TRUE(claim) << claim.error().message;
  VpcIpClaimRecord other = record;
  other.ip = "10.0.0.10";
  ASSERT_TRUE(objects.write(*claim, "shop", "web-0", other, soon()));
  record.attached = true;
  EXPECT_EQ(objects.write(*claim, "shop", "web-0", record, soon()).error().code, ErrorCode::conflict);
  EXPECT_EQ(objects.write({}, "shop", "web-0", record, soon()).error().code, ErrorCode::already_exists);
  EXPECT_EQ(objects.find("shop", "web-0", soon()).value()->record, other);
}

}  // namespace
}  // namespace croft::app
