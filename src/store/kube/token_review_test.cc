#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "store/kube/cluster_facts.h"

namespace croft::store::kube {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

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
