#include "store/kube/cluster_facts.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "os/clock.h"
#include "store/kube/fake_api_fixture.h"
#include "store/kube/object_list.h"
#include "store/kube/objects.h"
#include "store/kube/test_api.h"

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

class NodeCondition : public testing::Test {
 protected:
  /// Of a node with this status, whose patch gets that answer.
  Result<bool> clear(const std::string& status, const Answer& to_patch = answered()) {
    AnsweringApi api([&](const Request& request) {
      if (!request.is_read()) {
        patches_.push_back(request.path + " " + request.body);
        return to_patch;
      }
      return answered(R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"oak","uid":"u","resourceVersion":"3"},)"
                      R"("status":)" +
                      status + "}");
    });
    return clear_network_unavailable(api, "oak", WallTime(std::chrono::seconds(1)), Deadline{});
  }

  std::vector<std::string> patches_;
};

TEST_F(NodeCondition, IsTakenBackWhereItIsSaid) {
  EXPECT_EQ(clear(R"({"conditions":[{"type":"Ready","status":"True"},{"type":"NetworkUnavailable","status":"True"}]})"),
            true);
  ASSERT_EQ(patches_.size(), 1U);
  EXPECT_EQ(patches_[0],
            R"(/api/v1/nodes/oak/status {"status":{"conditions":[{"type":"NetworkUnavailable","status":"False",)"
            R"("reason":"CroftIsUp","message":"Croft gives addresses to the pods of this node",)"
            R"("lastHeartbeatTime":"1970-01-01T00:00:01Z","lastTransitionTime":"1970-01-01T00:00:01Z"}]}})");
}

TEST_F(NodeCondition, IsLeftWhereItIsNot) {
  for (const char* status : {"{}", "null", R"({"conditions":[]})", R"({"conditions":7})",
                             R"({"conditions":[{"type":"NetworkUnavailable","status":"False"},null,7]})"}) {
    EXPECT_EQ(clear(status), false) << status;
    EXPECT_TRUE(patches_.empty()) << status;
  }
}

/// Who refuses a certificate, or a token, misses no right.
TEST_F(NodeCondition, ARefusalSaysWhatToAllow) {
  for (const int http_status : {403, 0, 401}) {
    const auto done =
        clear(R"({"conditions":[{"type":"NetworkUnavailable"}]})", refused(http_status, ErrorCode::permission_denied));
    ASSERT_FALSE(done);
    const bool names_it = done.error().message.find("network-unavailable.yaml") != std::string::npos;
    EXPECT_EQ(names_it, http_status == 403) << http_status;
  }
}

/// RBAC refuses what is not there too: only a kind that is served is one that this account may not read.
TEST(OwnKinds, AreReadWhereTheyAreThereAndMayBe) {
  const auto server = [](int discovery, int list) {
    return AnsweringApi([=](const Request& request) {
      const bool is_list = request.path.find("croftpoolsets?") != std::string::npos;
      EXPECT_TRUE(is_list || request.path == "/apis/ipam.croft.dev/v1alpha1") << request.path;
      const int code = is_list ? list : discovery;
      Answer answer = refused(code, code == 403 ? ErrorCode::permission_denied : ErrorCode::unavailable, "cannot");
      if (code == 0) answer.outcome = Answer::Outcome::not_done;
      return code == 200 ? answered() : answer;
    });
  };
  struct Case {
    int discovery, list;
    bool are_read, are_denied;
  };
  for (const Case& one : {Case{404, 403, false, false}, Case{404, 404, false, false}, Case{200, 403, false, true},
                          Case{403, 403, false, true}, Case{200, 200, true, false}, Case{200, 404, true, false},
                          Case{200, 500, true, false}}) {
    auto api = server(one.discovery, one.list);
    int denied = 0;
    const auto may = may_read_croft_kinds(
        api, [&](const Error&) { ++denied; }, Deadline{});
    ASSERT_TRUE(may) << one.discovery;
    EXPECT_EQ(*may, one.are_read) << one.discovery << " " << one.list;
    EXPECT_EQ(denied, one.are_denied ? 1 : 0) << one.discovery << " " << one.list;
  }
  auto away = server(0, 403);
  EXPECT_EQ(may_read_croft_kinds(away, nullptr, Deadline{}).error().code, ErrorCode::unavailable);
}

const std::vector<NeededRights> kNeeded{{"g.io", "blocks", {"get", "create"}}, {"h.io", "pools", {"list"}}};

/// Allows all but what contains one of these.
AnsweringApi all_but(const std::vector<std::string>& denied) {
  return AnsweringApi([denied](const Request& request) {
    const bool is_denied = std::ranges::any_of(
        denied, [&](const std::string& part) { return request.body.find(part) != std::string::npos; });
    return answered(is_denied ? R"({"status":{"allowed":false}})" : R"({"status":{"allowed":true}})");
  });
}

TEST(AccessReview, AsksForEachVerb) {
  AnsweringApi api = all_but({});
  EXPECT_TRUE(check_rights(api, kNeeded, Deadline{}));
  ASSERT_EQ(api.asked.size(), 3U);
  EXPECT_EQ(api.asked[1].path, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
  EXPECT_EQ(api.asked[1].body,
            R"({"apiVersion":"authorization.k8s.io/v1",)"
            R"("kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"g.io","resource":"blocks",)"
            R"("verb":"create"}}})");
}

TEST(AccessReview, WhatIsMissingIsNamed) {
  AnsweringApi api = all_but({R"("create")", R"("pools")"});
  const auto done = check_rights(api, kNeeded, Deadline{});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::permission_denied);
  EXPECT_EQ(done.error().message, "the account may not create of blocks.g.io; list of pools.h.io");
}

TEST(AccessReview, NothingIsTakenForARight) {
  for (const char* text : {"{}", "[", R"({"status":{}})", R"({"status":{"allowed":"true"}})", "null"}) {
    AnsweringApi api([&](const Request&) { return answered(text); });
    EXPECT_FALSE(check_rights(api, kNeeded, Deadline{})) << text;
  }
  for (const auto outcome : {Answer::Outcome::refused, Answer::Outcome::not_done, Answer::Outcome::unknown}) {
    Answer answer = refused(0, ErrorCode::unavailable);
    answer.outcome = outcome;
    AnsweringApi api([&](const Request&) { return answer; });
    const auto done = check_rights(api, kNeeded, Deadline{});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::unavailable);
  }
}

TEST(AccessReview, WhoMayNotAskLacksNothingForThat) {
  AnsweringApi api([](const Request&) { return refused(0, ErrorCode::permission_denied); });
  const auto done = check_rights(api, kNeeded, Deadline{});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::refused_by_configuration);
}

using Json = nlohmann::json;

const std::vector<NeededRights> kWanted = {{"crd.projectcalico.org", "ipamblocks", {"list"}}, {"", "pods", {"list"}}};

constexpr const char* kAlice = R"({"status":{"authenticated":true,"user":{"username":"alice","uid":"u1",
  "groups":["ops","system:authenticated"],"extra":{"scopes.example/one":["a","b"]}}}})";

/// Answers both reviews: that of the token with a text, the others by whether a resource is denied.
AnsweringApi reviewing(const std::string& of_token, const std::string& denied = {}) {
  return AnsweringApi([=](const Request& request) {
    EXPECT_EQ(request.method, Request::Method::post);
    EXPECT_TRUE(request.keeps_nothing);
    if (request.path.ends_with("tokenreviews")) return answered(of_token);
    const bool is_allowed = Json::parse(request.body)["spec"]["resourceAttributes"]["resource"] != denied;
    return answered(Json{{"status", {{"allowed", is_allowed}}}}.dump());
  });
}

TEST(TokenReview, AUserWithTheRightIsAllowed) {
  AnsweringApi api = reviewing(kAlice);
  const auto reviewed = review_token(api, R"(a"b\c)", kWanted, {}).value();
  EXPECT_TRUE(reviewed.is_known);
  EXPECT_TRUE(reviewed.is_allowed);
  EXPECT_EQ(reviewed.user, "alice");
  ASSERT_EQ(api.asked.size(), 3U);
  const auto spec_of = [&](std::size_t place) { return Json::parse(api.asked[place].body)["spec"]; };
  EXPECT_EQ(spec_of(0)["token"], R"(a"b\c)");
  const Json spec = spec_of(1);
  EXPECT_EQ(spec["user"], "alice");
  EXPECT_EQ(spec["uid"], "u1");
  EXPECT_EQ(spec["groups"], Json({"ops", "system:authenticated"}));
  EXPECT_EQ(spec["extra"]["scopes.example/one"], Json({"a", "b"}));
  EXPECT_EQ(spec["resourceAttributes"],
            Json({{"group", "crd.projectcalico.org"}, {"resource", "ipamblocks"}, {"verb", "list"}}));
  EXPECT_EQ(spec_of(2)["resourceAttributes"], Json({{"group", ""}, {"resource", "pods"}, {"verb", "list"}}));
}

TEST(TokenReview, AUserWithoutOneOfTheRightsIsNot) {
  for (const char* denied : {"ipamblocks", "pods"}) {
    AnsweringApi api = reviewing(kAlice, denied);
    const auto reviewed = review_token(api, "t", kWanted, {}).value();
    EXPECT_TRUE(reviewed.is_known);
    EXPECT_FALSE(reviewed.is_allowed) << denied;
  }
}

TEST(TokenReview, NobodyIsKnownByAnOddAnswer) {
  for (const char* odd : {R"({})", R"({"status":{}})", R"({"status":{"authenticated":false,"user":{"username":"a"}}})",
                          R"({"status":{"authenticated":"true","user":{"username":"a"}}})",
                          R"({"status":{"authenticated":true}})", R"({"status":{"authenticated":true,"user":{}}})"}) {
    AnsweringApi api = reviewing(odd);
    EXPECT_FALSE(review_token(api, "t", kWanted, {})->is_known) << odd;
    EXPECT_EQ(api.asked.size(), 1U);
  }
  AnsweringApi api = reviewing("no JSON");
  EXPECT_FALSE(review_token(api, "t", kWanted, {}));
}

TEST(TokenReview, AnAccountThatMayNotAskIsToldSo) {
  AnsweringApi api([](const Request&) { return refused(403, ErrorCode::permission_denied, "forbidden"); });
  const auto reviewed = review_token(api, "t", kWanted, {});
  ASSERT_FALSE(reviewed);
  EXPECT_EQ(reviewed.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(reviewed.error().message, HasSubstr("controller.desk"));
}

}  // namespace
}  // namespace croft::store::kube
