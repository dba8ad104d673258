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

const std::string kPods = "/api/v1/namespaces/shop/pods/";
const std::string kClaims = "/apis/vpc.uk8s.ucloud.cn/v1beta1/namespaces/shop/vpcipclaims/";
constexpr const char* kFixedAnnotation = "network.beta.kubernetes.io/ucloud-statefulset-static-ip";
constexpr const char* kPolicyAnnotation = "network.beta.kubernetes.io/ucloud-statefulset-ip-claim-policy";

class FixedAddressesTest : public testing::Test {
 protected:
  core::PodIdentity make_pod(const std::string& name, const Json& annotations) {
    cluster_->make(kPods + name, {{"metadata", {{"name", name}, {"namespace", "shop"}, {"annotations", annotations}}}});
    return {name, "shop", cluster_->object(kPods + name)["metadata"].value("uid", "")};
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), 10s); }
  static core::WarmAddress held_by(const core::PodIdentity& pod, const std::string& address = "10.9.0.7") {
    core::WarmAddress held;
    held.address = net::Address::parse(address).value();
    held.prefix_length = 24;
    held.gateway = net::Address::parse("10.9.0.1").value();
    held.mac = net::Mac::parse("52:54:00:00:00:0a").value();
    held.vpc = "uvnet-1";
    held.subnet = "subnet-1";
    held.state = core::WarmState::held;
    held.owner = {"net", "c1", "eth0"};
    held.pod = pod;
    return held;
  }

  os::SystemClock clock_;
  std::shared_ptr<FakeCluster> cluster_ = std::make_shared<FakeCluster>();
  FakeApi api_{cluster_, clock_};
  ClusterClaims fixed_{api_, ""};
};

TEST_F(FixedAddressesTest, AnAnnotationAsksForIt) {
  const auto keeps = make_pod("web-0", {{kFixedAnnotation, "true"}, {kPolicyAnnotation, "1h10m20s"}});
  const auto other = make_pod("job-1", {{kFixedAnnotation, "false"}});
  auto wish = fixed_.wish_of(keeps, soon());
  ASSERT_TRUE(wish) << wish.error().message;
  EXPECT_TRUE(wish->is_fixed);
  EXPECT_EQ(wish->release_time, "1h10m20s");
  ASSERT_TRUE(fixed_.wish_of(other, soon()));
  EXPECT_FALSE(fixed_.wish_of(other, soon())->is_fixed);
  EXPECT_TRUE(fixed_.wish_of(keeps, soon())->is_fixed);
  EXPECT_FALSE(fixed_.wish_of({"static-0", "shop", "u-9"}, soon())->is_fixed) << "the API does not know it";
}

TEST_F(FixedAddressesTest, AnAddOfAPodThatIsGoneGetsNothingOfItsSuccessors) {
  const auto pod = make_pod("web-0", {{kFixedAnnotation, "true"}, {"kubernetes.io/config.hash", "hash-1"}});
  ASSERT_TRUE(fixed_.wish_of(pod, soon())->is_fixed);
  cluster_->edit(kPods + "web-0", [](Json& changed) { changed["metadata"]["uid"] = "uid-2"; });
  const auto late = fixed_.wish_of(pod, soon());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::conflict);
  EXPECT_NE(late.error().message.find("UID \"uid-2\""), std::string::npos) << late.error().message;
  for (const char* uid : {"uid-2", "", "hash-1"}) {
    const auto wish = fixed_.wish_of({"web-0", "shop", uid}, soon());
    ASSERT_TRUE(wish) << uid << ": " << wish.error().message;
    EXPECT_TRUE(wish->is_fixed) << uid;
  }
  make_pod("job-1", {});
  EXPECT_FALSE(fixed_.wish_of({"job-1", "shop", "uid-of-before"}, soon())->is_fixed) << "nobody's to protect";
}

TEST_F(FixedAddressesTest, TheClusterTellsWhichNodesAreGone) {
  cluster_->make("/api/v1/nodes/node-g", {{"metadata", {{"name", "node-g"}}}});
  ClusterClaims fixed(api_, "node-g");
  EXPECT_TRUE(fixed.is_gone("node-f", soon()).value());
  EXPECT_FALSE(fixed.is_gone("node-g", soon()).value());
  cluster_->make("/api/v1/nodes/node-f", {{"metadata", {{"name", "node-f"}}}});
  EXPECT_FALSE(fixed.is_gone("node-f", soon()).value());
  EXPECT_FALSE(fixed_.is_gone("node-x", soon()).value()) << "a list without this node is not believed";
  // The claim says where the pod was last.
  const auto pod = make_pod("web-0", {{kFixedAnnotation, "true"}});
  ASSERT_TRUE(fixed.attach(held_by(pod), {true, "Never"}, soon()));
  const auto promise = fixed.promise_to(pod, soon());
  ASSERT_TRUE(promise && *promise);
  EXPECT_EQ((*promise)->node, "node-g");
  EXPECT_EQ((*promise)->mac, held_by(pod).mac);
}

TEST_F(FixedAddressesTest, AReleaseTimeThatIsNoneIsRefused) {
  const auto wish =
      fixed_.wish_of(make_pod("web-0", {{kFixedAnnotation, "true"}, {kPolicyAnnotation, "a while, maybe"}}), soon());
  ASSERT_FALSE(wish);
  EXPECT_EQ(wish.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(wish.error().message.find(kPolicyAnnotation), std::string::npos) << wish.error().message;
}

TEST_F(FixedAddressesTest, WithoutTheApiNothingIsGuessed) {
  const auto pod = make_pod("web-0", {{kFixedAnnotation, "true"}});
  const auto wish = fixed_.wish_of(pod, Deadline::after(clock_.now(), -1s));
  ASSERT_FALSE(wish);
  EXPECT_EQ(wish.error().code, ErrorCode::deadline_exceeded);
}

/// As a cache or a proxy in front of the API may answer.
class SwappedApi final : public FakeApi {
 public:
  using FakeApi::FakeApi;
  [[nodiscard]] store::kube::Answer call(const store::kube::Request& request, Deadline deadline) override {
    store::kube::Request other = request;
    if (request.path.ends_with("/web-0")) other.path.back() = '1';
    return FakeApi::call(other, deadline);
  }
};

TEST_F(FixedAddressesTest, AnotherPodsAnswerSaysNothingOfThisOne) {
  const auto pod = make_pod("web-0", {{kFixedAnnotation, "true"}});
  make_pod("web-1", {});
  SwappedApi swapped{cluster_, clock_};
  ClusterClaims fixed(swapped, "");
  const auto wish = fixed.wish_of(pod, soon());
  ASSERT_FALSE(wish);
  EXPECT_EQ(wish.error().code, ErrorCode::corrupt) << wish.error().message;
}

TEST_F(FixedAddressesTest, ThePromiseIsAClaimOfThePodsName) {
  const auto pod = make_pod("web-0", {{kFixedAnnotation, "true"}});
  auto promise = fixed_.promise_to(pod, soon());
  ASSERT_TRUE(promise) << promise.error().message;
  EXPECT_FALSE(*promise);
  ASSERT_TRUE(fixed_.attach(held_by(pod), {true, "Never"}, soon()));
  const Json claim = cluster_->object(kClaims + "web-0");
  EXPECT_EQ(claim["spec"], (Json{{"ip", "10.9.0.7"},
                                 {"mask", "255.255.255.0"},
                                 {"gateway", "10.9.0.1"},
                                 {"subnetId", "subnet-1"},
                                 {"vpcId", "uvnet-1"}}));
  EXPECT_EQ(claim["status"]["attached"], true);
  EXPECT_EQ(claim["status"]["releaseTime"], "Never");
  EXPECT_EQ(claim["status"]["sandboxId"], "c1");
  EXPECT_EQ(claim["metadata"]["labels"]["owner-statefulset"], "web");
  EXPECT_EQ(claim["metadata"]["finalizers"], Json::array({"cni-vpc-ipamd"}));
  promise = fixed_.promise_to(pod, soon());
  ASSERT_TRUE(promise && *promise);
  EXPECT_EQ((*promise)->address.to_string(), "10.9.0.7");
  EXPECT_EQ((*promise)->subnet, "subnet-1");
  // Again it changes nothing; what others wrote stays.
  cluster_->edit(kClaims + "web-0", [](Json& changed) { changed["spec"]["more"] = 1; });
  auto again = held_by(pod);
  again.owner.container_id = "c2";
  ASSERT_TRUE(fixed_.attach(again, {true, "300s"}, soon()));
  EXPECT_EQ(cluster_->object(kClaims + "web-0")["status"]["sandboxId"], "c2");
  EXPECT_EQ(cluster_->object(kClaims + "web-0")["status"]["releaseTime"], "Never") << "the first one counts";
  EXPECT_EQ(cluster_->object(kClaims + "web-0")["spec"]["more"], 1);
}

TEST_F(FixedAddressesTest, APromiseOfAnotherAddressIsNeverOverwritten) {
  const auto pod = make_pod("web-0", {{kFixedAnnotation, "true"}});
  ASSERT_TRUE(fixed_.attach(held_by(pod), {true, "Never"}, soon()));
  const auto other = fixed_.attach(held_by(pod, "10.9.0.8"), {true, "Never"}, soon());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::conflict);
  EXPECT_EQ(cluster_->object(kClaims + "web-0")["spec"]["ip"], "10.9.0.7");
}

TEST_F(FixedAddressesTest, AWriteThatNobodyHeardOfIsFound) {
  const auto pod = make_pod("web-0", {{kFixedAnnotation, "true"}});
  api_.next_write = FakeApi::Lost::reply;
  ASSERT_TRUE(fixed_.attach(held_by(pod), {true, "Never"}, soon()));
  api_.next_write = FakeApi::Lost::request;
  auto again = held_by(pod);
  again.owner.container_id = "c2";
  ASSERT_TRUE(fixed_.attach(again, {true, "Never"}, soon()));
  EXPECT_EQ(cluster_->object(kClaims + "web-0")["status"]["sandboxId"], "c2");
}

}  // namespace
}  // namespace croft::app
