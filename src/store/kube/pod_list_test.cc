#include "store/kube/pod_list.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/list_walk.h"

namespace croft::store::kube {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

/// Answers with what is written down, and notes what it was asked.
class ScriptedApi final : public Api {
 public:
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    asked.push_back(request.path);
    if (answers.empty()) return {};
    Answer next = std::move(answers.front());
    answers.erase(answers.begin());
    return next;
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }

  void page(const std::vector<std::string>& names, const std::string& next = "") {
    std::string items;
    for (const std::string& name : names) {
      if (!items.empty()) items += ",";
      items += R"({"metadata":{"name":")" + name + R"(","namespace":"d","uid":"u","resourceVersion":"3"}})";
    }
    Answer answer;
    answer.outcome = Answer::Outcome::done;
    answer.http_status = 200;
    answer.body = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":")" + next +
                  R"("},"items":[)" + items + "]}";
    answers.push_back(std::move(answer));
  }
  void refusal(int code, ErrorCode error) {
    Answer answer;
    answer.outcome = Answer::Outcome::refused;
    answer.http_status = code;
    answer.status.code = code;
    answer.error = {error, "no", {}};
    answers.push_back(std::move(answer));
  }

  std::vector<Answer> answers;
  std::vector<std::string> asked;
};

class PodList : public testing::Test {
 protected:
  Result<void> list() {
    return for_each_pod(
        api, clock, [&] { names.clear(); }, [&](const core::collect::PodFact& pod) { names.push_back(pod.name); });
  }
  os::SystemClock clock;
  ScriptedApi api;
  std::vector<std::string> names;
};

TEST_F(PodList, AllPages) {
  api.page({"a", "b"}, "token");
  api.page({"c"});
  ASSERT_TRUE(list());
  EXPECT_THAT(names, testing::ElementsAre("a", "b", "c"));
  ASSERT_THAT(api.asked, SizeIs(2));
  EXPECT_THAT(api.asked[0], testing::StartsWith("/api/v1/pods?"));
  EXPECT_THAT(api.asked[0], testing::Not(HasSubstr("resourceVersion"))) << "as new as can be";
  EXPECT_THAT(api.asked[1], HasSubstr("continue=token"));
}

TEST_F(PodList, WhatAServerForgetsInTheMiddleIsReadAnew) {
  api.page({"a", "b"}, "token");
  api.refusal(410, ErrorCode::too_old);
  api.page({"b", "c"});
  ASSERT_TRUE(list());
  EXPECT_THAT(names, testing::ElementsAre("b", "c"));
  EXPECT_THAT(api.asked[2], testing::Not(HasSubstr("continue")));
}

TEST_F(PodList, AnEndInTheMiddleIsAnError) {
  api.page({"a"}, "token");
  EXPECT_FALSE(list());
}

TEST_F(PodList, APageThatIsTooLargeIsAskedForInSmallerParts) {
  Answer too_long;
  too_long.error = {ErrorCode::invalid_argument, "the answer is longer than 67108864 bytes", {}};
  api.answers.push_back(too_long);
  api.page({"a"}, "token");
  api.page({"b"});
  ASSERT_TRUE(list());
  EXPECT_THAT(names, testing::ElementsAre("a", "b"));
  EXPECT_THAT(api.asked[0], HasSubstr("limit=500"));
  EXPECT_THAT(api.asked[1], HasSubstr("limit=62"));
  // A single object that is too large is said.
  for (int i = 0; i < 5; ++i) api.answers.push_back(too_long);
  EXPECT_FALSE(list());
}

TEST_F(PodList, AListWithoutAnEndIsGivenUp) {
  api.page({"a"}, "token");
  api.page({"b"}, "token");
  api.page({"c"}, "token");
  const auto listed = list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::corrupt);
  wire::kube::ApiListQuery query;
  ListWalk walk(query, clock);
  Result<void> goes_on;
  std::int64_t pages = 0;
  for (; goes_on && pages <= ListWalk::kPagesMax; ++pages) goes_on = walk.go_on(std::to_string(pages));
  EXPECT_EQ(pages, ListWalk::kPagesMax);
}

TEST_F(PodList, OfOneNodeByASelectorAndAsNewAsCanBe) {
  Answer answer;
  answer.outcome = Answer::Outcome::done;
  answer.http_status = 200;
  const auto pod = [](const std::string& name, const std::string& spec) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"d","uid":"u","resourceVersion":"3"},"spec":)" + spec +
           "}";
  };
  answer.body = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[)" +
                pod("a", R"({"nodeName":"n1"})") + "," + pod("h", R"({"nodeName":"n1","hostNetwork":true})") + "," +
                pod("of-another", R"({"nodeName":"n2"})") + "," + pod("bound-to-none", "{}") + "]}";
  api.answers.push_back(answer);
  std::vector<core::collect::PodFact> pods;
  const auto list_of = [&](const std::string& node, Deadline deadline) {
    return for_each_pod_of_node(
        api, clock, node, deadline, [&] { pods.clear(); }, [&](const auto& one) { pods.push_back(one); });
  };
  ASSERT_TRUE(list_of("n1", Deadline::after(clock.now(), std::chrono::seconds(30))));
  ASSERT_THAT(pods, SizeIs(2));
  EXPECT_EQ(pods[0].name, "a");
  EXPECT_FALSE(pods[0].is_in_node_network);
  EXPECT_TRUE(pods[1].is_in_node_network);
  EXPECT_THAT(api.asked[0], testing::AllOf(HasSubstr("fieldSelector=spec.nodeName%3Dn1"),
                                           testing::Not(HasSubstr("resourceVersion"))));
  // Nothing is asked where there is no time, or no node.
  EXPECT_EQ(list_of("n1", Deadline{std::chrono::nanoseconds(0)}).error().code, ErrorCode::deadline_exceeded);
  for (const char* none : {"", "n1,status.phase=Running", "a/b", "n1=", "!n"}) {
    EXPECT_EQ(list_of(none, {}).error().code, ErrorCode::invalid_argument) << none;
  }
  EXPECT_THAT(api.asked, SizeIs(1));
  api.refusal(403, ErrorCode::permission_denied);
  EXPECT_THAT(list_of("n1", {}).error().message, HasSubstr("the agent of this node"));
}

TEST_F(PodList, WhoMayNotIsToldWhatToAllow) {
  api.refusal(403, ErrorCode::permission_denied);
  const auto listed = list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(listed.error().message, HasSubstr("list pods"));
  EXPECT_THAT(listed.error().message, HasSubstr("access.yaml"));
}

}  // namespace
}  // namespace croft::store::kube
