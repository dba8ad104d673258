#include "store/kube/account.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/kube/calico_cluster.h"

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

}  // namespace
}  // namespace croft::store::kube
