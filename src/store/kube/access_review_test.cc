#include "store/kube/access_review.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::store::kube {
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

}  // namespace
}  // namespace croft::store::kube
