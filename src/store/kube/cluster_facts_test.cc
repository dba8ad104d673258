#include "store/kube/cluster_facts.h"

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

namespace {

using testing::HasSubstr;

/// Allows all but what contains one of `denied`.
class Reviewer final : public Api {
 public:
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    asked.push_back(request.path + " " + request.body);
    Answer answer;
    answer.outcome = outcome;
    answer.error = {ErrorCode::unavailable, "no", {}};
    bool is_allowed = true;
    for (const std::string& part : denied) is_allowed = is_allowed && request.body.find(part) == std::string::npos;
    answer.body = text.empty() ? R"({"status":{"allowed":)" + std::string(is_allowed ? "true" : "false") + "}}" : text;
    return answer;
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }
  std::vector<std::string> asked, denied;
  std::string text;
  Answer::Outcome outcome = Answer::Outcome::done;
};

/// Answers the two questions for Croft's own kinds with these statuses.
class OwnKindsServer final : public Api {
 public:
  OwnKindsServer(int discovery, int list) : discovery_(discovery), list_(list) {}
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    const bool is_list = request.path.find("croftpoolsets?") != std::string::npos;
    EXPECT_TRUE(is_list || request.path == "/apis/ipam.croft.dev/v1alpha1") << request.path;
    Answer answer;
    answer.http_status = is_list ? list_ : discovery_;
    answer.outcome = answer.http_status == 0     ? Answer::Outcome::not_done
                     : answer.http_status == 200 ? Answer::Outcome::done
                                                 : Answer::Outcome::refused;
    answer.status.code = answer.http_status;
    if (answer.http_status == 404) answer.status.message = "404 page not found";
    answer.error = {answer.http_status == 403 ? ErrorCode::permission_denied : ErrorCode::unavailable, "cannot", {}};
    return answer;
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }

 private:
  int discovery_, list_;
};

/// RBAC refuses what is not there too: only a kind that is served is one that this account may not read.
TEST(OwnKinds, AreReadWhereTheyAreThereAndMayBe) {
  struct Case {
    int discovery, list;
    bool are_read, are_denied;
  };
  for (const Case& one : {Case{404, 403, false, false}, Case{404, 404, false, false}, Case{200, 403, false, true},
                          Case{403, 403, false, true}, Case{200, 200, true, false}, Case{200, 404, true, false},
                          Case{200, 500, true, false}}) {
    OwnKindsServer api(one.discovery, one.list);
    int denied = 0;
    const auto may = may_read_own_kinds(
        api, [&](const Error&) { ++denied; }, Deadline{});
    ASSERT_TRUE(may) << one.discovery;
    EXPECT_EQ(*may, one.are_read) << one.discovery << " " << one.list;
    EXPECT_EQ(denied, one.are_denied ? 1 : 0) << one.discovery << " " << one.list;
  }
  OwnKindsServer away(0, 403);
  EXPECT_EQ(may_read_own_kinds(away, nullptr, Deadline{}).error().code, ErrorCode::unavailable);
}

const std::vector<NeededRights> kNeeded{{"g.io", "blocks", {"get", "create"}}, {"h.io", "pools", {"list"}}};

TEST(AccessReview, AsksForEachVerb) {
  Reviewer api;
  EXPECT_TRUE(check_rights(api, kNeeded, Deadline{}));
  ASSERT_EQ(api.asked.size(), 3U);
  EXPECT_EQ(api.asked[1],
            R"(/apis/authorization.k8s.io/v1/selfsubjectaccessreviews {"apiVersion":"authorization.k8s.io/v1",)"
            R"("kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"g.io","resource":"blocks",)"
            R"("verb":"create"}}})");
}

TEST(AccessReview, WhatIsMissingIsNamed) {
  Reviewer api;
  api.denied = {R"("create")", R"("pools")"};
  const auto done = check_rights(api, kNeeded, Deadline{});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::permission_denied);
  EXPECT_EQ(done.error().message, "the account may not create of blocks.g.io; list of pools.h.io");
}

TEST(AccessReview, NothingIsTakenForARight) {
  for (const char* text : {"{}", "[", R"({"status":{}})", R"({"status":{"allowed":"true"}})", "null"}) {
    Reviewer api;
    api.text = text;
    EXPECT_FALSE(check_rights(api, kNeeded, Deadline{})) << text;
  }
  for (const auto outcome : {Answer::Outcome::refused, Answer::Outcome::not_done, Answer::Outcome::unknown}) {
    Reviewer api;
    api.outcome = outcome;
    const auto done = check_rights(api, kNeeded, Deadline{});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::unavailable);
  }
}

TEST(AccessReview, WhoMayNotAskLacksNothingForThat) {
  class Refusing final : public Api {
   public:
    [[nodiscard]] Answer call(const Request&, Deadline) override {
      Answer answer;
      answer.outcome = Answer::Outcome::refused;
      answer.error = {ErrorCode::permission_denied, "no", {}};
      return answer;
    }
    [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }
  } api;
  const auto done = check_rights(api, kNeeded, Deadline{});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::refused_by_configuration);
}

using Json = nlohmann::json;

const std::vector<NeededRights> kWanted = {{"crd.projectcalico.org", "ipamblocks", {"list"}}, {"", "pods", {"list"}}};

/// An API that answers both reviews, and keeps what it was asked.
class TokenApi final : public Api {
 public:
  [[nodiscard]] Answer call(const Request& request, Deadline /*deadline*/) override {
    asked.emplace_back(request.path, Json::parse(request.body));
    EXPECT_EQ(request.method, Request::Method::post);
    EXPECT_TRUE(request.keeps_nothing);
    Answer answer;
    if (refuses) {
      answer.outcome = Answer::Outcome::refused;
      answer.http_status = 403;
      answer.error = {ErrorCode::permission_denied, "tokenreviews is forbidden", {}};
      return answer;
    }
    answer.outcome = Answer::Outcome::done;
    const Json& spec = asked.back().second["spec"];
    answer.body = request.path.ends_with("tokenreviews")
                      ? of_token
                      : Json{{"status", {{"allowed", spec["resourceAttributes"]["resource"] != denied}}}}.dump();
    return answer;
  }
  [[nodiscard]] WatchAnswer watch(const std::string& /*path*/, Deadline /*deadline*/) override { return {}; }

  std::string of_token, denied;
  bool refuses = false;
  std::vector<std::pair<std::string, Json>> asked;
};

constexpr const char* kAlice = R"({"status":{"authenticated":true,"user":{"username":"alice","uid":"u1",
  "groups":["ops","system:authenticated"],"extra":{"scopes.example/one":["a","b"]}}}})";

TEST(TokenReview, AUserWithTheRightIsAllowed) {
  TokenApi api;
  api.of_token = kAlice;
  const auto reviewed = review_token(api, R"(a"b\c)", kWanted, {}).value();
  EXPECT_TRUE(reviewed.is_known);
  EXPECT_TRUE(reviewed.is_allowed);
  EXPECT_EQ(reviewed.user, "alice");
  ASSERT_EQ(api.asked.size(), 3U);
  EXPECT_EQ(api.asked[0].second["spec"]["token"], R"(a"b\c)");
  const Json& spec = api.asked[1].second["spec"];
  EXPECT_EQ(spec["user"], "alice");
  EXPECT_EQ(spec["uid"], "u1");
  EXPECT_EQ(spec["groups"], Json({"ops", "system:authenticated"}));
  EXPECT_EQ(spec["extra"]["scopes.example/one"], Json({"a", "b"}));
  EXPECT_EQ(spec["resourceAttributes"],
            Json({{"group", "crd.projectcalico.org"}, {"resource", "ipamblocks"}, {"verb", "list"}}));
  EXPECT_EQ(api.asked[2].second["spec"]["resourceAttributes"],
            Json({{"group", ""}, {"resource", "pods"}, {"verb", "list"}}));
}

TEST(TokenReview, AUserWithoutOneOfTheRightsIsNot) {
  for (const char* denied : {"ipamblocks", "pods"}) {
    TokenApi api;
    api.of_token = kAlice;
    api.denied = denied;
    const auto reviewed = review_token(api, "t", kWanted, {}).value();
    EXPECT_TRUE(reviewed.is_known);
    EXPECT_FALSE(reviewed.is_allowed) << denied;
  }
}

TEST(TokenReview, NobodyIsKnownByAnOddAnswer) {
  for (const char* odd : {R"({})", R"({"status":{}})", R"({"status":{"authenticated":false,"user":{"username":"a"}}})",
                          R"({"status":{"authenticated":"true","user":{"username":"a"}}})",
                          R"({"status":{"authenticated":true}})", R"({"status":{"authenticated":true,"user":{}}})"}) {
    TokenApi api;
    api.of_token = odd;
    EXPECT_FALSE(review_token(api, "t", kWanted, {})->is_known) << odd;
    EXPECT_EQ(api.asked.size(), 1U);
  }
  TokenApi api;
  api.of_token = "no JSON";
  EXPECT_FALSE(review_token(api, "t", kWanted, {}));
}

TEST(TokenReview, AnAccountThatMayNotAskIsToldSo) {
  TokenApi api;
  api.refuses = true;
  const auto reviewed = review_token(api, "t", kWanted, {});
  ASSERT_FALSE(reviewed);
  EXPECT_EQ(reviewed.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(reviewed.error().message, HasSubstr("controller.desk"));
}

}  // namespace
}  // namespace croft::store::kube
