#include "store/kube/node_objects.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/fake_api_fixture.h"

namespace croft::store::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NodeObjects : public testing::Test {
 protected:
  void make(const std::string& name, const std::string& more = "") {
    Request request;
    request.method = Request::Method::post;
    request.path = "/api/v1/nodes";
    request.body = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + name + R"("})" + more + "}";
    ASSERT_EQ(api_.call(request, soon()).outcome, Answer::Outcome::done);
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::seconds(5)); }
  [[nodiscard]] static net::Prefix cidr(const char* text) { return net::Prefix::parse(text).value(); }
  /// By a list, and asked for by itself, which is the same.
  NodeObject of(const std::string& node) {
    const auto all = list_nodes(api_, clock_);
    EXPECT_TRUE(all) << all.error().message;
    const NodeObject listed = *std::ranges::find(*all, node, &NodeObject::name);
    const auto alone = find_node(api_, node, soon());
    EXPECT_TRUE(alone) << alone.error().message;
    EXPECT_EQ(alone->name, node);
    EXPECT_EQ(alone->cidrs, listed.cidrs);
    EXPECT_EQ(alone->damage.has_value(), listed.damage.has_value());
    EXPECT_EQ(alone->written_by, listed.written_by);
    return listed;
  }

  os::SystemClock clock_;
  std::shared_ptr<FakeCluster> cluster_ = std::make_shared<FakeCluster>();
  FakeApi api_{cluster_, clock_};
};

TEST_F(NodeObjects, WhatNodesSay) {
  make("none");
  make("one", R"(,"spec":{"podCIDR":"10.0.0.0/24"})");
  make("two", R"(,"spec":{"podCIDR":"10.0.1.0/24","podCIDRs":["10.0.1.0/24","fd00::/64"]})");
  make("odd", R"(,"spec":{"podCIDR":"ten","podCIDRs":["ten"]})");
  EXPECT_THAT(of("none").cidrs, IsEmpty());
  EXPECT_THAT(of("one").cidrs, ElementsAre(cidr("10.0.0.0/24")));
  EXPECT_THAT(of("two").cidrs, ElementsAre(cidr("10.0.1.0/24"), cidr("fd00::/64")));
  ASSERT_TRUE(of("odd").damage);
  EXPECT_THAT(of("odd").damage->message, HasSubstr("ten"));
  EXPECT_EQ(find_node(api_, "gone", soon()).error().code, ErrorCode::not_found);
}

/// Kubernetes admitted such texts in any case until 1.36, and reads them as networks.
TEST_F(NodeObjects, AreReadAsKubernetesReadsThem) {
  make("bits", R"(,"spec":{"podCIDR":"10.0.1.5/24","podCIDRs":["10.0.1.5/24"]})");
  make("zeros", R"(,"spec":{"podCIDR":"010.0.002.0/024","podCIDRs":["010.0.002.0/024","10.0.2.0/24"]})");
  make("apart", R"(,"spec":{"podCIDR":"10.0.3.0/24","podCIDRs":["10.0.4.0/24","ten"]})");
  EXPECT_THAT(of("bits").cidrs, ElementsAre(cidr("10.0.1.0/24")));
  EXPECT_THAT(of("zeros").cidrs, ElementsAre(cidr("10.0.2.0/24")));
  EXPECT_FALSE(of("zeros").damage);
  EXPECT_THAT(of("apart").cidrs, ElementsAre(cidr("10.0.4.0/24"), cidr("10.0.3.0/24"))) << "what can be read";
  EXPECT_TRUE(of("apart").damage);
}

TEST_F(NodeObjects, WhoWroteThem) {
  make("oak");
  cluster_->edit("/api/v1/nodes/oak", [](auto& object) {
    object["spec"] = {{"podCIDR", "10.0.0.0/24"}};
    object["metadata"]["managedFields"] = {
        {{"manager", "kubelet"}, {"fieldsV1", {{"f:metadata", nlohmann::json::object()}}}},
        {{"manager", "kube-controller-manager"},
         {"fieldsV1", {{"f:spec", {{"f:podCIDR", nlohmann::json::object()}}}}}}};
  });
  EXPECT_EQ(of("oak").written_by, "kube-controller-manager");
}

TEST_F(NodeObjects, AreSaidOnce) {
  make("oak", R"(,"spec":{"providerID":"p"})");
  const std::vector<net::Prefix> two{cidr("10.0.1.0/24"), cidr("fd00::/64")};
  ASSERT_TRUE(say_node_cidrs(api_, "oak", two, soon()));
  const auto object = cluster_->object("/api/v1/nodes/oak");
  EXPECT_EQ(object["spec"]["podCIDR"], "10.0.1.0/24");
  EXPECT_EQ(object["spec"]["podCIDRs"], nlohmann::json::array({"10.0.1.0/24", "fd00::/64"}));
  EXPECT_EQ(object["spec"]["providerID"], "p");
  EXPECT_TRUE(say_node_cidrs(api_, "oak", two, soon())) << "the same again";
  const auto others = say_node_cidrs(api_, "oak", {cidr("10.0.2.0/24")}, soon());
  ASSERT_FALSE(others);
  EXPECT_EQ(others.error().code, ErrorCode::conflict);
  EXPECT_THAT(others.error().message, HasSubstr("10.0.1.0/24"));
  EXPECT_EQ(say_node_cidrs(api_, "elm", two, soon()).error().code, ErrorCode::not_found);
}

TEST_F(NodeObjects, AnUnknownOutcomeIsReadBack) {
  make("oak");
  api_.next_write = FakeApi::Lost::reply;
  EXPECT_TRUE(say_node_cidrs(api_, "oak", {cidr("10.0.1.0/24")}, soon()));
  make("elm");
  api_.next_write = FakeApi::Lost::request;
  EXPECT_FALSE(say_node_cidrs(api_, "elm", {cidr("10.0.2.0/24")}, soon()));
  EXPECT_THAT(of("elm").cidrs, IsEmpty());
}

TEST_F(NodeObjects, AddressesAreTheInternalAndExternalOnes) {
  make("a", R"(,"status":{"addresses":[{"type":"Hostname","address":"10.9.9.9"},)"
            R"({"type":"InternalIP","address":"10.0.0.5"},{"type":"ExternalIP","address":"2001:db8::5"}]})");
  make("b", R"(,"status":{"addresses":[{"type":"InternalIP","address":"none"},{"address":"10.1.1.1"},7,)"
            R"({"type":"InternalIP","address":"::ffff:10.1.2.4"}]})");
  make("c", R"(,"status":{})");
  const auto texts = [&](const std::string& node) {
    std::vector<std::string> all;
    for (const net::Address& one : of(node).addresses) all.push_back(one.to_string());
    return all;
  };
  EXPECT_THAT(texts("a"), ElementsAre("10.0.0.5", "2001:db8::5"));
  EXPECT_THAT(texts("b"), ElementsAre("10.1.2.4"));
  EXPECT_THAT(texts("c"), IsEmpty());
}

/// Answers a GET with one node, and notes what is patched.
class OneNode final : public Api {
 public:
  explicit OneNode(std::string status) : status_(std::move(status)) {}
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    Answer answer;
    answer.outcome = request.is_read() ? Answer::Outcome::done : on_patch;
    if (!request.is_read()) patches.push_back(request.path + " " + request.body);
    answer.body = R"({"kind":"Node","apiVersion":"v1","metadata":{"name":")" + name +
                  R"(","uid":"u","resourceVersion":"3"},"status":)" + status_ + "}";
    if (answer.outcome != Answer::Outcome::done) answer.error = {ErrorCode::permission_denied, "no", {}};
    answer.http_status = http_status;
    return answer;
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }
  std::vector<std::string> patches;
  Answer::Outcome on_patch = Answer::Outcome::done;
  int http_status = 200;
  std::string name = "oak";

 private:
  std::string status_;
};

Result<bool> clear(OneNode& api) {
  return clear_network_unavailable(api, "oak", WallTime(std::chrono::seconds(1)), Deadline{});
}

TEST(NodeCondition, IsTakenBackWhereItIsSaid) {
  OneNode api(R"({"conditions":[{"type":"Ready","status":"True"},{"type":"NetworkUnavailable","status":"True"}]})");
  EXPECT_EQ(clear(api), true);
  ASSERT_EQ(api.patches.size(), 1U);
  EXPECT_EQ(api.patches[0],
            R"(/api/v1/nodes/oak/status {"status":{"conditions":[{"type":"NetworkUnavailable","status":"False",)"
            R"("reason":"CroftIsUp","message":"Croft gives addresses to the pods of this node",)"
            R"("lastHeartbeatTime":"1970-01-01T00:00:01Z","lastTransitionTime":"1970-01-01T00:00:01Z"}]}})");
}

TEST(NodeCondition, IsLeftWhereItIsNot) {
  for (const char* status : {"{}", "null", R"({"conditions":[]})", R"({"conditions":7})",
                             R"({"conditions":[{"type":"NetworkUnavailable","status":"False"},null,7]})"}) {
    OneNode api(status);
    EXPECT_EQ(clear(api), false) << status;
    EXPECT_TRUE(api.patches.empty()) << status;
  }
}

TEST(NodeCondition, ARefusalSaysWhatToAllow) {
  OneNode api(R"({"conditions":[{"type":"NetworkUnavailable"}]})");
  api.on_patch = Answer::Outcome::refused;
  api.http_status = 403;
  const auto done = clear(api);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("network-unavailable.yaml"));
  // Who refuses a certificate, or a token, misses no right.
  for (const int none : {0, 401}) {
    api.http_status = none;
    EXPECT_EQ(clear(api).error().message.find("network-unavailable.yaml"), std::string::npos) << none;
  }
}

}  // namespace
}  // namespace croft::store::kube
