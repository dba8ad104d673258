#include "store/kube/node_cidrs.h"

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

class NodeCidrsOfAnApi : public testing::Test {
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
  SaidByNode of(const std::string& node) {
    const auto all = list_node_cidrs(api_, clock_);
    EXPECT_TRUE(all) << all.error().message;
    const SaidByNode listed = *std::ranges::find(*all, node, &SaidByNode::node);
    const auto alone = find_node_cidrs(api_, node, soon());
    EXPECT_TRUE(alone) << alone.error().message;
    EXPECT_EQ(alone->node, node);
    EXPECT_EQ(alone->cidrs, listed.cidrs);
    EXPECT_EQ(alone->damage.has_value(), listed.damage.has_value());
    EXPECT_EQ(alone->written_by, listed.written_by);
    return listed;
  }

  os::SystemClock clock_;
  std::shared_ptr<FakeCluster> cluster_ = std::make_shared<FakeCluster>();
  FakeApi api_{cluster_, clock_};
};

TEST_F(NodeCidrsOfAnApi, WhatNodesSay) {
  make("none");
  make("one", R"(,"spec":{"podCIDR":"10.0.0.0/24"})");
  make("two", R"(,"spec":{"podCIDR":"10.0.1.0/24","podCIDRs":["10.0.1.0/24","fd00::/64"]})");
  make("odd", R"(,"spec":{"podCIDR":"ten","podCIDRs":["ten"]})");
  EXPECT_THAT(of("none").cidrs, IsEmpty());
  EXPECT_THAT(of("one").cidrs, ElementsAre(cidr("10.0.0.0/24")));
  EXPECT_THAT(of("two").cidrs, ElementsAre(cidr("10.0.1.0/24"), cidr("fd00::/64")));
  ASSERT_TRUE(of("odd").damage);
  EXPECT_THAT(of("odd").damage->message, HasSubstr("ten"));
  EXPECT_EQ(find_node_cidrs(api_, "gone", soon()).error().code, ErrorCode::not_found);
}

/// Kubernetes admitted such texts in any case until 1.36, and reads them as networks.
TEST_F(NodeCidrsOfAnApi, AreReadAsKubernetesReadsThem) {
  make("bits", R"(,"spec":{"podCIDR":"10.0.1.5/24","podCIDRs":["10.0.1.5/24"]})");
  make("zeros", R"(,"spec":{"podCIDR":"010.0.002.0/024","podCIDRs":["010.0.002.0/024","10.0.2.0/24"]})");
  make("apart", R"(,"spec":{"podCIDR":"10.0.3.0/24","podCIDRs":["10.0.4.0/24","ten"]})");
  EXPECT_THAT(of("bits").cidrs, ElementsAre(cidr("10.0.1.0/24")));
  EXPECT_THAT(of("zeros").cidrs, ElementsAre(cidr("10.0.2.0/24")));
  EXPECT_FALSE(of("zeros").damage);
  EXPECT_THAT(of("apart").cidrs, ElementsAre(cidr("10.0.4.0/24"), cidr("10.0.3.0/24"))) << "what can be read";
  EXPECT_TRUE(of("apart").damage);
}

TEST_F(NodeCidrsOfAnApi, WhoWroteThem) {
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

TEST_F(NodeCidrsOfAnApi, AreSaidOnce) {
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

TEST_F(NodeCidrsOfAnApi, AnUnknownOutcomeIsReadBack) {
  make("oak");
  api_.next_write = FakeApi::Lost::reply;
  EXPECT_TRUE(say_node_cidrs(api_, "oak", {cidr("10.0.1.0/24")}, soon()));
  make("elm");
  api_.next_write = FakeApi::Lost::request;
  EXPECT_FALSE(say_node_cidrs(api_, "elm", {cidr("10.0.2.0/24")}, soon()));
  EXPECT_THAT(of("elm").cidrs, IsEmpty());
}

}  // namespace
}  // namespace croft::store::kube
