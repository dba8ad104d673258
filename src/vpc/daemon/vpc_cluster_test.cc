#include "vpc/daemon/vpc_cluster.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/fake_api_fixture.h"

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

class ClusterTest : public testing::Test {
 protected:
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), 10s); }

  os::SystemClock clock_;
  std::shared_ptr<FakeCluster> cluster_ = std::make_shared<FakeCluster>();
  FakeApi api_{cluster_, clock_};
};

class FixedAddressesTest : public ClusterTest {
 protected:
  core::PodIdentity make_pod(const std::string& name, const Json& annotations) {
    cluster_->make(kPods + name, {{"metadata", {{"name", name}, {"namespace", "shop"}, {"annotations", annotations}}}});
    return {name, "shop", cluster_->object(kPods + name)["metadata"].value("uid", "")};
  }
  static core::StockAddress held_by(const core::PodIdentity& pod, const std::string& address = "10.9.0.7") {
    core::StockAddress held;
    held.address = net::Address::parse(address).value();
    held.prefix_length = 24;
    held.gateway = net::Address::parse("10.9.0.1").value();
    held.mac = net::Mac::parse("52:54:00:00:00:0a").value();
    held.vpc = "uvnet-1";
    held.subnet = "subnet-1";
    held.state = core::StockAddressState::held;
    held.owner = {"net", "c1", "eth0"};
    held.pod = pod;
    return held;
  }

  ClusterFixedAddresses fixed_{api_, ""};
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

TEST_F(FixedAddressesTest, TheClaimSaysWhereThePodWasLast) {
  const auto pod = make_pod("web-0", {{kFixedAnnotation, "true"}});
  ASSERT_TRUE(fixed_.attach(held_by(pod), {true, "Never"}, soon()));
  const auto promise = fixed_.promise_to(pod, soon());
  ASSERT_TRUE(promise && *promise);
  EXPECT_EQ((*promise)->mac, held_by(pod).mac);
}

TEST_F(FixedAddressesTest, AReleaseTimeThatIsNoneIsRefused) {
  const auto wish =
      fixed_.wish_of(make_pod("web-0", {{kFixedAnnotation, "true"}, {kPolicyAnnotation, "a while, maybe"}}), soon());
  ASSERT_FALSE(wish);
  EXPECT_EQ(wish.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(wish.error().message.find(kPolicyAnnotation), std::string::npos) << wish.error().message;
}

TEST_F(FixedAddressesTest, WhoLivesByAnAddressIsAskedOfTheWholeCluster) {
  const auto make = [&](const std::string& space, const std::string& name, const std::string& address,
                        const std::string& phase, bool host_network) {
    cluster_->make("/api/v1/pods/" + name, {{"metadata", {{"name", name}, {"namespace", space}}},
                                            {"spec", {{"hostNetwork", host_network}}},
                                            {"status", {{"podIP", address}, {"phase", phase}}}});
  };
  make("shop", "web-0", "10.9.0.7", "Running", false);
  make("other", "plain", "10.9.0.7", "Pending", false);
  make("shop", "job-1", "10.9.0.7", "Succeeded", false);
  make("shop", "proxy", "10.9.0.7", "Running", true);
  make("shop", "web-1", "10.9.0.70", "Running", false);
  const auto living = fixed_.living_with(net::Address::parse("10.9.0.7").value(), soon());
  ASSERT_TRUE(living) << living.error().message;
  std::vector<std::string> names;
  for (const auto& pod : *living) names.push_back(pod.namespace_name + "/" + pod.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("shop/web-0", "other/plain"));
  EXPECT_FALSE(fixed_.living_with(net::Address::parse("10.9.0.7").value(), Deadline::after(clock_.now(), -1s)));
}

TEST_F(FixedAddressesTest, WithoutTheApiNothingIsGuessed) {
  const auto pod = make_pod("web-0", {{kFixedAnnotation, "true"}});
  const auto wish = fixed_.wish_of(pod, Deadline::after(clock_.now(), -1s));
  ASSERT_FALSE(wish);
  EXPECT_EQ(wish.error().code, ErrorCode::deadline_exceeded);
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

class DeletedClaimsTest : public ClusterTest {
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
    store::kube::VpcObjects<wire::kube::VpcIpClaimRecord> objects(all_);
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

  AllNamespaces all_{api_};
  ClusterFixedAddresses claims_{all_, "node-a"};
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
  ClusterFixedAddresses stranger(all_, "node-y");
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

TEST_F(ClusterTest, AClaimOfWhatIsNoAddressPromisesNothing) {
  const auto make = [&](const std::string& name_space, const std::string& name, const std::string& ip) {
    // As the API lists them of all namespaces.
    cluster_->make("/apis/vpc.uk8s.ucloud.cn/v1beta1/vpcipclaims/" + name,
                   {{"metadata", {{"name", name}, {"namespace", name_space}}}, {"spec", {{"ip", ip}}}});
  };
  make("shop", "web-0", "10.9.0.7");
  make("shop", "web-1", "");
  make("tenant", "bad", "10.7.0.999");
  make("tenant", "worse", "\x1b[31m\n");
  const auto claimed = ClusterFixedAddresses(api_, "node-a").all_fixed(soon());
  ASSERT_TRUE(claimed) << claimed.error().message;
  EXPECT_THAT(*claimed, testing::ElementsAre(net::Address::parse("10.9.0.7").value()));
}

// ---------------------------------------------------------------- the board

const std::string kStocks = "/apis/vpc.uk8s.ucloud.cn/v1beta1/namespaces/kube-system/ipamds";

class VpcBoardTest : public ClusterTest {
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

TEST_F(VpcBoardTest, FindsPeersOfTheSubnet) {
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
  EXPECT_EQ((*peers)[1].node, "node-c");
  EXPECT_EQ((*peers)[1].free, 9U);
  EXPECT_EQ((*peers)[0].node, "node-b");
  EXPECT_EQ((*peers)[0].address, "10.0.0.3:7312");
}

TEST_F(VpcBoardTest, CleansUpWhatNamesANodeThatIsNotThere) {
  make_stock("node-b", "subnet-1", 4, "normal");
  make_stock("gone", "subnet-1", 4, "normal");
  ASSERT_TRUE(VpcBoard(api_, clock_, "stranger", "10.0.0.9:7312").clean_up(soon()));
  EXPECT_TRUE(is_there("gone")) << "a list of nodes without the own one is not to be believed";
  ASSERT_TRUE(board_.clean_up(soon()));
  EXPECT_FALSE(is_there("gone"));
  EXPECT_TRUE(is_there("node-b"));
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
  store::kube::VpcObjects<wire::kube::VpcIpClaimRecord> objects(api_);
  wire::kube::VpcIpClaimRecord record;
  record.ip = "10.0.0.9";
  const auto claim = objects.write({}, "shop", "web-0", record, soon());
  ASSERT_TRUE(claim) << claim.error().message;
  wire::kube::VpcIpClaimRecord other = record;
  other.ip = "10.0.0.10";
  ASSERT_TRUE(objects.write(*claim, "shop", "web-0", other, soon()));
  record.attached = true;
  EXPECT_EQ(objects.write(*claim, "shop", "web-0", record, soon()).error().code, ErrorCode::conflict);
  EXPECT_EQ(objects.write({}, "shop", "web-0", record, soon()).error().code, ErrorCode::already_exists);
  EXPECT_EQ(objects.find("shop", "web-0", soon()).value()->record, other);
}

// ---------------------------------------------------------------- annotations

class AnnotationsTest : public FixedAddressesTest {
 protected:
  [[nodiscard]] Result<void> annotate(const core::PodIdentity& pod, const char* address) {
    return annotate_pod(api_, pod, net::Address::parse(address).value(), soon());
  }
  [[nodiscard]] std::string annotation(const std::string& name) const {
    const auto pod = cluster_->object(kPods + name);
    return pod["metadata"].value("annotations", Json::object()).value("cni.projectcalico.org/podIP", "");
  }
};

TEST_F(AnnotationsTest, APodsAddressIsWhatItGotLast) {
  const auto pod = make_pod("web", {});
  ASSERT_TRUE(annotate(pod, "10.0.0.5"));
  ASSERT_TRUE(annotate(pod, "10.0.0.6"));
  EXPECT_EQ(annotation("web"), "10.0.0.6");
  EXPECT_EQ(annotate({"gone", "shop", "u-gone"}, "10.0.0.4").error().code, ErrorCode::not_found);
  EXPECT_EQ(annotation("web"), "10.0.0.6");
}

TEST_F(AnnotationsTest, AStaticPodIsKnownByTheHashOfItsFile) {
  make_pod("static", {{"kubernetes.io/config.hash", "hash-1"}});
  ASSERT_TRUE(annotate({"static", "shop", "hash-1"}, "10.0.0.6"));
  EXPECT_EQ(annotation("static"), "10.0.0.6");
}

}  // namespace
}  // namespace croft::app
