#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/fake_api_fixture.h"
#include "vpc/daemon/cluster_claims.h"

namespace croft::app {
namespace {

using namespace std::chrono_literals;
using store::kube::FakeApi;
using store::kube::FakeCluster;
using Json = nlohmann::json;

const std::string kClaims = "/apis/vpc.uk8s.ucloud.cn/v1beta1/namespaces/shop/vpcipclaims/";

/// As an API server lists the claims of all namespaces; here all are of one.
class AllNamespaces final : public store::kube::Api {
 public:
  explicit AllNamespaces(store::kube::Api& api) : api_(api) {}
  [[nodiscard]] store::kube::Answer call(const store::kube::Request& request, Deadline deadline) override {
    const std::string all = "/apis/vpc.uk8s.ucloud.cn/v1beta1/vpcipclaims";
    store::kube::Request asked = request;
    if (asked.path.starts_with(all)) asked.path = kClaims.substr(0, kClaims.size() - 1) + asked.path.substr(all.size());
    return api_.call(asked, deadline);
  }
  [[nodiscard]] store::kube::WatchAnswer watch(const std::string& path, Deadline deadline) override {
    return api_.watch(path, deadline);
  }

 private:
  store::kube::Api& api_;
};

class DeletedClaimsTest : public testing::Test {
 protected:
  DeletedClaimsTest() {
    for (const char* node : {"node-a", "node-b"}) {
      cluster_->make(std::string("/api/v1/nodes/") + node, {{"metadata", {{"name", node}}}});
    }
  }
  void make_claim(const std::string& pod, const std::string& ip, const std::string& node) {
    wire::kube::VpcIpClaimRecord record;
    record.ip = ip;
    record.attached = true;
    record.node = node;
    store::kube::VpcObjects<wire::kube::VpcIpClaimRecord> objects(api_);
    const auto made = objects.write({}, "shop", pod, record, soon());
    ASSERT_TRUE(made) << made.error().message;
  }
  /// As `kubectl delete` does it.
  void remove(const std::string& pod) {
    cluster_->edit(kClaims + pod,
                   [](auto& object) { object["metadata"]["deletionTimestamp"] = "2026-01-15T10:00:00Z"; });
  }
  bool has(const std::string& pod) { return !cluster_->object(kClaims + pod).is_null(); }
  int pass(const std::string& held = "") {
    const auto gone = claims_.let_go([&](const net::Address& one) { return one.to_string() == held; }, soon());
    EXPECT_TRUE(gone) << gone.error().message;
    return gone ? *gone : -1;
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), 10s); }

  os::SystemClock clock_;
  std::shared_ptr<FakeCluster> cluster_ = std::make_shared<FakeCluster>();
  FakeApi one_namespace_{cluster_, clock_};
  AllNamespaces api_{one_namespace_};
  ClusterClaims claims_{api_, "node-a"};
};

TEST_F(DeletedClaimsTest, OneOfThisNodeGoesOnceNoPodLivesWithItsAddress) {
  make_claim("web-0", "10.9.0.7", "node-a");
  make_claim("web-1", "10.9.0.8", "node-a");
  EXPECT_EQ(pass(), 0) << "nobody has deleted any";
  remove("web-0");
  EXPECT_EQ(pass("10.9.0.7"), 0) << "its pod lives";
  EXPECT_TRUE(has("web-0"));
  EXPECT_EQ(pass("10.9.0.8"), 1);
  EXPECT_FALSE(has("web-0"));
  EXPECT_TRUE(has("web-1"));
}

TEST_F(DeletedClaimsTest, OneOfAnotherNodeGoesWhenThatIsGone) {
  make_claim("web-0", "10.9.0.7", "node-b");
  make_claim("web-1", "10.9.0.8", "node-x");
  make_claim("web-2", "10.9.0.9", "");
  for (const char* pod : {"web-0", "web-1", "web-2"}) remove(pod);
  EXPECT_EQ(pass(), 1);
  EXPECT_TRUE(has("web-0")) << "its own node's agent says so";
  EXPECT_FALSE(has("web-1"));
  EXPECT_TRUE(has("web-2")) << "UK8S' own";
  make_claim("web-3", "10.9.0.10", "node-x");
  remove("web-3");
  ClusterClaims stranger(api_, "node-y");
  EXPECT_EQ(stranger.let_go([](const net::Address&) { return false; }, soon()).value_or(-1), 0)
      << "a list without the own node is not to be believed";
}

TEST_F(DeletedClaimsTest, FinalizersOfOthersStay) {
  make_claim("web-0", "10.9.0.7", "node-a");
  cluster_->edit(kClaims + "web-0",
                 [](auto& object) { object["metadata"]["finalizers"].push_back("example.org/slow"); });
  remove("web-0");
  EXPECT_EQ(pass(), 1);
  ASSERT_TRUE(has("web-0"));
  const Json claim = cluster_->object(kClaims + "web-0");
  EXPECT_EQ(claim["metadata"]["finalizers"], Json::array({"example.org/slow"}));
  EXPECT_EQ(claim["status"]["attached"], false);
  EXPECT_EQ(claim["status"]["lastDetachtime"].get<std::string>().size(), 19U);
  EXPECT_EQ(pass(), 0) << "once is enough";
}

}  // namespace
}  // namespace croft::app
