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

  void page(const std::vector<std::string>& names, const std::string& next = "", const std::string& moment = "9") {
    std::string items;
    for (const std::string& name : names) {
      if (!items.empty()) items += ",";
      items += R"({"metadata":{"name":")" + name + R"(","namespace":"d","uid":"u","resourceVersion":"3"}})";
    }
    Answer answer;
    answer.outcome = Answer::Outcome::done;
    answer.http_status = 200;
    answer.body = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":")" + moment +
                  R"(","continue":")" + next + R"("},"items":[)" + items + "]}";
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
  Result<std::optional<std::uint64_t>> list() {
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
  EXPECT_EQ(list().value(), std::optional<std::uint64_t>(9));
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

TEST_F(PodList, PagesOfDifferentMomentsAreNoList) {
  api.page({"a", "b"}, "token");
  api.page({}, "", "1");
  const auto listed = list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::corrupt);
  EXPECT_THAT(listed.error().message, HasSubstr("pages of resourceVersion \"9\", and another of \"1\""));
  // One that is read anew may be of another moment.
  api.page({"a", "b"}, "token");
  api.refusal(410, ErrorCode::too_old);
  api.page({"a"}, "next", "12");
  api.page({"b"}, "", "12");
  EXPECT_TRUE(list());
}

TEST_F(PodList, APageThatComesTwiceIsNoList) {
  api.page({"a", "b"}, "token");
  api.page({"a", "b"});
  const auto listed = list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::corrupt);
  EXPECT_THAT(listed.error().message, HasSubstr("has an object twice"));
}

/// Names that a tenant made for one hash of the C++ library's: they must not stop what lists all pods.
TEST_F(PodList, NamesThatWereMadeForOneHashAreTwo) {
  const std::string first = "xxxxxxvoytcpjrhyldx0dy9ygurpj3voytcpjr", second = "xxxxxxeofg5w7thyldx0dy9ygurpj3eofg5w7t";
  ASSERT_EQ(std::hash<std::string>{}("d/" + first), std::hash<std::string>{}("d/" + second));
  api.page({first}, "token");
  api.page({second});
  EXPECT_TRUE(list());
  EXPECT_THAT(names, testing::ElementsAre(first, second));
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
  for (; goes_on && pages <= ListWalk::kPagesMax; ++pages) goes_on = walk.go_on({"9", std::to_string(pages), {}});
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

TEST_F(PodList, OnePodIsAskedForByItself) {
  const auto find = [&](const std::string& name_space, const std::string& name) {
    return find_pod(api, name_space, name, Deadline::after(clock.now(), std::chrono::seconds(15)));
  };
  const auto answer = [&](const std::string& name) {
    Answer one;
    one.outcome = Answer::Outcome::done;
    one.http_status = 200;
    one.body = R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + name +
               R"(","namespace":"d","uid":"u","resourceVersion":"3"},"status":{"podIP":"10.0.0.3"}})";
    api.answers.push_back(std::move(one));
  };
  answer("web");
  const auto pod = find("d", "web");
  ASSERT_TRUE(pod && *pod) << pod.error().message;
  EXPECT_EQ((*pod)->uid, "u");
  EXPECT_THAT((*pod)->addresses, SizeIs(1));
  EXPECT_EQ(api.asked.at(0), "/api/v1/namespaces/d/pods/web") << "as new as can be: no resourceVersion";
  api.refusal(404, ErrorCode::not_found);
  api.answers.back().status.name = "web";
  EXPECT_FALSE(find("d", "web").value());
  // Who does not say what it has not may not know of pods.
  api.refusal(404, ErrorCode::not_found);
  EXPECT_FALSE(find("d", "web"));
  // A cache may mix answers up.
  answer("other");
  EXPECT_EQ(find("d", "web").error().code, ErrorCode::corrupt);
  api.refusal(403, ErrorCode::permission_denied);
  const auto refused = find("d", "web");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr("access.yaml"), HasSubstr("`get` and `list` of pods")));
  // What can be no name is no pod's, and is not asked for.
  const std::size_t asked = api.asked.size();
  EXPECT_FALSE(find("d", "a/b").value());
  EXPECT_EQ(api.asked.size(), asked);
}

TEST_F(PodList, WhoMayNotIsToldWhatToAllow) {
  api.refusal(403, ErrorCode::permission_denied);
  const auto listed = list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(listed.error().message, HasSubstr("list pods"));
  EXPECT_THAT(listed.error().message, HasSubstr("access.yaml"));
  api.refusal(0, ErrorCode::permission_denied);
  const auto untrusted = list();
  ASSERT_FALSE(untrusted);
  EXPECT_THAT(untrusted.error().message, testing::Not(HasSubstr("access.yaml"))) << "a certificate that is refused";
}

}  // namespace
}  // namespace croft::store::kube
